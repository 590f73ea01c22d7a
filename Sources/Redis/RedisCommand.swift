public import EventLoop

/// A command being written, argument by argument, in the form that goes over the wire (RESP2 arrays of bulk strings).
///
/// It is one buffer: keep it, and begin again for each call. Sending copies it into the connection's own buffer, so it may be changed as
/// soon as `send` has returned. Arguments may be any bytes.
public struct RedisCommand: ~Copyable {
  private(set) var body: CommandBuffer
  private(set) var arguments = 0
  private(set) var script: RedisScript?
  /// Where the argument that is being put together from parts begins; -1: there is none.
  private var open = -1

  /// Makes an empty one with room for so many bytes; it grows as needed.
  public init(reserving capacity: Int = 1024) { body = CommandBuffer(capacity: capacity) }

  /// How many bytes it is so far, without its first line.
  public var byteCount: Int { body.count }

  /// Begins a command by its name, forgetting what was written before.
  public mutating func begin(_ name: String) {
    restart()
    append(name)
  }

  /// Begins the call of a script; exactly `keys` arguments that are keys come next, then the others.
  public mutating func begin(_ script: RedisScript, keys: Int) {
    restart()
    self.script = script
    append("EVALSHA")
    append(script.sha1)
    append(keys)
  }

  /// Begins a command whose name is the first argument to come.
  mutating func begin() { restart() }

  private mutating func restart() {
    body.removeAll(keeping: 1 << 20)
    arguments = 0
    script = nil
    open = -1
  }

  /// Appends an argument of any bytes.
  @inline(__always)
  public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    precondition(open < 0, "an argument made of parts must be ended before the next")
    appendLength(bytes.count)
    body.append(bytes)
    body.appendLineEnd()
    arguments += 1
  }

  /// Appends an argument of any bytes.
  public mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

  /// Appends an argument of any bytes.
  public mutating func append(_ bytes: SharedBytes) { bytes.withUnsafeBytes { append($0) } }

  /// Appends an argument: a text's UTF-8. A literal costs no allocation.
  @inline(__always)
  public mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Appends an argument: a number in decimal.
  @inline(__always)
  public mutating func append(_ number: some FixedWidthInteger & Sendable) {
    precondition(open < 0, "an argument made of parts must be ended before the next")
    let value = Int64(clamping: number)
    appendLength(decimalDigits(of: value.magnitude) + (value < 0 ? 1 : 0))
    body.append(decimal: value)
    body.appendLineEnd()
    arguments += 1
  }

  /// Begins an argument that is put together from parts with `extend`, such as a key with its prefix and hash tag.
  public mutating func beginArgument() {
    precondition(open < 0, "an argument made of parts must be ended before the next")
    open = body.count
  }

  /// Adds bytes to the argument that was begun.
  public mutating func extend(_ bytes: UnsafeRawBufferPointer) {
    precondition(open >= 0, "begin the argument first")
    body.append(bytes)
  }

  /// Adds a text's UTF-8 to the argument that was begun.
  public mutating func extend(_ text: String) {
    var text = text
    text.withUTF8 { extend(UnsafeRawBufferPointer($0)) }
  }

  /// Adds a number in decimal to the argument that was begun.
  public mutating func extend(_ number: some FixedWidthInteger & Sendable) {
    precondition(open >= 0, "begin the argument first")
    body.append(decimal: Int64(clamping: number))
  }

  /// Ends the argument that was begun.
  public mutating func endArgument() {
    precondition(open >= 0, "begin the argument first")
    let start = open
    let length = body.count - start
    open = -1
    // Its length stands before it, so it is written where the argument ends now, and the two change places by way of the gap.
    let header = decimalDigits(of: UInt64(length)) + 3
    body.openGap(of: header, at: start)
    let end = body.count
    appendLength(length)
    (body.base + start).copyMemory(from: body.base + end, byteCount: header)
    body.truncate(to: end)
    body.appendLineEnd()
    arguments += 1
  }

  @inline(__always)
  private mutating func appendLength(_ length: Int) {
    body.append(UInt8(ascii: "$"))
    body.append(decimal: Int64(length))
    body.appendLineEnd()
  }

  /// Whether it can be sent: an argument is never left open.
  var isComplete: Bool { open < 0 && arguments > 0 }
}

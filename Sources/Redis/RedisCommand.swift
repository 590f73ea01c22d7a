/// A command in the form of the wire (RESP2 arrays of bulk strings), written argument by argument.
///
/// Keep it and use it again for each call: it is one buffer. `send` copies it into the connection's buffer, so it may change when `send`
/// has returned. Arguments may be any bytes.
public struct RedisCommand: ~Copyable {
  private(set) var body: CommandBuffer
  private(set) var arguments = 0
  private(set) var script: RedisScript?
  /// The beginning of the open argument; -1 if there is none.
  private var open = -1

  /// Makes an empty command with this capacity, which grows as needed.
  public init(reserving capacity: Int = 1024) { body = CommandBuffer(capacity: capacity) }

  /// Its size so far, without its first line.
  var byteCount: Int { body.count }

  /// Begins a command by its name, and drops the former one.
  public mutating func begin(_ name: String) {
    begin()
    append(name)
  }

  /// Begins a call of a script. Exactly `keys` arguments that are keys follow, then the others.
  public mutating func begin(_ script: RedisScript, keys: Int) {
    begin()
    self.script = script
    append("EVALSHA")
    append(script.sha1)
    append(keys)
  }

  /// Begins a command whose name is the next argument.
  mutating func begin() {
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

  /// Appends a text's UTF-8 as an argument. A literal needs no allocation.
  @inline(__always)
  public mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Appends a number in decimal as an argument.
  @inline(__always)
  public mutating func append(_ number: some FixedWidthInteger & Sendable) {
    precondition(open < 0, "an argument made of parts must be ended before the next")
    let value = Int64(clamping: number)
    appendLength(decimalDigits(of: value.magnitude) + (value < 0 ? 1 : 0))
    body.append(decimal: value)
    body.appendLineEnd()
    arguments += 1
  }

  /// Begins an argument that consists of several parts, such as a key with its prefix and hash tag.
  public mutating func beginArgument() {
    precondition(open < 0, "an argument made of parts must be ended before the next")
    open = body.count
  }

  /// Appends bytes to the open argument.
  public mutating func extend(_ bytes: UnsafeRawBufferPointer) {
    precondition(open >= 0, "begin the argument first")
    body.append(bytes)
  }

  /// Appends a text's UTF-8 to the open argument.
  public mutating func extend(_ text: String) {
    var text = text
    text.withUTF8 { extend(UnsafeRawBufferPointer($0)) }
  }

  /// Appends a number in decimal to the open argument.
  public mutating func extend(_ number: some FixedWidthInteger & Sendable) {
    precondition(open >= 0, "begin the argument first")
    body.append(decimal: Int64(clamping: number))
  }

  /// Ends the open argument.
  public mutating func endArgument() {
    precondition(open >= 0, "begin the argument first")
    let start = open
    let length = body.count - start
    open = -1
    // The length precedes the argument, so it is written after it, and the two swap places through the gap.
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

  /// Whether it can be sent: no argument is open.
  var isComplete: Bool { open < 0 && arguments > 0 }
}

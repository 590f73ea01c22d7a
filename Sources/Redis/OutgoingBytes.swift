/// The bytes of all calls in flight, oldest first: those not yet sent, and those sent whose reply has not come.
///
/// The sent ones are kept because a call is repeated from them when the server has forgotten its script.
struct OutgoingBytes: ~Copyable {
  private var buffer = CommandBuffer(capacity: 4096)
  /// Where the oldest call begins.
  private var start = 0
  /// Where the bytes begin that the kernel has not taken.
  private var sent = 0
  private static let keptCapacity = 1 << 20

  /// How many bytes are held.
  var count: Int { buffer.count - start }
  var unsentCount: Int { buffer.count - sent }
  /// How many bytes of the oldest calls have gone out.
  var sentCount: Int { sent - start }

  /// Valid until the next change.
  var unsent: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer.bytes[sent...]) }

  /// Appends a command and answers how many bytes it takes.
  mutating func append(_ command: borrowing RedisCommand) -> Int {
    let before = buffer.count
    buffer.append(UInt8(ascii: "*"))
    buffer.append(decimal: Int64(command.arguments))
    buffer.appendLineEnd()
    buffer.append(command.body.bytes)
    return buffer.count - before
  }

  /// Appends the first `length` bytes once more: the oldest call.
  mutating func repeatFirst(_ length: Int) { buffer.appendCopy(of: start..<(start + length)) }

  mutating func wasSent(_ count: Int) { sent += count }

  /// Forgets the bytes of the oldest call.
  mutating func removeFirst(_ length: Int) {
    start += length
    if start == buffer.count {
      buffer.removeAll(keeping: Self.keptCapacity)
      (start, sent) = (0, 0)
    } else if start >= 65536 && start > buffer.count / 2 {
      // What is moved is less than what was answered since the last move, so the cost per call is bounded.
      buffer.removeFirst(start)
      (start, sent) = (0, sent - start)
    }
  }

  mutating func removeAll() {
    buffer.removeAll(keeping: Self.keptCapacity)
    (start, sent) = (0, 0)
  }
}

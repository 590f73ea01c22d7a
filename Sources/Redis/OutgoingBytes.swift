/// The bytes of all calls in flight, oldest first, sent or unsent.
///
/// Sent bytes are kept, because a call is repeated from them if the server has forgotten its script.
struct OutgoingBytes: ~Copyable {
  private var buffer = CommandBuffer(capacity: 4096)
  /// The beginning of the oldest call.
  private var start = 0
  /// The beginning of the bytes that the kernel has not accepted.
  private var sent = 0
  private static let keptCapacity = 1 << 20

  /// The number of bytes.
  var count: Int { buffer.count - start }
  var unsentCount: Int { buffer.count - sent }
  /// The number of sent bytes of the oldest calls.
  var sentCount: Int { sent - start }

  /// Valid until the next change.
  var unsent: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer.bytes[sent...]) }

  /// Appends a command and answers its size.
  mutating func append(_ command: borrowing RedisCommand) -> Int {
    let before = buffer.count
    buffer.append(UInt8(ascii: "*"))
    buffer.append(decimal: Int64(command.arguments))
    buffer.appendLineEnd()
    buffer.append(command.body.bytes)
    return buffer.count - before
  }

  /// Appends the first `length` bytes again: the oldest call.
  mutating func repeatFirst(_ length: Int) { buffer.appendCopy(of: start..<(start + length)) }

  mutating func wasSent(_ count: Int) { sent += count }

  /// Removes the bytes of the oldest call.
  mutating func removeFirst(_ length: Int) {
    start += length
    if start == buffer.count {
      buffer.removeAll(keeping: Self.keptCapacity)
      (start, sent) = (0, 0)
    } else if start >= 65536 && start > buffer.count / 2 {
      // Fewer bytes are moved than were answered since the last move, so the cost per call is bounded.
      buffer.removeFirst(start)
      (start, sent) = (0, sent - start)
    }
  }

  mutating func removeAll() {
    buffer.removeAll(keeping: Self.keptCapacity)
    (start, sent) = (0, 0)
  }
}

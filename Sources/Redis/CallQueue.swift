/// A call whose reply has not come.
struct Call {
  let handler: any RedisReplyHandler
  let tag: UInt64
  /// When it fails, in the loop's milliseconds.
  let deadline: UInt64
  /// How many bytes of the outgoing buffer are its own.
  let length: Int
  /// The script it calls.
  let script: RedisScript?
  /// It is sent for the second time, because the server did not know its script.
  let isRepeat: Bool
}

/// The calls in flight, oldest first, as Redis answers them: a ring.
struct CallQueue {
  private var ring: [Call?] = Array(repeating: nil, count: 64)
  private var head = 0
  private(set) var count = 0
  /// The number of the oldest call, counted since the connection was made.
  private(set) var firstNumber: UInt64 = 0

  var isEmpty: Bool { count == 0 }
  var first: Call? { count == 0 ? nil : ring[head] }
  /// The number that the next call gets.
  var nextNumber: UInt64 { firstNumber + UInt64(count) }

  mutating func append(_ call: Call) {
    if count == ring.count { grow() }
    ring[(head + count) & (ring.count - 1)] = call
    count += 1
  }

  mutating func removeFirst() -> Call? {
    guard count > 0 else { return nil }
    var call: Call?
    swap(&call, &ring[head])
    head = (head + 1) & (ring.count - 1)
    count -= 1
    firstNumber += 1
    return call
  }

  // The size stays a power of two, so that an index is found by a mask.
  private mutating func grow() {
    var larger = [Call?](repeating: nil, count: ring.count * 2)
    for index in 0..<count { larger[index] = ring[(head + index) & (ring.count - 1)] }
    ring = larger
    head = 0
  }
}

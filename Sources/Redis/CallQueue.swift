/// A call without a reply yet.
struct Call {
  let handler: any RedisReplyHandler
  let tag: UInt64
  /// Its deadline, in the loop's milliseconds.
  let deadline: UInt64
  /// The number of its bytes in the outgoing buffer.
  let length: Int
  /// The script that it calls.
  let script: RedisScript?
  /// Whether it is sent for the second time, because the server did not know its script.
  let isRepeat: Bool
}

/// The calls in flight, oldest first, in the order of Redis' answers: a ring.
struct CallQueue {
  private var ring: [Call?] = Array(repeating: nil, count: 64)
  private var head = 0
  private(set) var count = 0
  /// The number of the oldest call since the connection was made.
  private(set) var firstNumber: UInt64 = 0

  var isEmpty: Bool { count == 0 }
  var first: Call? { count == 0 ? nil : ring[head] }
  /// The number of the next call.
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

  // The size stays a power of two, so that a mask gives the index.
  private mutating func grow() {
    var larger = [Call?](repeating: nil, count: ring.count * 2)
    for index in 0..<count { larger[index] = ring[(head + index) & (ring.count - 1)] }
    ring = larger
    head = 0
  }
}

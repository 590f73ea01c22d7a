import Testing

@testable import HTTP

@Suite struct RequestQueueTests {
  private func all(_ queue: inout RequestQueue) -> [Int] {
    var numbers: [Int] = []
    while let number = queue.next() { numbers.append(number) }
    return numbers
  }

  @Test func oneOriginHasItsBoundAndKeepsItsOrder() {
    var queue = RequestQueue(maximum: 100, maximumPerOrigin: 2)
    for number in 1...5 { queue.add(number, of: "a") }
    #expect(all(&queue) == [1, 2])
    queue.end("a")
    #expect(all(&queue) == [3])
    queue.end("a")
    queue.end("a")
    #expect(all(&queue) == [4, 5])
  }

  @Test func anOriginThatHangsStopsNoOther() {
    var queue = RequestQueue(maximum: 4, maximumPerOrigin: 2)
    for number in 0..<1000 { queue.add(number, of: "hangs") }
    queue.add(1000, of: "b")
    queue.add(1001, of: "b")
    queue.add(1002, of: "b")
    #expect(all(&queue) == [0, 1000, 1, 1001])
    queue.end("b")
    #expect(all(&queue) == [1002])
  }

  @Test func originsTakeTurnsWhenThereIsNoRoomForAll() {
    var queue = RequestQueue(maximum: 1, maximumPerOrigin: 1)
    for (number, origin) in [(1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "c")] { queue.add(number, of: origin) }
    var order: [Int] = []
    let origins = [1: "a", 2: "a", 3: "b", 4: "b", 5: "c"]
    while let number = queue.next() {
      order.append(number)
      queue.end(origins[number] ?? "")
    }
    #expect(order == [1, 3, 5, 2, 4])
    #expect(queue.active == 0)
  }

  @Test func whatIsWithdrawnDoesNotBegin() {
    var queue = RequestQueue(maximum: 2, maximumPerOrigin: 1)
    for number in 1...3 { queue.add(number, of: "a") }
    queue.add(4, of: "b")
    queue.withdraw(4, of: "b")
    #expect(all(&queue) == [1])
    queue.withdraw(2, of: "a")
    queue.withdraw(7, of: "a")
    queue.withdraw(7, of: "nobody")
    queue.end("a")
    #expect(all(&queue) == [3])
  }
}

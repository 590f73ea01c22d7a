import Testing

@testable import FanOut

@Suite struct AwaitedEventsTests {
  @Test func theyTellWhichOfThemKafkaDoesNotHave() async {
    let events = AwaitedEvents()
    for round in 0..<3 {
      var numbers: [Int] = []
      let failed = await events.emit(4) { number, purpose in
        guard case .awaited(let event) = EventPurpose(opaque: purpose.opaque) else { return false }
        numbers.append(event)
        guard number == 3 else { return number != 0 }
        // The reports come in any order, and the queue has no room for the first and the last.
        events.reported(numbers[2], failed: round == 1)
        events.reported(numbers[1], failed: false)
        return false
      }
      #expect(failed == (round == 1 ? [0, 2, 3] : [0, 3]))
    }
    #expect(await events.emit(0) { _, _ in true }.isEmpty)
  }
}

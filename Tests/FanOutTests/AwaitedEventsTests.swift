import Testing

@testable import FanOut

@Suite struct AwaitedEventsTests {
  @Test func itTellsWhichOfThemKafkaDoesNotHave() async {
    let events = AwaitedEvents()
    for round in 0..<3 {
      var tokens: [Int] = []
      let failed = await events.say(4) { number, token in
        #expect(token & ~EventProducer.Tag.mask == EventProducer.Tag.awaited)
        tokens.append(Int(token & EventProducer.Tag.mask))
        guard number == 3 else { return number != 0 }
        // The reports come in any order, and the queue has no room for the first and the last.
        events.reported(tokens[2], failed: round == 1)
        events.reported(tokens[1], failed: false)
        return false
      }
      #expect(failed == (round == 1 ? [0, 2, 3] : [0, 3]))
    }
    #expect(await events.say(0) { _, _ in true }.isEmpty)
  }
}

import Testing

@testable import EventLoop

@Suite struct SlotTableTests {
  @Test func aNumberMeansItsValueUntilItIsTaken() {
    var slots = SlotTable<String>()
    let (one, two) = (slots.add("one"), slots.add("two"))
    #expect(one != two)
    #expect(slots.count == 2)
    slots.update(one) { $0 += "!" }
    #expect(slots[one] == "one!")
    #expect(slots.take(one) == "one!")
    #expect(slots.take(one) == nil, "an answer that comes twice means nothing the second time")
    #expect(slots[one] == nil)
    #expect(slots.count == 1)
    #expect(slots[two] == "two")
  }

  @Test func numbersThatWereNeverGivenMeanNothing() {
    var slots = SlotTable<String>()
    for number in [-1, 0, 1, .max] {
      #expect(slots.take(number) == nil)
      #expect(slots[number] == nil)
      slots.update(number) { _ in Issue.record("there is nothing to change") }
    }
    #expect(slots.count == 0)
  }

  @Test func freedNumbersAreUsedAgain() {
    var slots = SlotTable<Int>()
    let numbers = (0..<100).map { slots.add($0) }
    for number in numbers { _ = slots.take(number) }
    #expect(Set((0..<100).map { slots.add($0) }) == Set(numbers))
  }
}

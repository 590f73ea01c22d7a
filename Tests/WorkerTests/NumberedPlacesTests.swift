import Testing

@testable import Worker

@Suite struct NumberedPlacesTests {
  @Test func aNumberMeansItsValueUntilItIsTaken() {
    var places = NumberedPlaces<String>()
    let (one, two) = (places.add("one"), places.add("two"))
    #expect(one != two)
    #expect(places.count == 2)
    places.update(one) { $0 += "!" }
    #expect(places[one] == "one!")
    #expect(places.take(one) == "one!")
    #expect(places.take(one) == nil, "an answer that comes twice means nothing the second time")
    #expect(places[one] == nil)
    #expect(places.count == 1)
    #expect(places[two] == "two")
  }

  @Test func numbersThatWereNeverGivenMeanNothing() {
    var places = NumberedPlaces<String>()
    for number in [-1, 0, 1, .max] {
      #expect(places.take(number) == nil)
      #expect(places[number] == nil)
      places.update(number) { _ in Issue.record("there is nothing to change") }
    }
    #expect(places.count == 0)
  }

  @Test func freedNumbersAreUsedAgain() {
    var places = NumberedPlaces<Int>()
    let numbers = (0..<100).map { places.add($0) }
    for number in numbers { _ = places.take(number) }
    #expect(Set((0..<100).map { places.add($0) }) == Set(numbers))
  }
}

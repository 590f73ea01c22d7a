import Testing

@testable import Transform

/// Pages of people's devices take turns, so that what they become stays bounded.
struct PageRoomTests {
  /// All whose turn it is now, each page coming at once if it is to.
  private func turns(_ pages: inout PageRoom, comes: Bool) -> [Int32] {
    var places: [Int32] = []
    while let slot = pages.next() {
      places.append(slot.number)
      if comes { pages.came() }
    }
    return places
  }

  @Test func pagesThatHaveNotComeAreBounded() {
    var pages = PageRoom()
    for place in 0..<40 as Range<Int32> { pages.wait(Slot(number: place), isGoing: false) }
    #expect(turns(&pages, comes: false) == Array(0..<32))
    #expect(pages.isWaiting)
    pages.came()
    #expect(turns(&pages, comes: false) == [32])
    pages.came()
    #expect(turns(&pages, comes: true) == Array(33..<40))
    #expect(!pages.isWaiting)
  }

  @Test func whatPagesHoldIsBoundedUntilTheyAreJudged() {
    var pages = PageRoom()
    pages.hold(16 << 20)
    pages.wait(Slot(number: 1), isGoing: false)
    #expect(turns(&pages, comes: true) == [])
    pages.judged(1)
    #expect(turns(&pages, comes: true) == [1])
  }

  /// A request that has begun holds its records: it goes on before another begins.
  @Test func whoHasBegunGoesOnFirstAndTheOthersInOrder() {
    var pages = PageRoom()
    for place in 0..<3000 as Range<Int32> { pages.wait(Slot(number: place), isGoing: false) }
    pages.wait(Slot(number: 9000), isGoing: true)
    #expect(turns(&pages, comes: true) == [9000] + Array(0..<3000))
  }
}

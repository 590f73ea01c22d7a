import Operations
import Testing

/// What `--require` and `--find-capacity` promise.
@Suite struct LoadRequirementTests {
  private func requirement(_ text: String) -> LoadRequirement? {
    LoadRequirement(text) { $0.hasSuffix("ms") ? Int64($0.dropLast(2)).map { $0 * 1000 } : nil }
  }

  @Test(arguments: ["p99=200ms", "max=1ms", "told.p999=5ms", "published.p50=2ms", "reach=1", "schedule=0.99", "reach=0"])
  func `a bound is read`(text: String) { #expect(requirement(text)?.text == text) }

  @Test(arguments: [
    "", "p99", "p99=", "p99=200", "p98=1ms", "sent.p99=1ms", "reach=2", "reach=-1", "reach=x", "a.b.p99=1ms", "p99=0ms", "=1ms",
  ])
  func `anything else is refused`(text: String) { #expect(requirement(text) == nil) }

  @Test(arguments: [1, 7, 99, 100, 101, 3000, 52_345]) func `the search finds a capacity to a twentieth`(capacity: Int) {
    var search = LoadCapacitySearch(from: 100)
    var steps = 0
    while let rate = search.next {
      search.take(isKept: rate <= capacity)
      steps += 1
    }
    #expect(search.highest <= capacity && Double(search.highest) >= Double(capacity) * 0.94 - 1)
    #expect(steps < 20)
  }

  @Test func `a search that no step fails ends at the highest rate, and one that all fail finds none`() {
    var (endless, hopeless) = (LoadCapacitySearch(from: 300_000), LoadCapacitySearch(from: 100))
    while endless.next != nil { endless.take(isKept: true) }
    while hopeless.next != nil { hopeless.take(isKept: false) }
    #expect(endless.highest == LoadCapacitySearch.maximum && hopeless.highest == 0)
  }
}

import Foundation
import JSON
import TestSupport
import Testing

@testable import Operations

/// The histograms of load runs, against sorted lists and against PyPI's `hdrhistogram`.
@Suite(.onThreadsOfTheirOwn) struct HistogramTests {
  private static let layouts = [
    HistogramLayout(highest: 3_600_000_000, digits: 3), HistogramLayout(highest: 3_600_000_000, digits: 2),
    HistogramLayout(highest: 5000, digits: 1), HistogramLayout(highest: 2, digits: 5),
  ]
  private static let percentiles: [Double] = [0, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100]

  /// Values over all magnitudes that a layout has, a few of them beyond it.
  private static func values(_ count: Int, _ layout: HistogramLayout, seed: UInt64) -> [Int64] {
    var random = SeededRandom(seed: seed)
    return (0..<count).map { _ in
      let magnitude = Int64.random(in: 0...40, using: &random)
      return Int64.random(in: 0...(1 << magnitude), using: &random) % (layout.highest + layout.highest / 50 + 1)
    }
  }

  @Test(arguments: layouts, [1, 2, 7, 1000]) func `a percentile is that of a sorted list, to the digits of the layout`(
    layout: HistogramLayout, count: Int
  ) {
    for seed in 1...(isComplete ? 20 : 4) as ClosedRange<UInt64> {
      let values = Self.values(count, layout, seed: seed)
      var histogram = Histogram(layout)
      for value in values { histogram.record(value) }
      let sorted = values.map { min($0, layout.highest) }.sorted()
      #expect(histogram.count == Int64(count))
      for percentile in Self.percentiles {
        let rank = max(1, Int(percentile / 100 * Double(count) + 0.5))
        let (found, exact) = (histogram.value(atPercentile: percentile), sorted[rank - 1])
        let allowed = exact / (0..<layout.digits).reduce(1) { power, _ in power * 10 }
        #expect(abs(found - exact) <= allowed, "\(percentile) % of \(count) with seed \(seed): \(found), not \(exact)")
      }
      #expect(histogram.maximum >= sorted[count - 1] && histogram.value(atPercentile: 0) <= sorted[0])
      let mean = sorted.reduce(0.0) { $0 + Double($1) } / Double(count)
      #expect(abs(histogram.mean - mean) <= mean / (layout.digits == 1 ? 10 : 100) + 1)
    }
  }

  @Test(arguments: layouts) func `every value lies in its counter, and the counters follow each other without a gap`(
    layout: HistogramLayout
  ) {
    func range(of value: Int64) -> ClosedRange<Int64> { layout.values(at: layout.index(of: value)) }
    var next: Int64 = 0
    while next <= min(layout.highest, 3000) {
      #expect(range(of: next).lowerBound == next)
      next = range(of: next).upperBound + 1
    }
    var random = SeededRandom(seed: 3)
    for value in (0..<500).map({ _ in Int64.random(in: 0...layout.highest, using: &random) }) {
      #expect(range(of: value).contains(value))
    }
  }

  @Test func `merged histograms are the histogram of all values`() {
    for layout in Self.layouts {
      var (all, merged) = (Histogram(layout), Histogram(layout))
      for seed in 1...(isComplete ? 5 : 2) as ClosedRange<UInt64> {
        var part = Histogram(layout)
        for value in Self.values(Int(seed) * 100, layout, seed: seed) {
          all.record(value)
          part.record(value)
        }
        merged.merge(part)
      }
      #expect(all == merged)
      merged.merge(Histogram(layout))
      #expect(all == merged)
    }
  }

  @Test func `the points of a plot rise to 100 percent`() {
    #expect(Histogram(Self.layouts[0]).points(perHalf: 5).isEmpty)
    for count in [1, 2, 3, 100, 10_000] {
      var histogram = Histogram(Self.layouts[0])
      for value in Self.values(count, Self.layouts[0], seed: 9) { histogram.record(value) }
      let points = histogram.points(perHalf: 5)
      #expect(points.last?.percentile == 100 && points.last?.value == histogram.maximum)
      for (one, next) in zip(points, points.dropFirst()) {
        #expect(one.percentile < next.percentile && one.value <= next.value)
      }
      #expect(points.count < 150)
    }
  }

  @Test(
    .enabled(
      if: ClusterFixture.python != nil, "TESTS_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"))
  func `another implementation of HdrHistogram says the same`() async throws {
    let program = """
      import json, sys
      from hdrh.histogram import HdrHistogram
      for line in sys.stdin:
          case = json.loads(line)
          histogram = HdrHistogram(1, case["highest"], case["digits"])
          for value in case["values"]:
              histogram.record_value(min(value, case["highest"]))
          print(json.dumps([histogram.total_count] + [histogram.get_value_at_percentile(each) for each in case["percentiles"]]))
      """
    try await CarillonCommand.with { carillon in
      var cases: [String] = []
      var expected: [[Int64]] = []
      for (number, layout) in Self.layouts.dropLast().enumerated() {
        let values = Self.values(2000, layout, seed: UInt64(number + 50))
        var histogram = Histogram(layout)
        for value in values { histogram.record(value) }
        expected.append([histogram.count] + Self.percentiles.map { histogram.value(atPercentile: $0) })
        cases.append(
          #"{"highest":\#(layout.highest),"digits":\#(layout.digits),"values":\#(values),"#
            + #""percentiles":\#(Self.percentiles)}"#)
      }
      let other = try await carillon.run(
        [try carillon.file("other.py", program)], input: cases.joined(separator: "\n") + "\n",
        program: URL(fileURLWithPath: ClusterFixture.python ?? ""))
      #expect(other.status == 0, "it said: \(other.errors)")
      let found = try other.lines.map { try (JSONValue(parsing: $0).elements ?? []).compactMap(\.integerValue) }
      #expect(found == expected)
    }
  }
}

/// A histogram as text, as result files have it.
@Suite struct HistogramTextTests {
  private static func histogram(_ random: inout SeededRandom, _ layout: HistogramLayout, highest: Int64 = 12) -> Histogram {
    var histogram = Histogram(layout)
    for _ in 0..<Int.random(in: 0...50, using: &random) {
      histogram.record(
        Int64.random(in: 0...(1 << Int64.random(in: 1...highest, using: &random)), using: &random),
        count: Int64.random(in: 1...9, using: &random))
    }
    return histogram
  }

  @Test(arguments: 0..<(isComplete ? 20 : 4) as Range<UInt64>) func `a histogram is the same after its text, and sums stay exact`(
    seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    let (one, other) = (Self.histogram(&random, LoadMeasures.fine, highest: 33), Self.histogram(&random, LoadMeasures.fine, highest: 33))
    #expect(Histogram(text: one.text, LoadMeasures.fine) == one)
    var sum = one
    sum.merge(other)
    var read = Histogram(text: one.text, LoadMeasures.fine)
    if let other = Histogram(text: other.text, LoadMeasures.fine) { read?.merge(other) }
    #expect(read == sum)
    for percentile in [0, 50, 99, 99.9, 100] { #expect(read?.value(atPercentile: percentile) == sum.value(atPercentile: percentile)) }
  }

  @Test(arguments: [
    " ", "1", "1 2", "1 2 1", "5 3 3 1", "0 0 0 0", "0 0 0 -1", "0 0 1 1", "1 1 1 9223372036854775807", "0 9223372036854775807 0 1",
    "0 5 0 1 0 1", "0 5 0 1 4 1", "0 5 0 1 6 1", "2 5 0 1 5 1", "0 0 0 1 ", "a b c d", "0 5 0 1125899906842624 5 1125899906842624",
    "+0 0 0 1", "0 0 0 +1", "0 0 0 0000000000000000001",
  ])
  func `a text that no histogram writes is refused`(text: String) { #expect(Histogram(text: text, LoadMeasures.fine) == nil) }
}

/// The range and the precision of a histogram in the layout of HdrHistogram.
///
/// Values share a counter if they agree in their leading digits. Counters lie in buckets of doubling width, so the index of a value needs two
/// shifts and no search.
package struct HistogramLayout: Sendable, Hashable {
  /// The largest value; greater ones count as this.
  package let highest: Int64
  /// The decimal digits that a value keeps, from 1 to 5.
  package let digits: Int
  private let halfMagnitude: Int
  private let mask: UInt64

  /// Makes a layout of values from 0 on.
  ///
  /// - Parameters:
  ///   - highest: at least 2.
  ///   - digits: from 1 to 5.
  package init(highest: Int64, digits: Int) {
    precondition(highest >= 2 && (1...5).contains(digits), "a histogram has 1 to 5 digits and a highest value of at least 2")
    (self.highest, self.digits) = (highest, digits)
    // Below this value every counter is one unit wide.
    let single = 2 * (0..<digits).reduce(1) { power, _ in power * 10 }
    let magnitude = Int.bitWidth - (single - 1).leadingZeroBitCount
    halfMagnitude = magnitude - 1
    mask = (1 << UInt64(magnitude)) - 1
  }

  private var half: Int { 1 << halfMagnitude }

  /// The counter of a value; greater values than the highest have its counter.
  func index(of value: Int64) -> Int {
    let value = UInt64(min(max(value, 0), highest))
    let bucket = 64 - (value | mask).leadingZeroBitCount - (halfMagnitude + 1)
    return ((bucket + 1) << halfMagnitude) + Int(value >> UInt64(bucket)) - half
  }

  /// The values of a counter.
  func values(at index: Int) -> ClosedRange<Int64> {
    let bucket = max((index >> halfMagnitude) - 1, 0)
    let place = (index & (half - 1)) + (index < half ? 0 : half)
    let lowest = Int64(place) << Int64(bucket)
    return lowest...(lowest + (1 << Int64(bucket)) - 1)
  }
}

/// Counts of values with a fixed relative precision. A value type; its memory follows the greatest value, not the number of values.
package struct Histogram: Sendable, Hashable {
  /// The layout. Only histograms of one layout can be merged.
  package let layout: HistogramLayout
  /// The number of values.
  package private(set) var count: Int64 = 0
  /// The counters up to that of the greatest value.
  private var counters: [Int64] = []
  private var least: Int64 = .max
  private var greatest: Int64 = 0

  /// Makes an empty histogram.
  package init(_ layout: HistogramLayout) { self.layout = layout }

  /// Whether it has no values.
  package var isEmpty: Bool { count == 0 }

  // MARK: Recording

  /// Counts a value. Negative values count as 0, and values above the layout's highest as the highest.
  package mutating func record(_ value: Int64, count times: Int64 = 1) {
    let value = min(max(value, 0), layout.highest)
    let index = layout.index(of: value)
    if index >= counters.count { counters.append(contentsOf: repeatElement(0, count: index + 1 - counters.count)) }
    counters[index] += times
    count += times
    least = min(least, value)
    greatest = max(greatest, value)
  }

  /// Adds the counts of another histogram of the same layout.
  package mutating func merge(_ other: Histogram) {
    precondition(layout == other.layout, "histograms of different layouts cannot be merged")
    if other.counters.count > counters.count {
      counters.append(contentsOf: repeatElement(0, count: other.counters.count - counters.count))
    }
    for (index, number) in other.counters.enumerated() { counters[index] += number }
    count += other.count
    least = min(least, other.least)
    greatest = max(greatest, other.greatest)
  }

  // MARK: Text

  /// The largest count that a text may have, so that sums of many histograms cannot overflow.
  private static let maximumCount: Int64 = 1 << 50

  /// All counts as text: the least and the greatest value, then for each filled counter the distance from the former one, and its count.
  package var text: String {
    guard !isEmpty else { return "" }
    var (text, last) = ("\(least) \(greatest)", 0)
    for (index, number) in counters.enumerated() where number > 0 {
      text += " \(index - last) \(number)"
      last = index
    }
    return text
  }

  /// Reads such a text; nil if it is not one of this layout.
  package init?(text: String, _ layout: HistogramLayout) {
    self.init(layout)
    guard !text.isEmpty else { return }
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    // So many digits cannot overflow.
    let numbers = parts.compactMap { part in
      part.utf8.count <= 18 && part.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) ? Int64(part) : nil
    }
    guard numbers.count == parts.count, numbers.count >= 4, numbers.count.isMultiple(of: 2) else { return nil }
    (least, greatest) = (numbers[0], numbers[1])
    guard least >= 0, least <= greatest, greatest <= layout.highest else { return nil }
    let last = layout.index(of: greatest)
    counters = Array(repeating: 0, count: last + 1)
    var index = 0
    for place in stride(from: 2, to: numbers.count, by: 2) {
      let (distance, number) = (numbers[place], numbers[place + 1])
      guard distance >= (place == 2 ? 0 : 1), distance <= Int64(last - index), (1...Self.maximumCount).contains(number) else { return nil }
      index += Int(distance)
      if place == 2, index != layout.index(of: least) { return nil }
      counters[index] = number
      count += number
      guard count <= Self.maximumCount else { return nil }
    }
    guard index == last else { return nil }
  }

  // MARK: Reading

  /// The greatest value, with the layout's precision; 0 if it is empty.
  package var maximum: Int64 { isEmpty ? 0 : layout.values(at: layout.index(of: greatest)).upperBound }

  /// The mean of the values; 0 if it is empty.
  package var mean: Double {
    guard !isEmpty else { return 0 }
    let sum = counters.indices.reduce(0.0) { sum, index in
      guard counters[index] > 0 else { return sum }
      let values = layout.values(at: index)
      let middle = values.lowerBound + (values.upperBound - values.lowerBound + 1) / 2
      return sum + Double(counters[index]) * Double(middle)
    }
    return sum / Double(count)
  }

  /// The value that so many percent of the values do not exceed; 0 if it is empty.
  package func value(atPercentile percentile: Double) -> Int64 {
    guard !isEmpty else { return 0 }
    let wanted = rank(of: percentile)
    var seen: Int64 = 0
    for (index, number) in counters.enumerated() {
      seen += number
      guard seen >= wanted else { continue }
      let values = layout.values(at: index)
      return percentile <= 0 ? values.lowerBound : values.upperBound
    }
    return maximum
  }

  private func rank(of percentile: Double) -> Int64 {
    let percentile = min(max(percentile, 0), 100)
    return max(1, Int64(percentile / 100 * Double(count) + 0.5))
  }

  /// A point of the distribution.
  package struct Point: Sendable, Hashable {
    /// The percentile, from 0 to 100.
    package var percentile: Double
    /// The value at it.
    package var value: Int64
  }

  /// The distribution for a plot: the steps become finer towards 100 %.
  ///
  /// - Parameter ticks: the number of points in each half of the rest to 100 %.
  package func points(perHalf ticks: Int) -> [Point] {
    precondition(ticks > 0, "a distribution has points")
    var points: [Point] = []
    var (index, seen, level) = (-1, Int64(0), 0.0)
    while !isEmpty {
      while seen == 0 || Double(seen) / Double(count) * 100 < level {
        index += 1
        seen += counters[index]
      }
      points.append(Point(percentile: level, value: layout.values(at: index).upperBound))
      guard seen < count else { break }
      // As in HdrHistogram: 100, 50, 25 and so on percent remain, and each half gets as many steps.
      var halves = 1.0
      while 100 / halves > 100 - level { halves *= 2 }
      level = min(100, level + 100 / (Double(ticks) * halves * 2))
    }
    if let last = points.last, last.percentile < 100 { points.append(Point(percentile: 100, value: maximum)) }
    return points
  }
}

/// A number of things, counted or estimated from a sample.
package struct Estimate: Sendable, Hashable {
  /// The number, or the most likely one.
  package var value: Int64
  /// The true number is within this distance in 95 of 100 samples; 0 if counted.
  package var margin: Int64
  /// Whether all were counted.
  package var isExact: Bool

  /// Makes a counted number.
  package static func counted(_ value: Int64) -> Estimate { Estimate(value: value, margin: 0, isExact: true) }
}

/// A sample of one kind of keys. It has the numbers of seen and of read keys, and sums of the values.
struct KindSample: Sendable {
  /// Keys of the kind that were seen.
  var seen = 0
  /// Keys of the kind that were read, chosen at random.
  var read = 0
  var sum = 0.0
  var squares = 0.0
  /// Whether each number is 0 or 1.
  var isShare = false

  mutating func take(_ number: Double) {
    read += 1
    sum += number
    squares += number * number
  }

  private static let quantile = 1.96

  /// Estimates the sum of the numbers over all keys of this kind.
  ///
  /// Keys were drawn in two steps without replacement: `scanned` of `keys`, then some keys of the kind among those. The estimate is the
  /// mean of the read keys, times the kind's share of the scanned keys, times all keys. It has no bias, and its variance is the sum of both
  /// steps' variances (Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 9.3). If a share is 0 or 1 in the sample, its
  /// variance would be 0, so two of each kind are added (Agresti and Coull).
  func total(keys: Double, scanned: Double) -> Estimate {
    let isExact = scanned >= keys && read == seen
    guard scanned > 0, read > 0 || seen == 0 else { return Estimate(value: 0, margin: Int64(saturating: keys), isExact: keys == 0) }
    let mean = read == 0 ? 0 : sum / Double(read)
    let share = Double(seen) / scanned
    let value = keys * share * mean
    if isExact { return .counted(Int64(saturating: sum.rounded())) }
    // A kind without a hit among this many keys has, in 95 of 100 cases, at most three times this share.
    if seen == 0 { return Estimate(value: 0, margin: Int64(saturating: (3 * keys / scanned).rounded(.up)), isExact: false) }
    let count = Double(read)
    var variance = read > 1 ? max(0, squares - sum * mean) / (count - 1) : mean * mean
    var spread = mean
    if isShare {
      spread = (sum + 2) / (count + 4)
      variance = spread * (1 - spread)
    }
    let smoothed = scanned < keys ? (Double(seen) + 2) / (scanned + 4) : share
    let first =
      (1 - min(1, scanned / keys)) * max(0, smoothed * (variance + spread * spread) - smoothed * smoothed * spread * spread) / scanned
    let second = seen > read && read > 0 ? share * share * (1 - count / Double(seen)) * variance / count : 0
    let margin = Self.quantile * keys * (first + second).squareRoot()
    return Estimate(value: Int64(saturating: value.rounded()), margin: Int64(saturating: margin.rounded(.up)), isExact: false)
  }
}

/// How many there are of something: counted, or estimated from a sample.
public struct Estimate: Sendable, Hashable {
  /// The number, or the likeliest one.
  public var value: Int64
  /// The true number lies within so much of it in 95 of 100 samples; 0 where it was counted.
  public var margin: Int64
  /// Whether all were counted.
  public var isExact: Bool

  /// A number that was counted.
  public static func counted(_ value: Int64) -> Estimate { Estimate(value: value, margin: 0, isExact: true) }
}

/// What was found of one kind of keys: how many of the keys are of that kind, and of a number of each that was read, its sum and squares.
struct KindSample: Sendable {
  /// Keys of the kind among those that were seen.
  var seen = 0
  /// Keys of the kind that were read, at random among those.
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

  /// The sum of the numbers over all keys of this kind.
  ///
  /// Keys were drawn in two steps, each without putting any back: `scanned` of `keys`, and of the kind's keys among those the ones that were
  /// read. The mean of the keys that were read, times the share of the kind among those that were scanned, times all keys, is an estimate
  /// without bias; its variance is the sum of what each step adds (Särndal, Swensson and Wretman, Model Assisted Survey Sampling, 9.3).
  /// Where a share is 0 or 1 in the sample, the sample's variance would be 0: two of each kind are added for it (Agresti and Coull).
  func total(keys: Double, scanned: Double) -> Estimate {
    let isExact = scanned >= keys && read == seen
    guard scanned > 0, read > 0 || seen == 0 else { return Estimate(value: 0, margin: Int64(saturating: keys), isExact: keys == 0) }
    let mean = read == 0 ? 0 : sum / Double(read)
    let share = Double(seen) / scanned
    let value = keys * share * mean
    if isExact { return .counted(Int64(saturating: sum.rounded())) }
    // Of what is not among so many there are at most three times as many parts of the whole, 95 times of 100.
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

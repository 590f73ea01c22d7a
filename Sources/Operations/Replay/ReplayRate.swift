/// Limits the rate of a replay. A value.
///
/// After a pause it allows at most a tenth of a second's worth at once.
struct ReplayRate {
  private var records: Bucket
  private var bytes: Bucket

  /// The remaining allowance of one kind; negative if the last record was larger.
  private struct Bucket {
    /// The allowance per second.
    let rate: Double
    var left: Double

    init(_ rate: Int?) {
      self.rate = rate.map(Double.init) ?? .greatestFiniteMagnitude
      left = self.rate / 10
    }

    mutating func pass(_ milliseconds: Double) { left = min(left + rate * (milliseconds / 1000), max(1, rate / 10)) }
  }

  private var last: UInt64?

  /// - Parameters:
  ///   - records: per second; nil for no limit.
  ///   - bytes: of keys and values per second; nil for no limit.
  init(records: Int?, bytes: Int?) { (self.records, self.bytes) = (Bucket(records), Bucket(bytes)) }

  /// Whether a record may be written now.
  ///
  /// - Parameter now: milliseconds of a monotonic clock.
  mutating func allows(at now: UInt64) -> Bool {
    let passed = Double(now - (last ?? now))
    last = now
    records.pass(passed)
    bytes.pass(passed)
    return records.left > 0 && bytes.left > 0
  }

  /// Notes a record that was written.
  mutating func wrote(bytes count: Int) {
    records.left -= 1
    bytes.left -= Double(count)
  }
}

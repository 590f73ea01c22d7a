import EventLoop

/// Limits the rate of a replay. A value.
///
/// After a pause it allows at most a tenth of a second's worth at once.
struct ReplayRate {
  private var records: TokenBucket?
  private var bytes: TokenBucket?

  /// - Parameters:
  ///   - records: per second; nil for no limit.
  ///   - bytes: of keys and values per second; nil for no limit.
  init(records: Int?, bytes: Int?) {
    func bucket(_ perSecond: Int) -> TokenBucket { TokenBucket(perSecond: perSecond, burstMilliseconds: 100) }
    (self.records, self.bytes) = (records.map(bucket), bytes.map(bucket))
  }

  /// Whether a record may be written now.
  ///
  /// - Parameter now: milliseconds of a monotonic clock.
  mutating func allows(at now: UInt64) -> Bool { records?.hasOne(at: now) ?? true && bytes?.hasOne(at: now) ?? true }

  /// Notes a record that was written.
  mutating func wrote(bytes count: Int) {
    records?.spend(1)
    bytes?.spend(count)
  }
}

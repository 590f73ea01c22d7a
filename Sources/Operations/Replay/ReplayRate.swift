/// How much a replay may write in a time. A value: what was written and the time in, whether more may be written out.
///
/// What was not written for a while is not made up for by more than a tenth of a second.
struct ReplayRate {
  private var records: Bucket
  private var bytes: Bucket

  /// What may still be written of one kind; less than nothing where the last record was more than there was.
  private struct Bucket {
    /// In a second; nil: as much as there is.
    let rate: Double?
    var left: Double

    init(_ rate: Int?) {
      self.rate = rate.map(Double.init)
      left = self.rate.map { $0 / 10 } ?? 0
    }

    mutating func pass(_ milliseconds: Double) {
      guard let rate else { return }
      left = min(left + rate * milliseconds / 1000, max(1, rate / 10))
    }

    mutating func take(_ amount: Int) { if rate != nil { left -= Double(amount) } }

    var isEmpty: Bool { rate != nil && left <= 0 }
  }

  private var last: UInt64?

  /// - Parameters:
  ///   - records: in a second; nil: as many as there are.
  ///   - bytes: of keys and values, in a second; nil: as many as there are.
  init(records: Int?, bytes: Int?) { (self.records, self.bytes) = (Bucket(records), Bucket(bytes)) }

  /// Whether a record may be written.
  ///
  /// - Parameter now: milliseconds of a clock that goes on.
  mutating func allows(at now: UInt64) -> Bool {
    let passed = Double(now - (last ?? now))
    last = now
    records.pass(passed)
    bytes.pass(passed)
    return !records.isEmpty && !bytes.isEmpty
  }

  /// A record was written.
  mutating func wrote(bytes count: Int) {
    records.take(1)
    bytes.take(count)
  }
}

/// Detects a transaction that stays open and holds back the records after its first one. A value.
struct HeldBack {
  /// A change to log.
  enum Change: Equatable {
    /// A transaction has been open since the record at this offset, and so many offsets wait for its end.
    case found(offset: Int64, records: Int64)
    /// It has ended.
    case ended
  }

  private enum State {
    case nothing
    case open(offset: Int64, since: Int64, isTold: Bool)
  }

  private var state = State.nothing

  /// How long a transaction may be open. Most end within a moment, unless their producers are gone.
  static let patienceMilliseconds: Int64 = 10_000

  /// Notes where reading has stopped, and how many offsets follow; 0 if that is not known to be the last stable offset.
  ///
  /// - Parameter now: by the steady clock.
  mutating func observe(_ offset: Int64, records: Int64, at now: Int64) -> Change? {
    switch state {
    case .open(offset, let since, let isTold) where records > 0:
      guard !isTold, now - since >= Self.patienceMilliseconds else { return nil }
      state = .open(offset: offset, since: since, isTold: true)
      return .found(offset: offset, records: records)
    case .open(_, _, let isTold):
      state = records > 0 ? .open(offset: offset, since: now, isTold: false) : .nothing
      return isTold ? .ended : nil
    case .nothing:
      if records > 0 { state = .open(offset: offset, since: now, isTold: false) }
      return nil
    }
  }
}

/// The headers of a record that claims the dead letters for one run.
///
/// It lies in `notifications.dead-letters` and has no value.
public enum LetterClaimHeader: String, Sendable, CaseIterable {
  /// The kind of the claim: `begins`, `goes-on` or `ends`.
  case claim = "carillon-dead-letter-claim"
  /// The run's unique name.
  case run = "carillon-dead-letter-run"
  /// The offset of the newest claim before the run began; absent if there was none.
  case after = "carillon-dead-letter-after"
  /// The person who runs it.
  case by = "carillon-dead-letter-by"
  /// The time, by RFC 3339.
  case at = "carillon-dead-letter-at"
}

/// A claim of the dead letters: a record in partition 0 of `notifications.dead-letters`.
///
/// One run at a time redrives or discards letters. If several begin at once, the order in the partition decides: see ``LetterClaims``.
public struct LetterClaim: Sendable, Equatable {
  /// What a run claims.
  public enum Kind: Sendable, Equatable {
    /// The run begins, after the claim at this offset; nil if it found none.
    case begins(after: Int64?)
    /// The run goes on.
    case goesOn
    /// The run has ended.
    case ends
  }

  /// The partition of all claims.
  public static var partition: Int32 { 0 }

  /// What the run claims.
  public var kind: Kind
  /// The run's name.
  public var run: String
  /// The person who runs it: `user@host`.
  public var by: String
  /// The time, in milliseconds since 1970.
  public var at: Int64

  /// Creates a claim from its parts.
  public init(_ kind: Kind, run: String, by: String, at: Int64) { (self.kind, self.run, self.by, self.at) = (kind, run, by, at) }

  /// Reads a claim from a record's headers; `nil` for a letter and all other records.
  public init?(headers: [(name: String, value: String)]) {
    func value(_ header: LetterClaimHeader) -> String? { headers.last { $0.name == header.rawValue }?.value }
    guard !headers.contains(where: { $0.name == DeadLetterHeader.reason.rawValue }), let run = value(.run) else { return nil }
    switch value(.claim) {
    case "begins": kind = .begins(after: value(.after).flatMap { Int64($0) })
    case "goes-on": kind = .goesOn
    case "ends": kind = .ends
    default: return nil
    }
    (self.run, by, at) = (run, value(.by) ?? "", value(.at).flatMap { Timestamp.parse($0) } ?? 0)
  }

  /// The headers of the claim's record.
  public var headers: [(name: String, value: String)] {
    var (word, after): (String, Int64?) = ("", nil)
    switch kind {
    case .begins(let offset): (word, after) = ("begins", offset)
    case .goesOn: word = "goes-on"
    case .ends: word = "ends"
    }
    let fields: [(LetterClaimHeader, String?)] = [
      (.claim, word), (.run, run), (.after, after.map { String($0) }), (.by, by), (.at, Timestamp.text(at)),
    ]
    return fields.compactMap { header, value in value.map { (header.rawValue, $0) } }
  }
}

/// Decides which run has the dead letters: a value that takes the claims in order.
///
/// A run that begins names the newest claim that it has seen. Its claim counts only if no other has counted since. So if several begin at
/// once, the first in the partition gets the letters. There is no clock: the runs that wait detect a silent run.
public struct LetterClaims: Sendable {
  /// The latest claim of the run that has the letters; nil if none has.
  public private(set) var holder: LetterClaim?
  /// The offset of the newest claim that counts; nil if there is none.
  public private(set) var newest: Int64?

  /// Creates the state before the first claim.
  public init() {}

  /// Takes the claim at an offset.
  ///
  /// - Returns: whether it counts.
  @discardableResult
  public mutating func take(_ claim: LetterClaim, at offset: Int64) -> Bool {
    switch claim.kind {
    case .begins(let after):
      // Claims before the part that is read are unknown, so the first one counts.
      guard newest == nil || after == newest else { return false }
      holder = claim
    case .goesOn:
      guard newest == nil || holder?.run == claim.run else { return false }
      holder = claim
    case .ends:
      guard newest == nil || holder?.run == claim.run else { return false }
      holder = nil
    }
    newest = offset
    return true
  }
}

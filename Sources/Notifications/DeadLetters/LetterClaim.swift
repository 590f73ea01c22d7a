/// The headers of a record in `notifications.dead-letters` that says who works on the letters there. It has no value.
public enum LetterClaimHeader: String, Sendable, CaseIterable {
  /// What the run says: `begins`, `goes-on` or `ends`.
  case claim = "carillon-dead-letter-claim"
  /// The run: a name of its own for each.
  case run = "carillon-dead-letter-run"
  /// The offset of the newest claim that a run found when it began; absent where it found none.
  case after = "carillon-dead-letter-after"
  /// Who runs it.
  case by = "carillon-dead-letter-by"
  /// When, by RFC 3339.
  case at = "carillon-dead-letter-at"
}

/// Who works on the dead letters: a record of its own in partition 0 of `notifications.dead-letters`.
///
/// One run at a time redrives or discards letters. The order of the partition decides between runs that begin at once: see ``LetterClaims``.
public struct LetterClaim: Sendable, Equatable {
  /// What a run says.
  public enum Kind: Sendable, Equatable {
    /// It begins, after the claim at this offset; nil where it found none.
    case begins(after: Int64?)
    /// It is still at work.
    case goesOn
    /// It has ended.
    case ends
  }

  /// The partition that all claims lie in.
  public static var partition: Int32 { 0 }

  /// What the run says.
  public var kind: Kind
  /// The run.
  public var run: String
  /// Who runs it: `user@host`.
  public var by: String
  /// When, in milliseconds since 1970.
  public var at: Int64

  /// A claim of its parts.
  public init(_ kind: Kind, run: String, by: String, at: Int64) { (self.kind, self.run, self.by, self.at) = (kind, run, by, at) }

  /// Reads a claim out of a record's headers; `nil` for a letter, and for all other records.
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

  /// The headers of its record.
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

/// Which run the letters belong to: a value that takes the claims in the order of their partition.
///
/// A run that begins names the newest claim that it has seen. It counts only if no other has counted since, so of several that begin at once
/// the first in the partition gets the letters. It asks no clock: a run that is silent is found out by those who wait for it.
public struct LetterClaims: Sendable {
  /// The run that has the letters; nil where none has.
  public private(set) var holder: LetterClaim?
  /// The offset of the newest claim that counts; nil before the first.
  public private(set) var newest: Int64?

  /// No claim yet.
  public init() {}

  /// Takes the claim at an offset.
  ///
  /// - Returns: whether it counts.
  @discardableResult
  public mutating func take(_ claim: LetterClaim, at offset: Int64) -> Bool {
    switch claim.kind {
    case .begins(let after):
      // Of what lies before the part that is read nothing is known.
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

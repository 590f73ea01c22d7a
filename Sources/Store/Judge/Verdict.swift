public import Notifications

/// The verdict of the judge script on one request for one device.
public enum Verdict {
  /// How the request was judged: `queued`, `expired`, `collapsed`, `canceled`, `duplicate`, `unregistered`, `wrongUser` or `wrongApplication`.
  case judged(JournalJudgement, Effect = Effect())
  /// The device's data in Redis cannot be read, so nothing was applied.
  case unreadable(String)
  /// Something is pending for the device, so nothing was applied: ask the schedules first.
  case schedules

  /// What applying a request did, beside the judgement.
  public struct Effect {
    /// Where the device is connected; nil if it is not, or if the entry is not in the mailbox.
    public var presence: Presence?
    /// The request was applied before, from this same record: all its outcomes are emitted again.
    public var isRepeat = false

    /// Nothing was applied.
    public init() {}
  }
}

extension Verdict {
  /// The script's numbers, and the flags of the parts that follow.
  private enum Part {
    static let collapsed: UInt8 = 0
    static let new: UInt8 = 1
    static let again: UInt8 = 2
    static let duplicate: UInt8 = 3
    static let wrongUser: UInt8 = 4
    static let unregistered: UInt8 = 5
    static let wrongApplication: UInt8 = 6
    static let unreadable: UInt8 = 7
    static let presence: UInt8 = 8
    static let revision: UInt8 = 16
    static let other: UInt8 = 32
    static let canceled: UInt8 = 64
    static let verdict: UInt8 = 7
    static let schedules: UInt8 = 128
  }

  /// Reads a verdict and its parts in the script's answer; nil if the script never answers that.
  ///
  /// - Parameters:
  ///   - revision: the request's own.
  ///   - isExpired: whether the request was sent to the script as expired.
  init?(_ first: UInt8, _ reader: inout ByteReader, revision own: Revision, isExpired: Bool) {
    if first == Part.unreadable {
      guard let count = reader.byte(), let reason = reader.bytes(Int(count)) else { return nil }
      self = .unreadable(String(decoding: reason, as: UTF8.self))
      return
    }
    if first == Part.schedules {
      self = .schedules
      return
    }
    var effect = Effect()
    var (revision, other): (Revision, JournalReference?) = (own, nil)
    if first & Part.presence != 0 {
      guard let bytes = reader.bytes(Presence.byteCount), let presence = Presence(bytes) else { return nil }
      effect.presence = presence
    }
    if first & Part.revision != 0 {
      guard let bytes = reader.bytes(Revision.byteCount), let kept = Revision(bytes: bytes) else { return nil }
      revision = kept
    }
    if first & Part.other != 0 {
      guard let reference = JournalReference(&reader) else { return nil }
      other = reference
    }
    let number = first & Part.verdict
    effect.isRepeat = number == Part.again
    let outcome: Outcome
    switch number {
    case Part.collapsed where other == nil: return nil
    case Part.collapsed: outcome = first & Part.canceled != 0 ? .canceled : .collapsed
    case Part.new, Part.again: outcome = isExpired ? .expired : .queued
    case Part.duplicate: outcome = .duplicate
    case Part.wrongUser: outcome = .wrongUser
    case Part.unregistered: outcome = .unregistered
    case Part.wrongApplication: outcome = .wrongApplication
    default: return nil
    }
    self = .judged(JournalJudgement(outcome, revision: revision, other: other), effect)
  }
}

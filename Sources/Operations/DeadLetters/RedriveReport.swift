public import Kafka
public import Notifications

/// An order to redrive or discard dead letters.
public struct LetterOrder: Sendable {
  /// The work to do.
  public enum Action: Sendable {
    /// Write them to the requests again, with changes.
    case redrive(RequestEdits)
    /// Note that they need no action.
    case discard
  }

  /// The work to do.
  public var action: Action
  /// The letters to work on.
  public var filter: LetterFilter
  /// Whether it includes letters that were handled before.
  public var isAgain = false
  /// Whether letters that would be rejected again are written all the same.
  public var isUnchecked = false
  /// Whether a letter that ended workers is written again; at most one.
  public var isForced = false
  /// Whether nothing is written.
  public var isDryRun = false
  /// The person who orders it: `user@host`.
  public var by: String
  /// The person's note.
  public var note: String?
  /// The cluster's name, for origins.
  public var cluster: String
  /// The brokers' limits for writes to the requests and the dead letters.
  public var limits = WriteLimits()
  /// How long another run may be silent before this one claims its letters, in milliseconds.
  public var silenceMilliseconds: Int64 = 20_000
  /// How many of the redriven requests to follow; see ``OutcomeWatch``.
  public var followed = 0

  /// An order of its parts.
  public init(_ action: Action, _ filter: LetterFilter, by: String, cluster: String) {
    (self.action, self.filter, self.by, self.cluster) = (action, filter, by, cluster)
  }
}

/// The result for one letter.
public struct LetterResult: Sendable {
  /// The kinds of results.
  public enum Kind: Sendable, Equatable {
    /// It was written to the requests, at this place; in a dry run it would be.
    case redriven(RecordPlace?, isExpired: Bool)
    /// It was discarded; in a dry run it would be.
    case discarded
    /// It is left as it is.
    case refused(RedriveRefusal)
  }

  /// The letter's facts.
  public var letter: LetterFacts
  /// The apns-id of the redriven record; nil if it derives from an unknown place.
  public var id: NotificationID?
  /// How often it came for its reason.
  public var times: Int
  /// The kind of result.
  public var kind: Kind
}

/// The results for all letters.
public struct RedriveReport: Sendable, Equatable {
  /// Letters that match the filter.
  public var selected = 0
  /// All letters.
  public var all = 0
  /// Letters that were redriven or discarded, or would be.
  public var done = 0
  /// How many of these have expired.
  public var expired = 0
  /// How many of these a newer request has superseded; counted only in a dry run.
  public var superseded = 0
  /// How many of these were too many to be compared.
  public var unknownSuperseded = 0
  /// Letters that were handled before and are left alone.
  public var handled = 0
  /// Letters whose value is gone, so they cannot be written.
  public var gone = 0
  /// Letters that cannot be written for another reason.
  public var refused = 0
  /// Whether it was stopped early. The same order continues.
  public var isInterrupted = false
  /// The redriven records to follow.
  public var written: [Written] = []

  /// A redriven record.
  public struct Written: Sendable, Equatable {
    /// Its letter.
    public var letter: RecordPlace
    /// Its place in the requests.
    public var request: RecordPlace
  }

  /// Makes a report without letters.
  public init() {}

  /// Counts a letter.
  mutating func count(_ kind: LetterResult.Kind) {
    switch kind {
    case .redriven(_, let isExpired):
      done += 1
      if isExpired { expired += 1 }
    case .discarded: done += 1
    case .refused(.handled): handled += 1
    case .refused(.gone): gone += 1
    case .refused: refused += 1
    }
  }
}

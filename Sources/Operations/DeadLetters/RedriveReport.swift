public import Kafka
public import Notifications

/// What is done with dead letters.
public struct LetterOrder: Sendable {
  /// What there is to do.
  public enum Action: Sendable {
    /// They are written to the requests again, with changes.
    case redrive(RequestEdits)
    /// It is noted that nothing is to be done with them.
    case discard
  }

  /// What there is to do.
  public var action: Action
  /// With which of them.
  public var filter: LetterFilter
  /// Whether those with which something was done before are meant, too.
  public var isAgain = false
  /// Whether what would be rejected again is written all the same.
  public var isUnchecked = false
  /// Whether a letter is written again that ended workers; one of them at most.
  public var isForced = false
  /// Whether nothing is written.
  public var isDryRun = false
  /// Who wants it: `user@host`.
  public var by: String
  /// What the person wrote about it.
  public var note: String?
  /// The cluster's name, for origins.
  public var cluster: String
  /// What the brokers take as one batch of the requests and of the dead letters.
  public var limits = WriteLimits()
  /// How long another run may say nothing before its letters are taken over, in milliseconds.
  public var silenceMilliseconds: Int64 = 20_000
  /// How many of the redriven ones are to be followed; see ``OutcomeWatch``.
  public var followed = 0

  /// An order of its parts.
  public init(_ action: Action, _ filter: LetterFilter, by: String, cluster: String) {
    (self.action, self.filter, self.by, self.cluster) = (action, filter, by, cluster)
  }
}

/// What became of one letter.
public struct LetterResult: Sendable {
  /// What became of it.
  public enum Kind: Sendable, Equatable {
    /// It lies in the requests again, where Kafka has said so; or it would, in a dry run.
    case redriven(RecordPlace?, isExpired: Bool)
    /// It is noted as discarded; or it would be.
    case discarded
    /// It is left as it is.
    case refused(RedriveRefusal)
  }

  /// What the letter says of itself.
  public var letter: LetterFacts
  /// The apns-id of the redriven record; nil where it is derived from a place that is not known.
  public var id: NotificationID?
  /// How often it has come for its reason.
  public var times: Int
  /// What became of it.
  public var kind: Kind
}

/// What became of all letters.
public struct RedriveReport: Sendable, Equatable {
  /// Letters that were asked for.
  public var selected = 0
  /// Letters that there are at all.
  public var all = 0
  /// What was redriven or discarded; or would be.
  public var done = 0
  /// Of these, what may not be shown any more.
  public var expired = 0
  /// Of these, what a newer request has superseded; only looked for in a dry run.
  public var superseded = 0
  /// Of these, of which that was not looked for, since they are too many.
  public var unknownSuperseded = 0
  /// What was redriven or discarded before, and was left alone.
  public var handled = 0
  /// What could not be written again since its value is gone.
  public var gone = 0
  /// What could not be written again for another reason.
  public var refused = 0
  /// Whether it was stopped before its end: the same order goes on.
  public var isInterrupted = false
  /// Those of the redriven records that are to be followed: the letter, and where the record lies.
  public var written: [Written] = []

  /// A record that was redriven.
  public struct Written: Sendable, Equatable {
    /// The letter that it was.
    public var letter: RecordPlace
    /// Where it lies in the requests.
    public var request: RecordPlace
  }

  /// Nothing yet.
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

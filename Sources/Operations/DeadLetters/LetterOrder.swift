package import Notifications

/// An order to redrive or discard dead letters.
package struct LetterOrder: Sendable {
  /// The changes of the letters that are written to the requests again; nil if they are discarded.
  package var edits: RequestEdits?
  /// The letters to work on.
  package var filter: LetterFilter
  /// Whether it includes letters that were handled before.
  package var isAgain = false
  /// Whether a letter that ended workers is written again; at most one.
  package var isForced = false
  /// The person who orders it: `user@host`.
  package var by: String
  /// The person's note.
  package var note: String?
  /// The cluster's name, for origins.
  package var cluster: String
  /// How long another run may be silent before this one claims its letters, in milliseconds.
  package var silenceMilliseconds: Int64 = 20_000

  /// An order of its parts.
  package init(_ edits: RequestEdits?, _ filter: LetterFilter, by: String, cluster: String) {
    (self.edits, self.filter, self.by, self.cluster) = (edits, filter, by, cluster)
  }
}

/// The result for one letter.
package struct LetterResult: Sendable {
  /// The kinds of results.
  package enum Kind: Sendable, Equatable {
    /// It was written to the requests, at this place; in a dry run it would be.
    case redriven(RecordPlace?, isExpired: Bool)
    /// It was discarded; in a dry run it would be.
    case discarded
    /// It is left as it is.
    case refused(RedriveRefusal)
  }

  /// The letter.
  package var letter: LetterFacts
  /// The apns-id of the redriven record; nil if it derives from an unknown place.
  package var id: NotificationID?
  /// The kind of result.
  package var kind: Kind
}

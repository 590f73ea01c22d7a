package import Kafka
package import Notifications

/// An order to redrive or discard dead letters.
package struct LetterOrder: Sendable {
  /// The work to do.
  package enum Action: Sendable {
    /// Write them to the requests again, with changes.
    case redrive(RequestEdits)
    /// Note that they need no action.
    case discard
  }

  /// The work to do.
  package var action: Action
  /// The letters to work on.
  package var filter: LetterFilter
  /// Whether it includes letters that were handled before.
  package var isAgain = false
  /// Whether letters that would be rejected again are written all the same.
  package var isUnchecked = false
  /// Whether a letter that ended workers is written again; at most one.
  package var isForced = false
  /// Whether nothing is written.
  package var isDryRun = false
  /// The person who orders it: `user@host`.
  package var by: String
  /// The person's note.
  package var note: String?
  /// The cluster's name, for origins.
  package var cluster: String
  /// The brokers' limits for writes to the requests and the dead letters.
  package var limits = WriteLimits()
  /// How long another run may be silent before this one claims its letters, in milliseconds.
  package var silenceMilliseconds: Int64 = 20_000
  /// How many of the redriven requests to follow; see ``OutcomeWatch``.
  package var followed = 0

  /// An order of its parts.
  package init(_ action: Action, _ filter: LetterFilter, by: String, cluster: String) {
    (self.action, self.filter, self.by, self.cluster) = (action, filter, by, cluster)
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
  package var letter: LetterSummary
  /// The apns-id of the redriven record; nil if it derives from an unknown place.
  package var id: NotificationID?
  /// The kind of result.
  package var kind: Kind
}

/// The counts of letters in a redrive or a discard.
package enum RedriveCount: String, Sendable, CaseIterable {
  /// All letters.
  case letters
  /// Letters that match the filter.
  case selected
  /// Letters that were redriven, or would be.
  case redriven
  /// Letters that were discarded, or would be.
  case discarded
  /// Redriven letters that have expired.
  case expired
  /// Letters that were handled before and are left alone.
  case handled
  /// Letters whose value is gone, so they cannot be written.
  case gone
  /// Letters that cannot be written for another reason.
  case left
}

/// The results for all letters.
package struct RedriveReport: Sendable {
  /// The counts.
  package internal(set) var counts = Tally<RedriveCount>()
  /// Whether it was stopped early. The same order continues.
  package internal(set) var isInterrupted = false
  /// The redriven records to follow, with their letters' names.
  package internal(set) var written: [(name: String, partition: Int32, offset: Int64)] = []

  /// Letters that were redriven or discarded, or would be.
  package var done: Int { counts[.redriven] + counts[.discarded] }

  mutating func count(_ kind: LetterResult.Kind) {
    switch kind {
    case .redriven(_, let isExpired):
      counts[.redriven] += 1
      if isExpired { counts[.expired] += 1 }
    case .discarded: counts[.discarded] += 1
    case .refused(.gone): counts[.gone] += 1
    case .refused: counts[.left] += 1
    }
  }
}

/// A count of a run that publishes requests again. The raw value is its name in JSON.
package enum RunCount: String, Sendable, CaseIterable {
  /// Records written again, or in a dry run to be written.
  case written
  /// Letters that were discarded, or would be.
  case discarded

  /// Records that were not selected.
  case passedOver
  /// Records that another replay has written.
  case ofReplays
  /// Requests that are due at a time and their occurrences, which do not become new requests.
  case ofSchedules
  /// Records whose origin the workers would reject. It is invalid, or more than five minutes ahead.
  case fromElsewhere
  /// Records that are larger than Kafka's limit with the headers of a replay.
  case tooLarge
  /// Letters that were handled before and are left alone.
  case handled
  /// Letters whose value is gone, so they cannot be written.
  case gone
  /// Letters that cannot be written for another reason.
  case left

  /// Written records that had been applied when the replay began. They have no effect.
  case applied
  /// Written records that have expired and are not shown.
  case expired
  /// Written records that break a rule and are rejected again.
  case rejected

  /// Whether it counts an effect of written records, which count as written as well.
  package var isEffect: Bool { [.applied, .expired, .rejected].contains(self) }
}

/// The counts of a run.
package struct RunCounts: Sendable, Hashable {
  /// Without zeros, so that equal counts are equal.
  private var counts: [RunCount: Int] = [:]

  /// Makes it without records.
  package init() {}

  /// A count.
  package internal(set) subscript(kind: RunCount) -> Int {
    get { counts[kind] ?? 0 }
    set { counts[kind] = newValue == 0 ? nil : newValue }
  }

  /// Counts a record, and the known effect of a written one.
  mutating func add(_ kind: RunCount, _ effect: RunCount? = nil) {
    self[kind] += 1
    if let effect { self[effect] += 1 }
  }

  static func + (one: RunCounts, other: RunCounts) -> RunCounts {
    var sum = one
    sum.counts.merge(other.counts, uniquingKeysWith: +)
    return sum
  }

  /// All records that were read.
  package var read: Int { counts.reduce(0) { $0 + ($1.key.isEffect ? 0 : $1.value) } }

  /// Records that were written, and letters that were discarded.
  package var done: Int { self[.written] + self[.discarded] }

  /// The most written records that have an effect. Only the workers know which are repeats.
  package var mayHaveEffect: Int { self[.written] - self[.applied] - self[.expired] - self[.rejected] }
}

/// How a run has ended.
package struct RunReport: Sendable {
  /// The counts.
  package internal(set) var counts: RunCounts
  /// Whether all was read. Otherwise it was stopped, or has failed.
  package internal(set) var isComplete: Bool
  /// The error that ended it.
  package internal(set) var failure: (any Error)?
}

/// The progress of a rebuild, and its result.
package struct RebuildReport: Sendable {
  /// Makes an empty report.
  package init() {}

  /// The steps of a rebuild.
  package enum Phase: String, Sendable {
    /// Reading the journal's end, for the incarnations of topics.
    case incarnations
    /// Reading `devices`.
    case registrations
    /// Reading `schedule`.
    case schedules
    /// Reading dead letters, for requests that crashed workers.
    case deadLetters = "dead letters"
    /// Reading requests and events.
    case requests
    /// Writing the markers.
    case markers
    /// The rebuild is complete.
    case done
  }

  /// The present step.
  package internal(set) var phase = Phase.registrations
  /// Offsets to read in this step. Some have no record, after transactions and compaction.
  package internal(set) var total: Int64 = 0
  /// Offsets of this step that were read.
  package internal(set) var read: Int64 = 0
  /// Records of this step that were read.
  package internal(set) var records: Int64 = 0
  /// Registrations that were applied.
  package internal(set) var registrations = 0
  /// States of schedules that were applied.
  package internal(set) var schedules = 0
  /// Requests that were applied.
  package internal(set) var requests = 0
  /// Events that ended a notification in a mailbox.
  package internal(set) var endings = 0
  /// Offsets of batches that cannot be read.
  package internal(set) var unreadable = 0
}

/// Why Redis was not rebuilt.
package enum RebuildRefusal: Error, Sendable, CustomStringConvertible {
  /// Redis has all its markers.
  case nothingToDo
  /// Another rebuild has the lock.
  case alreadyRunning(String)
  /// The group has committed no offset, so the workers start at the beginning by themselves.
  case newCluster

  /// The reason, and what to do.
  package var description: String {
    switch self {
    case .nothingToDo: "Redis has all its data: there is nothing to rebuild"
    case .alreadyRunning(let who):
      "Redis is already being rebuilt, by \(who); if that rebuild was killed, try again in ten seconds"
    case .newCluster: "no request was ever processed: the workers start by themselves, there is nothing to rebuild"
    }
  }
}

/// The progress of a rebuild, and its result.
public struct RebuildReport: Sendable {
  /// Makes an empty report.
  public init() {}

  /// The steps of a rebuild.
  public enum Phase: String, Sendable {
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
  public internal(set) var phase = Phase.registrations
  /// Offsets to read in this step. Some have no record, after transactions and compaction.
  public internal(set) var total: Int64 = 0
  /// Offsets of this step that were read.
  public internal(set) var read: Int64 = 0
  /// Records of this step that were read.
  public internal(set) var records: Int64 = 0
  /// Registrations that were applied.
  public internal(set) var registrations = 0
  /// States of schedules that were applied.
  public internal(set) var schedules = 0
  /// Requests that were applied.
  public internal(set) var requests = 0
  /// Events that ended a notification in a mailbox.
  public internal(set) var endings = 0
  /// Offsets of batches that cannot be read.
  public internal(set) var unreadable = 0
}

/// Why Redis was not rebuilt.
public enum RebuildRefusal: Error, Sendable, CustomStringConvertible {
  /// Redis has all its markers.
  case nothingToDo
  /// Another rebuild has the lock.
  case alreadyRunning(String)
  /// The group has committed no offset, so the workers start at the beginning by themselves.
  case newCluster

  /// The reason, and what to do.
  public var description: String {
    switch self {
    case .nothingToDo: "Redis has all its data: there is nothing to rebuild"
    case .alreadyRunning(let who):
      "Redis is already being rebuilt, by \(who); if that rebuild was killed, try again in ten seconds"
    case .newCluster: "no request was ever processed: the workers start by themselves, there is nothing to rebuild"
    }
  }
}

/// How far a rebuilding has come, and in the end what it has done.
public struct RebuildReport: Sendable {
  /// Of nothing.
  public init() {}

  /// What is being done.
  public enum Phase: String, Sendable {
    /// Reading the journal's end for what it tells of topics that were made again.
    case incarnations
    /// Reading `devices`.
    case registrations
    /// Reading `schedule`.
    case schedules
    /// Reading dead letters for requests that no worker could process.
    case deadLetters = "dead letters"
    /// Reading requests and events.
    case requests
    /// Writing the markers.
    case markers
    /// All is done.
    case done
  }

  /// What is being done.
  public internal(set) var phase = Phase.registrations
  /// Offsets of the phase that are to be read, some of them without a record: transactions and compaction leave such.
  public internal(set) var total: Int64 = 0
  /// Offsets of the phase that were read.
  public internal(set) var read: Int64 = 0
  /// Records of the phase that were read.
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
  /// What waits in mailboxes in the end; nil before, and where nothing was written.
  public internal(set) var waiting: (mailboxes: Int64, notifications: Int64)?
  /// Whether nothing was written.
  public var isDryRun = false
}

/// Why Redis was not rebuilt.
public enum RebuildRefusal: Error, Sendable, CustomStringConvertible {
  /// Redis has all its markers.
  case nothingToDo
  /// The lock is somebody else's.
  case alreadyRunning(String)
  /// The group has committed nothing, so workers begin at the beginning by themselves.
  case newCluster

  /// What to do.
  public var description: String {
    switch self {
    case .nothingToDo: "Redis has what it should: there is nothing to rebuild"
    case .alreadyRunning(let who):
      "Redis is being rebuilt already, by \(who); where that one was killed, try again in ten seconds"
    case .newCluster: "no request was ever worked on: the workers begin by themselves, there is nothing to rebuild"
    }
  }
}

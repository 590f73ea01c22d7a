/// A layout that outlives the process that wrote it, and the versions of it that this program reads.
///
/// A reader leaves bytes of a newer version alone: it does not remove, overwrite or acknowledge them, so that a newer program can read
/// them. The article Architecture has a table of the layouts.
public enum Layout: String, Sendable, CaseIterable {
  /// All layouts of Redis and Kafka together: the number that the cluster's identity in Redis has.
  case cluster
  /// An entry of a mailbox or a delivery record.
  case entry = "mailbox_entry"
  /// A receipt, which devices keep.
  case receipt
  /// The state of a schedule, in Redis and Kafka.
  case schedule
  /// A record of the journal.
  case journal
  /// A record of `devices`; without a number it has version 1.
  case registration
  /// The keys of a bucket in Redis, as its number says.
  case bucket
  /// The tables of a device's state file.
  case stateFile = "state_file"
  /// A remembered result of service extensions.
  case extensionRun = "extension_result"

  /// The versions that this program reads. It writes the newest of them.
  public var versions: ClosedRange<Int> {
    switch self {
    case .cluster: 2...2
    case .entry: 4...4
    case .receipt: 2...4
    case .schedule: 1...1
    case .journal: 1...1
    case .registration: 1...1
    case .bucket: 1...1
    case .stateFile: 1...1
    case .extensionRun: 2...2
    }
  }

  /// The version that this program writes.
  public var newest: Int { versions.upperBound }

  /// Whether a newer program has written a version.
  public func isNewer(_ version: some BinaryInteger) -> Bool { version > newest }

  /// The reason why something of a newer version is left alone.
  public func newer(_ version: some BinaryInteger) -> String {
    "a newer program has written it: layout \(version) of \(rawValue), and this program reads \(newest) at most; it is left alone for a newer program"
  }
}

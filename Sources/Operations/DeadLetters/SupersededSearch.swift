import Kafka
import Notifications

/// For whom a notification is that has a collapse id, and which it is of several: a newer one of the same hash supersedes it.
struct CollapseKey: Sendable, Hashable {
  /// The hash of target, application and identifier.
  let hash: UInt64
  let revision: Revision
}

extension CollapseKey {
  /// The key of a request under one of its identifiers.
  init(_ view: RequestView, _ identifier: UnsafeRawBufferPointer) {
    self.init(
      hash: StableHash.hash("\(view.target.name)\n\(view.application.characters)\n\(identifier.characters)"),
      revision: view.envelope.revision)
  }
}

/// Finds out which letters a newer request has superseded by now, for a dry run. A value.
///
/// Superseded is what a request has outdated that keeps the rules, has the same target, application and collapse id, and a newer
/// revision. What was published to a single device of a person is not compared with what was published to the person. The requests are
/// read once, from the time of the oldest letter on; the letters are kept in memory, ``maximum`` of them at most.
struct SupersededSearch {
  /// Letters that are looked for at most; some 100 bytes each.
  static let maximum = 100_000

  private var wanted: [CollapseKey] = []
  /// The newest revision of each key that was met.
  private var newest: [UInt64: Revision] = [:]
  /// Where the letters' own records lie: they were not shown.
  private var own: Set<SourcePosition> = []
  /// When the oldest of them was published, in milliseconds since 1970.
  private(set) var since: Int64?
  /// Letters that were too many to be looked for.
  private(set) var unknown = 0

  /// Looks for a letter that would be redriven.
  ///
  /// - Parameter source: where its record lies.
  mutating func add(_ key: CollapseKey, at source: SourcePosition) {
    guard wanted.count < Self.maximum else { return unknown += 1 }
    wanted.append(key)
    newest[key.hash] = Revision(timestamp: 0, partition: 0, offset: 0)
    own.insert(source)
    since = min(since ?? .max, Int64(clamping: key.revision.timestamp))
  }

  /// Takes a record of the requests.
  mutating func take(_ record: RecordView, _ rules: RequestRules) {
    let position = SourcePosition(partition: record.partition, offset: record.offset, timestamp: record.timestamp)
    rules.withReading(of: record) { reading in
      guard case .accepted(let view) = reading else { return }
      view.forEachIdentifier { take(CollapseKey(view, $0), at: position) }
    }
  }

  /// Takes a request that keeps the rules and lies somewhere.
  mutating func take(_ key: CollapseKey, at position: SourcePosition) {
    guard let known = newest[key.hash], known < key.revision, !own.contains(position) else { return }
    newest[key.hash] = key.revision
  }

  /// How many of the letters are superseded.
  var count: Int { wanted.count { key in newest[key.hash].map { key.revision < $0 } ?? false } }
}

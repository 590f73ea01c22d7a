import Kafka
import Notifications
import Worker

/// The recipient, application and collapse id of a notification, and its published position. A newer one with the same hash supersedes it.
struct CollapseKey: Sendable, Hashable {
  /// The hash of target, application and identifier.
  let hash: UInt64
  let revision: Revision
}

extension CollapseKey {
  /// The key of a request for one of its identifiers.
  init(_ view: RequestView, _ identifier: UnsafeRawBufferPointer) {
    self.init(
      hash: StableHash.hash("\(view.target.name)\n\(view.application.characters)\n\(identifier.characters)"),
      revision: view.envelope.revision)
  }
}

/// Counts letters that a newer request has superseded, for a dry run. A value.
///
/// A letter is superseded if its redrive would be stale by the rule of newness, after all requests that keep the rules and have the same
/// target, application and collapse id. A request for a single device of a person is not compared with one for the person. The requests are
/// read once, from the time of the oldest letter on. The letters are kept in memory, ``maximum`` of them at most.
struct SupersededSearch {
  /// The most letters to compare; some 100 bytes each.
  static let maximum = 100_000

  private var wanted: [CollapseKey] = []
  /// The revision that a device keeps after the requests of each key that were read; nil before the first.
  private var kept: [UInt64: Revision?] = [:]
  /// The places of the letters' own records, which were not shown.
  private var own: Set<SourcePosition> = []
  /// The publication time of the oldest letter, in milliseconds since 1970.
  private(set) var since: Int64?
  /// The number of letters beyond the limit.
  private(set) var unknown = 0

  /// Adds a letter that would be redriven.
  ///
  /// - Parameter source: the place of its record.
  mutating func add(_ key: CollapseKey, at source: SourcePosition) {
    guard wanted.count < Self.maximum else { return unknown += 1 }
    wanted.append(key)
    kept[key.hash] = .some(nil)
    own.insert(source)
    since = min(since ?? .max, Int64(clamping: key.revision.timestamp))
  }

  /// Takes a record of the requests.
  mutating func take(_ record: RecordView, _ rules: RequestRules) {
    let position = SourcePosition(record)
    rules.withReading(of: record) { reading in
      guard case .accepted(let view) = reading else { return }
      view.forEachIdentifier { take(CollapseKey(view, $0), at: position) }
    }
  }

  /// Takes a valid request at a place.
  mutating func take(_ key: CollapseKey, at position: SourcePosition) {
    guard let known = kept[key.hash], !own.contains(position) else { return }
    kept[key.hash] = known.map { $0.judging(key.revision) ?? $0 } ?? key.revision
  }

  /// The number of superseded letters.
  var count: Int {
    wanted.count { key in if case let known?? = kept[key.hash] { known.judging(key.revision) == nil } else { false } }
  }
}

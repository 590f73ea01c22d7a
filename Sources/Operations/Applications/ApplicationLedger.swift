package import EventLoop
package import Kafka
package import Notifications
package import Worker

/// The stops of all applications and what they were granted, as a person reads and changes them: an actor on a loop.
package actor ApplicationLedger: LoopActor {
  /// An application that is stopped, or was, or was granted something.
  package struct Entry: Sendable, Equatable {
    /// The application.
    package var application: Name
    /// Its stops and grants, as the newest record of it says.
    package var stops: ApplicationStops
  }

  /// The result of a change.
  package struct Outcome: Sendable, Equatable {
    /// The stops by the newest record.
    package var stops: ApplicationStops
    /// Whether a record was written, or would be in a dry run.
    package var isChanged: Bool
    /// Whether somebody else wrote at the same time.
    package var isContested = false
  }

  /// The actor's loop.
  package nonisolated let loop: EventLoop
  let kafka: KafkaConfiguration
  let topics: Topics
  private var topic: String { topics.applications }
  private let silenceMilliseconds: Int
  private let onProgress: @Sendable (ReadingProgress) -> Void
  private let onRefused: @Sendable (SourceCoordinates, String) -> Void

  /// What the records of one application say.
  private struct Known {
    var stops = ApplicationStops()
    /// The place of its newest record.
    var newest: SourcePosition?
    /// The places of its records of the last moments, oldest first.
    var places: [SourcePosition] = []
  }

  private static let keptPlaces = 16

  private final class Applications {
    var all: [Name: Known] = [:]

    func take(_ record: RecordView, _ onRefused: (SourceCoordinates, String) -> Void) {
      guard let name = record.application(onRefused) else { return }
      let position = SourcePosition(record)
      var known = all[name] ?? Known()
      do throws(FieldError) {
        if let value = record.value {
          known.stops = try ApplicationStops(value, timestamp: record.timestamp)
        } else {
          known.stops = ApplicationStops()
        }
      } catch {
        onRefused(SourceCoordinates(record), "\(error)")
      }
      known.newest = position
      known.places = known.places.suffix(ApplicationLedger.keptPlaces) + [position]
      all[name] = known
    }
  }

  /// Makes a ledger of a cluster.
  ///
  /// - Parameters:
  ///   - silenceMilliseconds: how long Kafka may send nothing before reading fails, though there is more to read.
  ///   - onProgress: called during long reads.
  ///   - onRefused: called with the place of each ignored record, and why it is ignored.
  package init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, silenceMilliseconds: Int = 60_000,
    onProgress: @escaping @Sendable (ReadingProgress) -> Void, onRefused: @escaping @Sendable (SourceCoordinates, String) -> Void
  ) {
    (self.loop, self.kafka, self.topics) = (loop, kafka, topics)
    (self.silenceMilliseconds, self.onProgress, self.onRefused) = (silenceMilliseconds, onProgress, onRefused)
  }

  // MARK: Reading

  /// All applications that are stopped, or were, or were granted something, by their names.
  package func read() async throws -> [Entry] {
    try await readAll().all.map { Entry(application: $0.key, stops: $0.value.stops) }
      .filter { !$0.stops.isEmpty }.sorted { $0.application < $1.application }
  }

  /// - Parameter skipped: the offsets of records that do not count.
  private func readAll(except skipped: [Int64] = []) async throws -> Applications {
    let applications = Applications()
    let reader = TopicReader(on: loop, kafka, silenceMilliseconds: silenceMilliseconds)
    reader.onProgress = onProgress
    let topic = topic
    let stretches = try await Admin.with(kafka) { try await $0.stretches(of: topic) }.filter { $0.partition.partition == 0 }
    try await reader.read(stretches, "the applications", isCompacted: true) { [onRefused] record in
      if !skipped.contains(record.offset) { applications.take(record, onRefused) }
    }
    return applications
  }

  // MARK: Changing

  /// Stops an application, starts it again or changes its grants, and reads the result back.
  ///
  /// A record has all stops and grants of its application. So a record of somebody else that came between the state that was read and the
  /// own record would be undone: then the change is made again, from that record.
  ///
  /// - Parameters:
  ///   - oldest: stops that ended before this time, in milliseconds since 1970, are dropped.
  ///   - isDryRun: whether nothing is written.
  package func change(
    _ application: Name, _ change: ApplicationStops.Change, forgettingBefore oldest: Int64, isDryRun: Bool = false
  ) async throws -> Outcome {
    let before = try await readAll().all[application] ?? Known()
    guard let value = before.stops.value(change, forgettingBefore: oldest) else { return Outcome(stops: before.stops, isChanged: false) }
    if isDryRun { return Outcome(stops: before.stops, isChanged: true) }
    var (newest, next, written): (SourcePosition?, [UInt8], [Int64]) = (before.newest, value, [])
    for _ in 0..<Self.maximumAttempts {
      let offset = try await write(application, next)
      written.append(offset)
      let others = try await readAll(except: written).all[application] ?? Known()
      guard let other = others.newest, other.offset > newest?.offset ?? -1, other.offset < offset,
        let again = others.stops.value(change, forgettingBefore: oldest)
      else { break }
      (newest, next) = (other, again)
    }
    guard let after = try await readAll().all[application] else { return Outcome(stops: before.stops, isChanged: true, isContested: true) }
    let others = after.places.contains { $0.offset > before.newest?.offset ?? -1 && !written.contains($0.offset) }
    return Outcome(stops: after.stops, isChanged: true, isContested: others)
  }

  private static let maximumAttempts = 4

  /// Writes a record, and returns its offset.
  private func write(_ application: Name, _ value: [UInt8]) async throws(KafkaError) -> Int64 {
    try await Producer.sendOne(on: loop, kafka, to: TopicPartition(topic, 0), key: Array(application.utf8), value: value).offset
  }
}

import EventLoop
import Kafka
package import Notifications
import Worker

/// An application that is stopped, or was, or was granted something.
package struct ApplicationEntry: Sendable, Equatable {
  /// The application.
  package var application: Name
  /// Its stops and grants, as the newest record of it says.
  package var stops: ApplicationStops
}

extension RateLimit {
  /// The numbers of the limit and its window.
  package var words: String {
    let numbers = [
      perTarget.map { "\(ReadableText.count($0, "request")) for one target" },
      perApplication.map { "\(ReadableText.count($0, "request")) in each partition" },
    ]
    return "\(numbers.compactMap(\.self).joined(separator: " and ")) in \(ReadableText.duration(milliseconds: window))"
  }
}

/// The result of a change of an application.
package struct ApplicationChange: Sendable, Equatable {
  /// The stops by the newest record.
  package var stops: ApplicationStops
  /// Whether a record was written, or would be in a dry run.
  package var isChanged: Bool
  /// Whether somebody else wrote at the same time.
  package var isContested = false
}

/// What the records of one application say.
private struct ApplicationRecords {
  var stops = ApplicationStops()
  /// The place of its newest record.
  var newest: SourcePosition?
  /// The places of its records of the last moments, oldest first.
  var places: [SourcePosition] = []
  private static let keptPlaces = 16

  mutating func take(_ record: RecordView, _ onRefused: (SourceCoordinates, String) -> Void) {
    do throws(FieldError) {
      stops = try record.value.map { value throws(FieldError) in try ApplicationStops(value, timestamp: record.timestamp) } ?? .init()
    } catch {
      onRefused(SourceCoordinates(record), "\(error)")
    }
    newest = SourcePosition(record)
    places = places.suffix(Self.keptPlaces) + [SourcePosition(record)]
  }
}

/// The stops of all applications and what they were granted, as a person reads and changes them.
extension ClusterTool {
  // MARK: Reading

  /// All applications that are stopped, or were, or were granted something, by their names.
  ///
  /// - Parameter moment: the deadline by the steady clock.
  package func applications(by moment: Int64 = .max) async throws -> [ApplicationEntry] {
    try await readAll(by: moment).map { ApplicationEntry(application: $0.key, stops: $0.value.stops) }
      .filter { !$0.stops.isEmpty }.sorted { $0.application < $1.application }
  }

  /// - Parameter skipped: the offsets of records that do not count.
  private func readAll(except skipped: [Int64] = [], by moment: Int64 = .max) async throws -> [Name: ApplicationRecords] {
    let applications = Gathered([Name: ApplicationRecords]())
    let topic = rules.topics.applications
    let stretches = try await Admin.with(kafka) { try await $0.stretches(of: topic) }.filter { $0.partition.partition == 0 }
    let isOver = { SteadyClock.milliseconds() >= moment }
    try await reader.read(stretches, "the applications", isCompacted: true, until: isOver) { [onRefused] record in
      guard !skipped.contains(record.offset), let name = record.application(onRefused) else { return }
      applications.value[name, default: ApplicationRecords()].take(record, onRefused)
    }
    guard !isOver() else { throw KafkaError(.timedOut, "read the applications") }
    return applications.value
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
  ) async throws -> ApplicationChange {
    let before = try await readAll()[application] ?? ApplicationRecords()
    guard let value = before.stops.value(change, forgettingBefore: oldest) else {
      return ApplicationChange(stops: before.stops, isChanged: false)
    }
    if isDryRun { return ApplicationChange(stops: before.stops, isChanged: true) }
    var (newest, next, written): (SourcePosition?, [UInt8], [Int64]) = (before.newest, value, [])
    for _ in 0..<Self.maximumAttempts {
      let offset = try await write(application, next)
      written.append(offset)
      let others = try await readAll(except: written)[application] ?? ApplicationRecords()
      guard let other = others.newest, other.offset > newest?.offset ?? -1, other.offset < offset,
        let again = others.stops.value(change, forgettingBefore: oldest)
      else { break }
      (newest, next) = (other, again)
    }
    guard let after = try await readAll()[application] else {
      return ApplicationChange(stops: before.stops, isChanged: true, isContested: true)
    }
    let others = after.places.contains { $0.offset > before.newest?.offset ?? -1 && !written.contains($0.offset) }
    return ApplicationChange(stops: after.stops, isChanged: true, isContested: others)
  }

  private static let maximumAttempts = 4

  /// Writes a record, and returns its offset.
  private func write(_ application: Name, _ value: [UInt8]) async throws(KafkaError) -> Int64 {
    try await Producer.sendOne(
      on: loop, kafka, to: TopicPartition(rules.topics.applications, 0), key: Array(application.utf8), value: value
    ).offset
  }
}

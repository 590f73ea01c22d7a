public import EventLoop
public import Kafka
public import Notifications
import Worker

/// A letter as a list shows it.
public struct LetterSummary: Sendable {
  /// What it says of itself.
  public var facts: LetterFacts
  /// How it stands with it.
  public var standing: LetterStanding
  /// How often its request has come for its reason.
  public var times: Int
}

/// What a list has found.
public struct LetterSurvey: Sendable {
  /// The letters that were asked for.
  public internal(set) var wanted = LetterGroups()
  /// All that were read.
  public internal(set) var all = LetterGroups()
  /// Whether it is not known of each letter how often it came.
  public internal(set) var hasTooManyRecurrences = false
}

/// A letter as it is shown in full.
public struct LetterDetails: Sendable {
  /// What it says of itself, how it stands with it, and how often it came.
  public var summary: LetterSummary
  /// What was done with it, in that order.
  public var states: [LetterState]
  /// Its key and headers, those that only a letter has left out, and its value where that was asked for.
  public var record: StoredRecord
  /// How many bytes its value has; nil where it has none, or where the value is not in the letter.
  public var valueBytes: Int?
  /// Whether the letter has no value and its source has none any more either; only told where the value was asked for.
  public var isGone = false
}

/// Letters in full.
public struct LetterPage: Sendable {
  /// The letters, as many as were asked for.
  public internal(set) var letters: [LetterDetails] = []
  /// How many more there are that were asked for.
  public internal(set) var further = 0
  /// How many there are at all.
  public internal(set) var all = 0
}

/// Lists and shows dead letters: an actor on a loop.
public actor DeadLetterReader {
  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let rules: RequestRules
  private let onProgress: @Sendable (ReadingProgress) -> Void

  /// Makes one for a cluster.
  ///
  /// - Parameter onProgress: told once a second while a topic is read.
  public init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules, onProgress: @escaping @Sendable (ReadingProgress) -> Void
  ) {
    self.loop = loop
    self.kafka = kafka
    self.rules = rules
    self.onProgress = onProgress
  }

  /// Counts the letters by reason and application.
  ///
  /// - Parameter onLetter: gets each of those that are asked for, as it is read.
  public func survey(_ filter: LetterFilter, onLetter: @escaping @Sendable (LetterSummary) -> Void) async throws -> LetterSurvey {
    try await withReading(filter) { reading, _, _ in
      let found = Gathered(LetterSurvey())
      try await reading.read { letter in
        found.value.all.take(letter.facts, letter.standing, times: letter.times)
        guard filter.matches(letter.facts, letter.standing) else { return }
        found.value.wanted.take(letter.facts, letter.standing, times: letter.times)
        onLetter(LetterSummary(facts: letter.facts, standing: letter.standing, times: letter.times))
      }
      found.value.hasTooManyRecurrences = reading.hasTooManyRecurrences
      return found.value
    }
  }

  /// Reads letters in full.
  ///
  /// - Parameters:
  ///   - limit: how many at most; of so many the records are kept in memory.
  ///   - withValues: whether their values are wanted: they may be private.
  public func show(_ filter: LetterFilter, limit: Int, withValues: Bool) async throws -> LetterPage {
    try await withReading(filter) { reading, reader, admin in
      let found = Gathered(LetterPage())
      let places = Gathered([RecordPlace: Int]())
      reading.onState = { state in
        if let index = places.value[state.letter] { found.value.letters[index].states.append(state) }
      }
      try await reading.read { letter in
        found.value.all += 1
        guard filter.matches(letter.facts, letter.standing) else { return }
        guard found.value.letters.count < limit else { return found.value.further += 1 }
        var record = StoredRecord(letter.record)
        let bytes = letter.facts.letter.isComplete ? record.value?.count : nil
        if !withValues { record.value = nil }
        record.removeLetterHeaders()
        places.value[letter.facts.place] = found.value.letters.count
        found.value.letters.append(
          LetterDetails(
            summary: LetterSummary(facts: letter.facts, standing: letter.standing, times: letter.times), states: [], record: record,
            valueBytes: bytes))
      }
      guard withValues else { return found.value }
      let missing = found.value.letters.filter { !$0.summary.facts.letter.isComplete }.map(\.summary.facts)
      let sources = try await LetterSources.read(missing, rules.topics.requests, reader, admin)
      for index in found.value.letters.indices {
        let facts = found.value.letters[index].summary.facts
        guard !facts.letter.isComplete else { continue }
        if let record = sources[facts.place] {
          (found.value.letters[index].record, found.value.letters[index].valueBytes) = (record, record.value?.count)
        } else {
          found.value.letters[index].isGone = true
        }
      }
      return found.value
    }
  }

  private func withReading<R>(_ filter: LetterFilter, _ body: (LetterReading, TopicReader, Admin) async throws -> R) async throws -> R {
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    return try await Admin.with(kafka) { admin in
      try await body(try await LetterReading(rules, from: filter.time.from, admin, reader), reader, admin)
    }
  }
}

/// The records of letters that had no room for them, read where they lie.
enum LetterSources {
  /// Reads them; what is gone is left out, and so is what another record has the place of by now.
  static func read(_ letters: [LetterFacts], _ requests: String, _ reader: TopicReader, _ admin: Admin) async throws(KafkaError)
    -> [RecordPlace: StoredRecord]
  {
    var wanted: [RecordPlace: [LetterFacts]] = [:]
    for letter in letters where letter.letter.source.topic == requests {
      let position = letter.letter.source.position
      wanted[RecordPlace(partition: position.partition, offset: position.offset), default: []].append(letter)
    }
    let found = Records()
    let places = try await admin.places(of: wanted.values.compactMap(\.first?.letter.source.position), in: requests)
    try await reader.read(at: places, "requests") { record in
      for letter in wanted[RecordPlace(partition: record.partition, offset: record.offset)] ?? []
      where letter.letter.source.position.timestamp == max(record.timestamp, 0) {
        found.records[letter.place] = StoredRecord(record)
      }
    }
    return found.records
  }

  private final class Records { var records: [RecordPlace: StoredRecord] = [:] }
}

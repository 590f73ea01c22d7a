import Kafka
package import Notifications
import Worker

/// A letter and what is known of it.
package struct LetterSummary: Sendable {
  /// What the letter says.
  package var facts: LetterFacts
  /// Whether it is pending, redriven or discarded.
  package var standing: LetterStanding
}

/// The result of a list.
package struct LetterSurvey: Sendable {
  /// The letters that match the filter.
  package internal(set) var wanted = LetterGroups()
  /// The number of all letters.
  package internal(set) var all = 0
}

/// A letter in full.
package struct LetterDetails: Sendable {
  /// The letter's summary.
  package var summary: LetterSummary
  /// What was done with it, in order.
  package var states: [LetterState]
  /// Its key and headers without those of letters, and its value if the caller wants it.
  package var record: StoredRecord
  /// The size of its value; nil if it has none, or if the value is not in the letter.
  package var valueBytes: Int?
  /// Whether neither the letter nor its source has the value any more; set only if the caller wants values.
  package var isGone = false
}

/// Letters in full.
package struct LetterPage: Sendable {
  /// The letters, up to the limit.
  package internal(set) var letters: [LetterDetails] = []
  /// How many more letters match the filter.
  package internal(set) var further = 0
  /// The number of all letters.
  package internal(set) var all = 0
}

/// Lists and shows dead letters.
extension ClusterTool {
  /// Counts the letters by reason and application.
  ///
  /// - Parameter onLetter: gets each matching letter as it is read.
  package func survey(letters filter: LetterFilter, onLetter: @escaping @Sendable (LetterSummary) -> Void) async throws -> LetterSurvey {
    try await withReading(filter) { reading, _, _ in
      let found = Gathered(LetterSurvey())
      try await reading.read { letter, _ in
        found.value.all += 1
        guard filter.matches(letter.facts, letter.standing) else { return }
        found.value.wanted.take(letter)
        onLetter(letter)
      }
      return found.value
    }
  }

  /// Reads letters in full.
  ///
  /// - Parameters:
  ///   - limit: the most letters. Their records are kept in memory.
  ///   - withValues: whether to read their values, which may be private.
  package func show(letters filter: LetterFilter, limit: Int, withValues: Bool) async throws -> LetterPage {
    try await withReading(filter) { reading, reader, admin in
      let found = Gathered(LetterPage())
      let places = Gathered([RecordPlace: Int]())
      reading.onState = { state in
        if let index = places.value[state.letter] { found.value.letters[index].states.append(state) }
      }
      try await reading.read { letter, record in
        found.value.all += 1
        guard filter.matches(letter.facts, letter.standing) else { return }
        guard found.value.letters.count < limit else { return found.value.further += 1 }
        var record = StoredRecord(record)
        let bytes = letter.facts.letter.isComplete ? record.value?.count : nil
        if !withValues { record.value = nil }
        record.removeLetterHeaders()
        places.value[letter.facts.place] = found.value.letters.count
        found.value.letters.append(LetterDetails(summary: letter, states: [], record: record, valueBytes: bytes))
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
    try await Admin.with(kafka) { admin in
      let reader = reader
      return try await body(try await LetterReading(rules, from: filter.time.from, admin, reader), reader, admin)
    }
  }
}

/// Reads the source records of letters that are too small to contain them.
enum LetterSources {
  /// Reads the records. Missing ones, and those whose place another record has by now, are left out.
  static func read(_ letters: [LetterFacts], _ requests: String, _ reader: TopicReader, _ admin: Admin) async throws(KafkaError)
    -> [RecordPlace: StoredRecord]
  {
    var wanted: [RecordPlace: [LetterFacts]] = [:]
    for letter in letters where letter.letter.source.topic == requests {
      let position = letter.letter.source.position
      wanted[RecordPlace(partition: position.partition, offset: position.offset), default: []].append(letter)
    }
    let found = Gathered([RecordPlace: StoredRecord]())
    let places = try await admin.places(of: wanted.values.compactMap(\.first?.letter.source.position), in: requests)
    try await reader.read(at: places, "requests") { record in
      for letter in wanted[RecordPlace(partition: record.partition, offset: record.offset)] ?? []
      where letter.letter.source.position.timestamp == max(record.timestamp, 0) {
        found.value[letter.place] = StoredRecord(record)
      }
    }
    return found.value
  }
}

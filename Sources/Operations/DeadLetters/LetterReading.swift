import Kafka
import Notifications
import Worker

/// Reads the dead letters of one moment. It reads first the states, then each letter with its standing.
final class LetterReading {
  /// Called with each state of a letter, after that letter.
  var onState: ((LetterState) -> Void)?
  private let rules: RequestRules
  private let reader: TopicReader
  private var ledger = LetterLedger()
  /// The stretches that the second reading has not read yet.
  private var left: [TopicStretch]

  /// Notes the places of the letters, and reads their states.
  ///
  /// - Parameter from: older records are not read, in milliseconds since 1970; nil for all.
  init(_ rules: RequestRules, from: Int64?, _ admin: Admin, _ reader: TopicReader) async throws(KafkaError) {
    (self.rules, self.reader) = (rules, reader)
    let all = try await admin.stretches(of: rules.topics.deadLetters, TimeRange(from: from))
    left = all
    try await reader.read(all, "what was done with dead letters") { [self] record in
      guard let state = LetterState(headers: record.texts) else { return }
      ledger.note(state, at: RecordPlace(partition: record.partition, offset: record.offset))
    }
  }

  /// Whether the second reading is complete.
  var isAtEnd: Bool { left.allSatisfy(\.offsets.isEmpty) }

  /// Reads the letters; those of one partition in their order.
  ///
  /// - Parameters:
  ///   - run: sets the pace.
  ///   - isEnough: called before each record. If true, this record and the rest are left for the next call.
  ///   - body: gets each letter with its record, which is valid only during the call.
  func read(
    in run: RepublishingRun? = nil, until isEnough: @escaping () -> Bool = { false },
    _ body: @escaping (LetterSummary, RecordView) -> Void
  ) async throws(KafkaError) {
    let next = Gathered((positions: [Int32: Int64](), isCut: false))
    try await reader.read(left, "dead letters", in: run, batch: run?.batch ?? 1_000, until: { next.value.isCut || isEnough() }) {
      [self] record in
      // A batch may contain many records.
      if next.value.isCut || isEnough() { return next.value.isCut = true }
      next.value.positions[record.partition] = record.offset + 1
      guard let facts = LetterFacts(record, rules) else {
        if let onState, let state = LetterState(headers: record.texts), state.letter.partition == record.partition { onState(state) }
        return
      }
      body(LetterSummary(facts: facts, standing: ledger.standing(of: facts.place)), record)
    }
    guard next.value.isCut || isEnough() else { return left = [] }
    left = left.map { stretch in
      let position = next.value.positions[stretch.partition.partition] ?? stretch.offsets.lowerBound
      return TopicStretch(stretch.partition, position, stretch.offsets.upperBound)
    }
  }
}

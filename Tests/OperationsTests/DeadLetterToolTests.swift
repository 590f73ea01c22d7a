import EventLoop
import Kafka
import Notifications
import Synchronization
import TestSupport
import Testing
import Worker

@testable import Operations

/// Letters on a Kafka: listed, shown, redriven and discarded.
@Suite struct DeadLetterToolTests {
  private static let payload = #"{"aps":{"alert":"x"}}"#

  /// Topics of one test, and the tools on them.
  private final class Desk: Sendable {
    let kafka: KafkaFixture
    let rules: RequestRules
    /// When the requests were published that the letters tell of.
    let time = WallClock.milliseconds()
    /// Requests that were there first.
    private let sources = Mutex(0)
    private let loop = EventLoop(name: "letters")

    init(_ kafka: KafkaFixture) async throws {
      self.kafka = kafka
      rules = RequestRules(topics: Topics(prefix: KafkaFixture.unique("letters") + "."))
      for topic in rules.topics.all { try kafka.embedded?.createTopic(topic, partitions: 2) }
      try await kafka.admin.ensureTopics(rules.topics.all.map { TopicSpecification($0, partitions: 2) })
      // Of a topic that was made a moment ago a broker may not know that it leads it.
      let partitions = rules.topics.all.flatMap { topic in (0..<2 as Range<Int32>).map { TopicPartition(topic, $0) } }
      await eventually("the leaders are known") { try await kafka.admin.ends(of: partitions).count == partitions.count }
    }

    static func with(_ body: @Sendable (Desk) async throws -> Void) async throws {
      try await KafkaFixture.with { kafka in
        let desk = try await Desk(kafka)
        try await body(desk)
        await desk.loop.close()
      }
    }

    var reader: ClusterTool { ClusterTool(on: loop, kafka.configuration, rules) }

    func groups(_ filter: LetterFilter = LetterFilter()) async throws -> [LetterGroup] {
      try await reader.survey(letters: filter) { _ in }.wanted.sorted()
    }

    func show(_ filter: LetterFilter = LetterFilter(), limit: Int = 100, withValues: Bool = false) async throws -> LetterPage {
      try await reader.show(letters: filter, limit: limit, withValues: withValues)
    }

    /// - Parameter edits: nil to discard.
    func carryOut(
      _ edits: RequestEdits?, _ filter: LetterFilter = LetterFilter(), isDryRun: Bool = false, stopAfter: Int = .max,
      _ change: (inout LetterOrder) -> Void = { _ in }
    ) async throws -> (RunReport, [LetterResult]) {
      var order = LetterOrder(edits, filter, by: "ada@shop", cluster: "here")
      change(&order)
      var settings = RunSettings()
      settings.isDryRun = isDryRun
      let results = Mutex<[LetterResult]>([])
      let stop = RunStop()
      let report = try await reader.carryOut(order, settings, stop) { result in
        let count = results.withLock {
          $0.append(result)
          return $0.count
        }
        if count == stopAfter { stop.stop() }
      }
      if let failure = report.failure { throw failure }
      return (report, results.withLock { $0 })
    }

    /// Carries two orders out at once, each as a process of its own would.
    func both(_ first: RequestEdits?, _ second: RequestEdits?) async throws -> [RunReport] {
      let loops = [EventLoop(name: "one"), EventLoop(name: "other")]
      func report(_ loop: EventLoop, _ edits: RequestEdits?) async throws -> RunReport {
        var order = LetterOrder(edits, LetterFilter(), by: "ada@shop", cluster: "here")
        order.silenceMilliseconds = 600_000
        return try await ClusterTool(on: loop, kafka.configuration, rules).carryOut(order, RunSettings(), RunStop()) { _ in }
      }
      async let one = report(loops[0], first)
      async let other = report(loops[1], second)
      let reports = [try await one, try await other]
      for loop in loops { await loop.close() }
      return reports
    }

    /// A letter as a worker writes it.
    func letter(
      _ reason: String = "MissingTopic", source: SourceCoordinates? = nil, at offset: Int64 = 0, _ headers: [(String, String)],
      value: String? = payload, partition: Int32 = 0, error: String? = nil
    ) -> TestRecord {
      let source = source ?? SourceCoordinates(topic: rules.topics.requests, partition: 1, offset: offset, timestamp: time)
      var letter = DeadLetter(poison: error ?? "", tries: 1, source: source)
      (letter.reason, letter.error) = (reason, error)
      var all = headers.map { TestRecord.Header($0.0, $0.1) }
      all += letter.headers.map { TestRecord.Header($0.name, $0.value) }
      return TestRecord(key: "user:ada", value, headers: all, partition: partition)
    }

    func write(_ letters: [TestRecord]) async throws { try await kafka.publish(letters, to: rules.topics.deadLetters) }

    /// Publishes what letters tell of: so many records of partition 1, which have no headers.
    func publishSources(_ count: Int) async throws {
      let record = TestRecord("first", partition: 1, timestamp: time)
      try await kafka.publish(Array(repeating: record, count: count), to: rules.topics.requests)
      sources.withLock { $0 += count }
    }

    /// The requests that lie behind what the letters tell of, as many as there must be.
    func requests(_ count: Int) async throws -> [TestRecord] {
      let all = try await kafka.records(of: rules.topics.requests, count: count + sources.withLock { $0 })
      return all.filter { !$0.headers.isEmpty }
    }
  }

  private static func mending(_ set: [(name: Name, value: String)] = [("apns-topic", "com.example")]) throws -> RequestEdits {
    try RequestEdits(set: set, removed: [], isNew: false)
  }

  private static func only(_ places: RecordPlace...) -> LetterFilter {
    var filter = LetterFilter()
    filter.places = Set(places)
    return filter
  }

  private static func many(_ count: Int, _ desk: Desk) -> [TestRecord] {
    (0..<count).map { desk.letter(at: Int64($0), [("target", "user:ada")], partition: Int32($0 % 2)) }
  }

  @Test func `letters keep their order, though the records of most lie elsewhere`() async throws {
    try await Desk.with { desk in
      let payloads = (0..<40).map { #"{"aps":{"alert":"\#($0)"}}"# }
      try await desk.kafka.publish(
        payloads.map { TestRecord(key: "user:ada", $0, headers: [.init("target", "user:ada")], partition: 1, timestamp: desk.time) },
        to: desk.rules.topics.requests)
      let sources = try await desk.kafka.records(of: desk.rules.topics.requests, count: payloads.count)
      try await desk.write(
        sources.sorted { ($0.offset ?? 0) < ($1.offset ?? 0) }.enumerated().map { number, record in
          let isComplete = number % 4 == 1
          let source = SourceCoordinates(
            topic: desk.rules.topics.requests, partition: 1, offset: Int64(number), timestamp: record.timestamp ?? 0)
          return desk.letter(
            source: source, [("target", "user:ada")], value: isComplete ? payloads[number] : nil,
            error: isComplete ? nil : DeadLetter.liesElsewhere)
        })
      let (report, _) = try await desk.carryOut(try Self.mending())
      #expect(report.counts[.written] == payloads.count && report.isComplete)
      let written = try await desk.kafka.records(of: desk.rules.topics.requests, count: 2 * payloads.count)
        .sorted { ($0.offset ?? 0) < ($1.offset ?? 0) }.suffix(payloads.count)
      #expect(written.map { String(decoding: $0.value ?? [], as: UTF8.self) } == payloads)
    }
  }

  @Test func `two redrives at once write each letter once, and each reports its own work`() async throws {
    try await Desk.with { desk in
      try await desk.publishSources(3_000)
      try await desk.write(Self.many(3_000, desk))
      let reports = try await desk.both(try Self.mending(), try Self.mending())
      #expect(reports.map(\.counts.done).reduce(0, +) == 3_000 && reports.map { $0.counts[.handled] }.reduce(0, +) == 3_000, "\(reports)")
      let ends = try await desk.kafka.admin.ends(
        of: (0..<2 as Range<Int32>).map { TopicPartition(desk.rules.topics.requests, $0) })
      #expect(ends.values.reduce(0) { $0 + $1.count } == 3_000 + 3_000)
    }
  }

  @Test func `a discard beside a redrive reports only what it has discarded`() async throws {
    try await Desk.with { desk in
      try await desk.publishSources(3_000)
      try await desk.write(Self.many(3_000, desk))
      let reports = try await desk.both(try Self.mending(), nil)
      #expect(reports.map(\.counts.done).reduce(0, +) == 3_000, "\(reports)")
      let group = try #require(try await desk.groups().first)
      #expect(group.counts[.redriven] ?? 0 == reports[0].counts.done && group.counts[.discarded] ?? 0 == reports[1].counts.done)
    }
  }

  @Test func `a run that was killed does not keep the letters for ever`() async throws {
    try await Desk.with { desk in
      try await desk.publishSources(2)
      try await desk.write(Self.many(2, desk))
      let claim = LetterClaim(.begins(after: nil), run: "killed", by: "eve@shop", at: WallClock.milliseconds())
      let record = TestRecord(nil, headers: claim.headers.map { TestRecord.Header($0.name, $0.value) }, partition: LetterClaim.partition)
      try await desk.write([record])
      let (report, _) = try await desk.carryOut(try Self.mending()) { $0.silenceMilliseconds = 2_000 }
      #expect(report.counts.done == 2 && report.isComplete)
      _ = try await endsByItself("the next run, which waits for none that has ended") {
        try await desk.carryOut(try Self.mending()) { $0.silenceMilliseconds = 4 * Int64(hangMilliseconds) }
      }
    }
  }

  @Test func lettersAreRedrivenOnceWithTheirFirstPlaceAndSaySo() async throws {
    try await Desk.with { desk in
      #expect(try await desk.groups().isEmpty)
      try await desk.publishSources(9)
      try await desk.write([
        desk.letter(at: 7, [("target", "user:ada"), ("mark", "7")]), desk.letter("BadTopic", at: 8, [("apns-topic", "?")], partition: 1),
      ])
      let dry = try await desk.carryOut(try Self.mending(), isDryRun: true)
      #expect(dry.0.counts.done == 2 && dry.0.counts[.passedOver] == 0 && dry.1.count == 2)
      #expect(try await desk.groups().allSatisfy { $0.counts == [.pending: 1] })

      let (report, results) = try await desk.carryOut(try Self.mending())
      #expect(report.counts.done == 2 && report.counts[.handled] == 0 && report.isComplete)
      let requests = try await desk.requests(2)
      let marked = try #require(requests.first { $0.header("mark") == "7" })
      // The partition of its source, and not the one that its key gives.
      #expect(requests.allSatisfy { $0.partition == 1 })
      #expect(marked.headers.map(\.name) == ["target", "mark", "apns-topic", "carillon-origin"])
      #expect(marked.key == Array("user:ada".utf8) && marked.text == Self.payload)
      let origin =
        #"{"cluster":"here","topic":"\#(desk.rules.topics.requests)","partition":1,"offset":7,"timestamp":\#(desk.time),"why":"redrive"}"#
      #expect(marked.header("carillon-origin") == origin)

      let letter = try #require(try await desk.show(Self.only(RecordPlace(partition: 0, offset: 0))).letters.first)
      let state = try #require(letter.states.first)
      #expect(letter.summary.standing == .redriven && letter.states.count == 1)
      #expect(
        state.by == "ada@shop" && state.request?.partition == 1 && state.id == results.first { $0.letter.place.partition == 0 }?.id)
      // What was done is passed over, unless that is meant.
      let second = try await desk.carryOut(try Self.mending())
      #expect(second.0.counts.done == 0 && second.0.counts[.handled] == 2 && second.1.isEmpty)
      let again = try await desk.carryOut(try Self.mending(), Self.only(RecordPlace(partition: 0, offset: 0))) { $0.isAgain = true }
      #expect(again.0.counts.done == 1)
      #expect(try await desk.requests(3).count { $0.header("carillon-origin") == origin } == 2)
    }
  }

  @Test func whatIsDiscardedIsPassedOverAndWhatLiesThereBesideLettersIsNeither() async throws {
    try await Desk.with { desk in
      try await desk.publishSources(1)
      try await desk.write([
        desk.letter(at: 0, [("target", "user:ada")]), TestRecord(key: "x", "junk", headers: [], partition: 0),
        // A producer's own words make no state.
        desk.letter(
          "BadTopic", LetterState(.redriven, of: RecordPlace(partition: 0, offset: 0), by: "eve", at: 1).headers.map { ($0.name, $0.value) }
        ),
      ])
      #expect(try await desk.groups().map(\.count) == [1, 1])
      let (report, _) = try await desk.carryOut(nil, Self.only(RecordPlace(partition: 0, offset: 0))) { $0.note = "a test" }
      #expect(report.counts.done == 1 && report.counts.read == 2)
      let letter = try #require(try await desk.show().letters.first)
      #expect(letter.summary.standing == .discarded && letter.states.map(\.note) == ["a test"])
      #expect(try await desk.groups().filter { $0.reason == "BadTopic" }.first?.counts == [.pending: 1])
      let (second, _) = try await desk.carryOut(try Self.mending())
      #expect(second.counts[.handled] == 1 && second.counts.done == 1)
    }
  }

  @Test func whoeverReadsLettersPassesOverWhatWasDoneWithThem() async throws {
    try await Desk.with { desk in
      let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
      try await desk.write([desk.letter(at: 0, [("target", "user:ada"), ("apns-id", id)])])
      _ = try await desk.carryOut(nil)
      let letters = try await RecordLane(desk.kafka.loop).letters(desk.rules, desk.kafka)
      #expect(letters.first == true && letters.count { $0 } == 1, "what was done with it, and who was at work, are no letters")
    }
  }

  private actor RecordLane: LoopActor {
    nonisolated let loop: EventLoop
    init(_ loop: EventLoop) { self.loop = loop }

    /// Which of the records are letters for the audit.
    func letters(_ rules: RequestRules, _ kafka: KafkaFixture) async throws -> [Bool] {
      let (answers, facts) = (Answers(), FactReader(rules))
      try await TopicReader(on: loop, kafka.configuration).read(try await kafka.admin.stretches(of: rules.topics.deadLetters), "records") {
        answers.all.append(facts.deadLetter($0) != nil)
      }
      return answers.all
    }
  }

  private final class Answers { var all: [Bool] = [] }

  @Test func aMissingValueIsReadAtItsSourceOrIsGone() async throws {
    try await Desk.with { desk in
      let headers = [("target", "user:ada"), ("apns-topic", "com.example"), ("more", "7")]
      try await desk.kafka.publish(
        [TestRecord(key: "user:ada", Self.payload, headers: headers.map { TestRecord.Header($0.0, $0.1) }, partition: 0)],
        to: desk.rules.topics.requests)
      let source = try #require(try await desk.requests(1).first)
      func letter(_ offset: Int64, _ timestamp: Int64) -> TestRecord {
        desk.letter(
          "BadPriority", source: SourceCoordinates(topic: desk.rules.topics.requests, partition: 0, offset: offset, timestamp: timestamp),
          [], value: nil, error: DeadLetter.liesElsewhere)
      }
      let time = try #require(source.timestamp)
      // One is there, one was never, and of one another record has the place by now.
      try await desk.write([letter(0, time), letter(99, time), letter(0, time - 1)])
      let shown = try await desk.show(withValues: true).letters
      #expect(shown.map(\.isGone) == [false, true, true])
      #expect(shown.first?.record.value == Array(Self.payload.utf8) && shown.first?.record.headers.count == 3)
      #expect(try await desk.show().letters.allSatisfy { !$0.isGone && $0.valueBytes == nil })
      let (report, results) = try await desk.carryOut(RequestEdits())
      #expect(report.counts.done == 1 && report.counts[.gone] == 2)
      #expect(results.count { $0.kind == .refused(.gone) } == 2)
      #expect(try await desk.requests(2).last?.header("more") == "7")
    }
  }

  @Test func roundsAreBoundedAndOneThatIsStoppedGoesOn() async throws {
    try await Desk.with { desk in
      let count = LetterSource.roundLetters + 700
      try await desk.publishSources(count)
      try await desk.write((0..<count).map { desk.letter(at: Int64($0), [("mark", "\($0)")], partition: Int32($0 % 2)) })
      let (first, results) = try await desk.carryOut(try Self.mending(), stopAfter: 1)
      #expect(
        !first.isComplete && first.counts.done == results.count && first.counts.done > 0 && first.counts.done <= LetterSource.roundLetters)
      let pending = try await desk.groups().first?.counts[.pending]
      #expect(pending == count - first.counts.done)
      let (second, _) = try await desk.carryOut(try Self.mending())
      #expect(second.isComplete && second.counts.done == count - first.counts.done && second.counts[.handled] == first.counts.done)
      let marks = try await desk.requests(count).compactMap { $0.header("mark") }
      #expect(Set(marks).count == count && marks.count == count)
    }
  }

  /// The workers would reject an origin that names a place of the former topic, or, worse, take it for another record's.
  @Test func `letters of a topic that was made again are left with the way on`() async throws {
    try await Desk.with { desk in
      let former = SourceCoordinates(topic: desk.rules.topics.requests, partition: 1, offset: 1, timestamp: desk.time - 3_600_000)
      try await desk.publishSources(2)
      let headers = [("target", "user:ada"), ("apns-topic", "com.example")]
      try await desk.write([desk.letter(source: former, headers), desk.letter(at: 2, headers), desk.letter(at: 1, headers)])
      for isDryRun in [true, false] {
        let (report, results) = try await desk.carryOut(RequestEdits(), isDryRun: isDryRun)
        #expect(report.counts.done == 1 && report.counts[.left] == 2)
        #expect(results.count { $0.kind == .refused(.placeIsNoOrigin(.topicMadeAgain)) } == 2)
      }
      #expect(try await desk.requests(1).count == 1)
      let asNew = try RequestEdits(set: [], removed: [], isNew: true)
      #expect(try await desk.carryOut(asNew).0.counts.done == 2)
      #expect(try await desk.requests(3).count { $0.header("carillon-origin") == nil } == 2)
    }
  }

  @Test func whatEndedWorkersGoesAlone() async throws {
    try await Desk.with { desk in
      let headers = [("target", "user:ada"), ("apns-topic", "a")]
      try await desk.publishSources(2)
      try await desk.write((0..<2).map { desk.letter("Poison", at: $0, headers, error: DeadLetter.workersEnded) })
      let (report, _) = try await desk.carryOut(RequestEdits())
      #expect(report.counts[.left] == 2 && report.counts.done == 0)
      let (forced, results) = try await desk.carryOut(RequestEdits()) { $0.isForced = true }
      #expect(forced.counts.done == 1 && forced.counts[.left] == 1)
      #expect(results.contains { $0.kind == .refused(.endsWorkers) })
    }
  }
}

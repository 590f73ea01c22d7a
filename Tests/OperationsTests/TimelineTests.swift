import Kafka
import Notifications
import Testing

@testable import Operations
import Worker

@Suite struct TimelineTests {
  private static let id = NotificationID(high: 1, low: 2)
  private static let start: Int64 = 1_700_000_000_000
  private var timeline = Timeline(id)

  /// The token of a device.
  private static func token(_ name: String) -> String {
    let digits = String(StableHash.hash(name), radix: 16)
    return String(repeating: String(repeating: "0", count: 16 - digits.count) + digits, count: 4)
  }

  private mutating func publish(
    _ target: Name = "user:ada", offset: Int64 = 7, at time: Int64 = 0, end: Int64 = 60_000, broken: String? = nil
  ) {
    timeline.add(
      PublishedRequest(
        id: Self.id, source: SourceCoordinates(topic: "r", partition: 0, offset: offset, timestamp: Self.start + time), target: target,
        application: "com.example", identifier: nil, isDerivedID: false, operation: "notify", end: Self.start + end, broken: broken,
        origin: nil))
  }

  /// The journal says that the requests that were published before were kept for a device.
  private mutating func queue(on device: String = "d1", at time: Int64, offset: Int64, _ verdict: Outcome = .queued) {
    for request in timeline.records {
      let position = request.source.position
      let judgement = JournalJudgement(verdict, revision: Revision(position))
      var writer = JournalWriter(partition: position.partition, incarnation: 0)
      if request.target.starts(with: "user:") {
        writer.append(offset: position.offset, timestamp: position.timestamp, count: 1, closing: nil, now: Self.start + time) { _, then in
          var token = Self.token(device)
          token.withUTF8 { then(UnsafeRawBufferPointer($0), judgement) }
        }
      } else {
        writer.append(offset: position.offset, timestamp: position.timestamp, judgement, now: Self.start + time)
      }
      let record = JournalRecord(worker: "w", incarnation: 0, judgedAt: Self.start + time)
      let place = SourceCoordinates(topic: "j", partition: position.partition, offset: offset, timestamp: 0)
      let steps = writer.withValue { JournalSteps(record, $0, place, of: timeline.records) }
      timeline.add(steps)
    }
  }

  @Test mutating func aPersonsRequestOfAStoppedApplicationHasEnded() throws {
    publish()
    try tell(.filtered, on: nil, at: 5, offset: 1, #","target":"user:ada","reason":"ApplicationStopped","detail":"wrong prices""#)
    let explanation = timeline.explanation(now: Self.start + 10)
    #expect(explanation.state == .filtered("ApplicationStopped: wrong prices"))
    #expect(explanation.steps.last?.detail("detail") == "wrong prices")
  }

  private mutating func tell(_ type: Outcome, on device: String? = "d1", at time: Int64, offset: Int64, _ more: String = "") throws {
    let device = device.map { #""device":"\#(Self.token($0))","# } ?? ""
    let value = #"""
      {\#(device)"worker":"w","source":{"topic":"r","partition":0,"offset":7,"timestamp":\#(Self.start)}\#(more)}
      """#
    let headers = [
      ("ce_specversion", "1.0"), ("ce_id", "\(type) \(device)"), ("ce_type", type.cloudEventsType?.description ?? ""), ("ce_source", "/c"),
      ("ce_time", Timestamp.text(Self.start + time)), ("ce_subject", "\(Self.id)"),
    ]
    var text = value
    let event = try text.withUTF8 { try Event(headers: headers.map { (name: $0.0, value: $0.1) }, value: UnsafeRawBufferPointer($0)) }
    timeline.add(event, at: SourceCoordinates(topic: "e", partition: 3, offset: offset, timestamp: 0))
  }

  private func explanation(at time: Int64 = 30_000) -> Explanation { timeline.explanation(now: Self.start + time) }

  @Test mutating func stepsAreInTheOrderOfTimeWithTheirLatencies() throws {
    try tell(.delivered, on: "d2", at: 40, offset: 3)
    publish()
    queue(on: "d2", at: 12, offset: 2)
    queue(on: "d1", at: 10, offset: 1)
    try tell(.delivered, on: "d1", at: 35, offset: 4)
    let steps = explanation().steps
    #expect(steps.map(\.name) == ["published", "queued", "queued", "delivered", "delivered"])
    #expect(steps.map(\.sincePublication) == [0, 10, 12, 35, 40])
    // Since the row above, whatever device that is about.
    #expect(steps.map(\.sincePrevious) == [nil, 10, 2, 23, 5])
    #expect(steps.map(\.worker) == [nil, "w", "w", "w", "w"])
    #expect(steps.last.map { [$0.topic, "\($0.partition)", "\($0.offset)"] } == ["e", "3", "3"])
  }

  @Test mutating func whatWasToldAgainIsMarkedAndARecordIsTakenOnce() throws {
    publish()
    queue(at: 10, offset: 1)
    queue(at: 90, offset: 2)
    queue(at: 90, offset: 2)
    #expect(explanation().steps.map(\.isRepeat) == [false, false, true])
  }

  @Test mutating func `events whose ids only look alike are no repeats`() throws {
    for (offset, eventID) in ["é", "e\u{301}", "é"].enumerated() {
      let headers = [
        ("ce_specversion", "1.0"), ("ce_id", eventID), ("ce_type", "carillon.dismissed.v1"), ("ce_source", "/c"),
        ("ce_subject", "\(Self.id)"),
      ]
      let event = try "{}".withBytes { try Event(headers: headers.map { (name: $0.0, value: $0.1) }, value: $0) }
      timeline.add(
        event, at: SourceCoordinates(topic: "e", partition: 0, offset: Int64(offset), timestamp: Self.start + Int64(offset)))
    }
    #expect(explanation().steps.map(\.isRepeat) == [false, false, true])
  }

  @Test func `the devices of a person are not those of a person whose name only looks alike`() {
    var devices = TargetDevices(of: ["user:Kim"], application: "a")
    for (token, user) in [("1", "Kim"), ("2", "\u{212A}im")] {
      #"{"user":"\#(user)","application":"a"}"#.withBytes { devices.take(Name(token), registration: $0) }
    }
    #expect(devices["user:Kim"] == ["1": "a"])
  }

  @Test mutating func itIsUnderWayUntilEachDeviceHasAnOutcome() throws {
    publish()
    #expect(explanation().state == .unprocessed)
    queue(on: "d1", at: 10, offset: 1)
    // For how many devices it is, is not known yet.
    #expect(explanation().state == .underWay(open: 1, of: 1, end: Self.start + 60_000))
    try tell(.addressed, on: nil, at: 11, offset: 2, #","devices":2"#)
    #expect(explanation().state == .underWay(open: 2, of: 2, end: Self.start + 60_000))
    try tell(.delivered, on: "d1", at: 12, offset: 3)
    queue(on: "d2", at: 13, offset: 4)
    #expect(explanation().state == .underWay(open: 1, of: 2, end: Self.start + 60_000))
    #expect(explanation().devices.map(\.word) == ["delivered", "queued"])
    #expect(explanation(at: 60_000).devices.map(\.word) == ["delivered", "overdue"])
    try tell(.expired, on: "d2", at: 61_000, offset: 5)
    #expect(explanation().state == .ended)
    #expect(explanation().devices.map(\.word) == ["delivered", "expired"])
  }

  @Test mutating func whatTheDeviceSaysOutweighsAnEnding() throws {
    publish("device:\(Self.token("d1"))")
    queue(at: 10, offset: 1)
    try tell(.delivered, at: 20, offset: 2)
    try tell(.collapsed, at: 30, offset: 3)
    try tell(.dismissed, at: 40, offset: 4)
    #expect(explanation().devices.map(\.word) == ["delivered"])
    #expect(explanation().devices.first?.sincePublication == 20)
  }

  /// The same as an audit counts.
  @Test mutating func `a person's answer outweighs what says that it was not shown`() throws {
    publish("device:\(Self.token("d1"))")
    queue(at: 10, offset: 1)
    try tell(.response, at: 20, offset: 2)
    #expect(explanation().devices.map(\.word) == ["delivered"])
    try tell(.expired, at: 30, offset: 3)
    #expect(explanation().devices.map(\.word) == ["delivered"])
    #expect(explanation().state == .ended)
  }

  @Test mutating func aDuplicateIsNoEndingOfTheOneThatWaits() throws {
    publish("device:\(Self.token("d1"))")
    publish("device:\(Self.token("d1"))", offset: 8)
    queue(at: 10, offset: 1)
    try tell(.duplicate, at: 20, offset: 2)
    #expect(explanation().state == .underWay(open: 1, of: 1, end: Self.start + 60_000))
    #expect(explanation().devices.map(\.word) == ["queued"])
    try tell(.delivered, at: 30, offset: 3)
    #expect(explanation().state == .ended)
  }

  @Test mutating func aDeviceOfSomebodyElseIsLeftOutAndWaitsForNothing() throws {
    publish()
    queue(on: "d1", at: 10, offset: 1, .wrongUser)
    try tell(.addressed, on: nil, at: 11, offset: 2, #","devices":0"#)
    try tell(.unregistered, on: nil, at: 11, offset: 3)
    #expect(explanation().state == .unregistered)
    #expect(explanation().devices.map(\.word) == ["leftOut"])
    #expect(explanation().steps.map(\.name) == ["published", "left out", "addressed", "unregistered"])
  }

  @Test mutating func whatTheJournalSaysOfAFormerTopicIsNoStep() {
    publish("device:\(Self.token("d1"))")
    let former = timeline
    timeline = Timeline(Self.id)
    publish("device:\(Self.token("d1"))", at: 1)
    queue(at: 10, offset: 1)
    #expect(explanation().steps.map(\.name) == ["published", "queued"])
    timeline = former
    let place = SourceCoordinates(topic: "j", partition: 0, offset: 1, timestamp: 0)
    var writer = JournalWriter(partition: 0, incarnation: 0)
    let revision = Revision(timestamp: UInt64(Self.start) + 1, partition: 0, offset: 7)
    writer.append(offset: 7, timestamp: Self.start + 1, JournalJudgement(.queued, revision: revision), now: Self.start + 10)
    let record = JournalRecord(worker: "w", incarnation: 0, judgedAt: Self.start + 10)
    timeline.add(writer.withValue { JournalSteps(record, $0, place, of: timeline.records) })
    #expect(explanation().state == .unprocessed)
  }

  @Test mutating func aRaisedRevisionAndWhatWasSupersededAreTold() throws {
    publish("device:\(Self.token("d1"))")
    let other = NotificationID(high: 3, low: 4)
    var writer = JournalWriter(partition: 0, incarnation: 0)
    let revision = Revision(timestamp: UInt64(Self.start) + 50, partition: 0, offset: 7)
    let superseded = JournalReference(revision: Revision(timestamp: 1, partition: 0, offset: 1), id: other)
    let judgement = JournalJudgement(.queued, revision: revision, other: superseded)
    writer.append(offset: 7, timestamp: Self.start, judgement, now: Self.start + 10)
    let record = JournalRecord(worker: "w", incarnation: 0, judgedAt: Self.start + 10)
    let place = SourceCoordinates(topic: "j", partition: 0, offset: 1, timestamp: 0)
    timeline.add(writer.withValue { JournalSteps(record, $0, place, of: timeline.records) })
    let step = try #require(explanation().steps.last)
    #expect(step.detail("revision") == revision.description && step.detail("superseded") == other.description)
    #expect([step.topic, "\(step.partition)", "\(step.offset)", step.worker?.text] == ["j", "0", "1", "w"])
  }

  @Test mutating func `a firing that took no effect tells no due time`() {
    // Somebody writes a firing of the same occurrence with an earlier due time.
    for (offset, due) in [(7, 1_000), (8, 2_000)] as [(Int64, Int64)] {
      timeline.add(
        PublishedRequest(
          id: Self.id, source: SourceCoordinates(topic: "r", partition: 0, offset: offset, timestamp: Self.start), target: "user:ada",
          isDerivedID: false, operation: "notify",
          firing: FiredOccurrence(schedule: NotificationID(high: 3, low: 4), due: Self.start + due, zone: "")))
    }
    #expect(explanation().occurrence?.due == Self.start + 1_000, "nothing is known of either")
    var writer = JournalWriter(partition: 0, incarnation: 0)
    writer.append(
      offset: 7, timestamp: Self.start, JournalJudgement(.replayed, revision: Revision(timestamp: 1, partition: 0, offset: 7)),
      now: Self.start)
    let record = JournalRecord(worker: "w", incarnation: 0, judgedAt: Self.start)
    let place = SourceCoordinates(topic: "j", partition: 0, offset: 1, timestamp: 0)
    timeline.add(writer.withValue { JournalSteps(record, $0, place, of: timeline.records) })
    #expect(explanation().occurrence?.due == Self.start + 2_000)
    #expect(explanation().requests.map(\.isIgnored) == [true, false])
  }

  /// What a person's devices get may differ by their languages; told again it is the same.
  @Test mutating func eachWayThroughTheExtensionsIsOneStep() throws {
    publish()
    let record = JournalRecord(worker: "w", incarnation: 0, judgedAt: Self.start + 10)
    for offset in 1...2 as ClosedRange<Int64> {
      var writer = JournalWriter(partition: 0, incarnation: 0)
      for state in [ExtensionState.modified, .failed] {
        var passed = ByteBuffer()
        JournalEntry.PassedExtension(name: "texts", state: state, milliseconds: 3).append(to: &passed)
        passed.withUnsafeBytes { writer.append(offset: 7, timestamp: Self.start, extensions: $0, count: 1, now: Self.start + 10) }
      }
      let place = SourceCoordinates(topic: "j", partition: 0, offset: offset, timestamp: 0)
      timeline.add(writer.withValue { JournalSteps(record, $0, place, of: timeline.records) })
    }
    let steps = explanation().steps.filter { $0.name == "extensions" }
    #expect(steps.filter { !$0.isRepeat }.map { $0.detail("texts") } == ["modified, 3 ms", "failed, 3 ms"])
    #expect(steps.filter(\.isRepeat).count == 2)
  }

  @Test mutating func `what no rule knows is told where the request was published`() {
    let source = SourceCoordinates(topic: "r", partition: 0, offset: 7, timestamp: Self.start)
    timeline.add(
      PublishedRequest(
        id: Self.id, source: source, target: "user:ada", isDerivedID: false, operation: "notify", unknown: ["apns-topci", "aps.alertt"]))
    #expect(explanation().steps.first?.detail("unknown") == "apns-topci, aps.alertt")
  }

  @Test mutating func forgedNumbersTrapNothing() throws {
    for (place, number) in [Int64.min, -1, .max].enumerated() {
      let offset = Int64(place) * 10
      let source = SourceCoordinates(topic: "r", partition: 1, offset: offset, timestamp: number)
      timeline.add(
        PublishedRequest(
          id: Self.id, source: source, target: "user:ada", application: "com.example", identifier: nil, isDerivedID: false,
          operation: "notify", end: number, broken: nil, origin: nil))
      timeline.add(TimelineStep(name: TimelineStep.routed, time: number, topic: "r", partition: 2, offset: offset, details: []))
      try tell(.addressed, on: nil, at: 11, offset: offset, #","devices":\#(number)"#)
      queue(on: "d\(number)", at: 12, offset: offset + 1)
      // Of each of the requests so far it was said that it was kept.
      #expect(explanation().steps.count == (place + 1) * 3 + (place + 1) * (place + 2) / 2)
      #expect((timeline.published ?? 1) + 60_000 > 0)
      _ = timeline.mayBeReplaced
    }
  }

  @Test mutating func endingsWithoutADevice() throws {
    publish()
    try tell(.addressed, on: nil, at: 11, offset: 2, #","devices":0"#)
    try tell(.unregistered, on: nil, at: 11, offset: 3)
    #expect(explanation().state == .unregistered)
    timeline = Timeline(Self.id)
    try tell(.rejected, on: nil, at: 11, offset: 3, #","reason":"BadPriority""#)
    #expect(explanation().state == .rejected("BadPriority"))
    timeline = Timeline(Self.id)
    publish()
    timeline.add(
      TimelineStep(
        name: TimelineStep.deadLetter, time: 1, topic: "x", partition: 0, offset: 0, details: [TimelineStep.Detail("reason", "Poison")]))
    #expect(explanation().state == .dead("Poison"))
  }

  @Test mutating func everyApplicationThatARecordOrAnEventNamesCounts() throws {
    try tell(.delivered, at: 10, offset: 1, #","application":"com.example.other""#)
    let (own, other): (Name, Name) = ("com.example", "com.example.other")
    #expect(explanation().applications == Set([other]), "Kafka may have deleted the request")
    publish()
    #expect(explanation().applications == Set([own, other]))
  }

  @Test mutating func theRequestsThatEventsNameAreStillToBeRead() throws {
    try tell(.delivered, at: 10, offset: 1)
    #expect(timeline.unreadSources(in: "r").map(\.offset) == [7])
    #expect(timeline.unreadSources(in: "elsewhere").isEmpty)
    #expect(timeline.published == Self.start)
    publish()
    #expect(timeline.unreadSources(in: "r").isEmpty)
  }
}

@Suite struct BackwardsTests {
  @Test func theNewestComeFirstAndNothingTwice() {
    let (a, b) = (TopicPartition("t", 0), TopicPartition("t", 1))
    var rounds = Backwards([TopicStretch(a, 5, 100), TopicStretch(b, 0, 8), TopicStretch(b, 3, 3)], first: 10)
    #expect(rounds.next() == [TopicStretch(a, 90, 100), TopicStretch(b, 0, 8)])
    #expect(rounds.next() == [TopicStretch(a, 50, 90)])
    #expect(rounds.next() == [TopicStretch(a, 5, 50)])
    #expect(rounds.next() == nil)
  }
}

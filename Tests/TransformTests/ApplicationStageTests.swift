import EventLoop
import Notifications
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Requests of an application that is stopped and started again, whenever the lane hears of that: by random histories.
@Suite struct ApplicationStageTests {
  private static let application = Array("com.example.shop".utf8)
  private static let other = Array("com.example.other".utf8)

  /// What Kafka has of the application, and how much of that the lane has heard.
  private final class Reader: KnownApplications {
    private(set) var table = StoppedApplications()
    private var records: [(value: [UInt8], time: Int64)] = []
    private var stops = ApplicationStops()
    private(set) var heard = 0
    private(set) var asked: [(Bool) -> Void] = []

    var isStopped: Bool { stops.open != nil }
    var count: Int { records.count }

    func confirm(_ body: @escaping (Bool) -> Void) { asked.append(body) }

    /// Somebody stops the application, or starts it again.
    func change(at time: Int64) throws {
      let value = try #require(stops.value(isStopped ? .start(by: "eve") : .stop(by: "eve", reason: nil), forgettingBefore: 0))
      stops = try value.withUnsafeBytes { try ApplicationStops($0, timestamp: time) }
      records.append((value, time))
    }

    func hear() {
      let (value, time) = records[heard]
      heard += 1
      value.withUnsafeBytes { value in application.withUnsafeBytes { _ = table.take(key: $0, value: value, timestamp: time) } }
    }

    /// Answers all who have asked by now; those who hear yes find all that there was when they asked.
    func answer(_ isComplete: Bool) {
      if isComplete { while heard < count { hear() } }
      let asked = asked
      self.asked = []
      for body in asked { body(isComplete) }
    }
  }

  private final class Owner: StageOwner {
    var later: [(record: ParkedRecord, content: RequestContent)] = []
    func passed(_ requests: [(record: ParkedRecord, content: RequestContent)]) { later += requests }
    func keep(_ record: ParkedRecord, _ content: RequestContent) { Issue.record("the stage has nothing to keep") }
    func failed(_ record: ParkedRecord, _ error: StoreError) { Issue.record("the stage asks nothing of Redis") }
  }

  private struct Request {
    let published: Int64
    /// It was published while the application was stopped.
    let isStopped: Bool
    /// Changes of the application before it was published.
    let changes: Int
  }

  /// A request as a stage is shown it.
  private static func content(_ application: [UInt8], published: Int64, removing: Bool) throws -> RequestContent {
    let target = Array("user:ada".utf8)
    let (topic, value) = (Array("requests".utf8), Array((removing ? #"{"identifiers":["c"]}"# : #"{"aps":{"alert":"x"}}"#).utf8))
    return try target.withUnsafeBytes { target in
      try application.withUnsafeBytes { application in
        try value.withUnsafeBytes { value in
          try topic.withUnsafeBytes { topic in
            var headers = RequestHeaders()
            (headers[.target], headers[.topic]) = (target, application)
            if removing { headers[.operation] = ("remove" as StaticString).withUTF8Buffer { UnsafeRawBufferPointer($0) } }
            let record = RequestRecord(
              key: target, value: value, headers: headers, topic: topic,
              position: SourcePosition(partition: 0, offset: 0, timestamp: published))
            guard case .accepted(let view) = RequestView.read(record, limits: RequestLimits()) else {
              throw StoreError(.unavailable, "this is no request")
            }
            let arena = Arena(capacity: 1_024)
            try DeliveryEntry(view).append(to: &arena.bytes)
            let entry = RequestEntry(
              span: ArenaSpan(start: 0, count: arena.bytes.count), kind: removing ? .remove : .notify, collapseID: ArenaSpan(),
              application: NameHash.hash(application), user: 0, time: published, withdraws: nil, id: 0, source: 0, end: 0,
              revision: Revision(timestamp: UInt64(published), partition: 0, offset: 0))
            return RequestContent(arena: arena, entry: entry, receiver: .device(ArenaSpan()), mutability: .mutable)
          }
        }
      }
    }
  }

  @Test(arguments: 0..<(isComplete ? 20 : 4) as Range<UInt64>)
  func onlyWhatWasPublishedDuringAStopIsFilteredHoweverLateTheLaneHearsOfItsEnd(seed: UInt64) async throws {
    let loop = EventLoop(name: "stage")
    try await Task(executorPreference: loop) { try await Self.history(loop, seed: seed) }.value
    await loop.close()
  }

  private static func history(_ loop: EventLoop, seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    func one(in count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }
    let (reader, owner) = (Reader(), Owner())
    let stage = ApplicationStage(on: loop, reader, isRebuilding: false)
    stage.owner = owner
    var waiting: [ParkedRecord: Request] = [:]
    var (time, filtered, shown): (Int64, Int, Int) = (1_000_000, 0, 0)

    var begun: UInt64 = 0
    func parked() -> ParkedRecord {
      begun += 1
      return ParkedRecord(slot: Slot(number: Int32(begun)), order: begun, stage: 0)
    }

    func judge(_ request: Request, _ content: RequestContent, after isAsked: Bool) {
      if content.stop != nil { filtered += 1 } else { shown += 1 }
      #expect(content.stop == nil || request.isStopped, "what was published while the application ran is shown")
      #expect(content.stop == nil || content.mutability == .fixed, "what goes to no device passes no extension")
      // Of a stop that the lane has heard of, nothing is shown.
      if reader.heard >= request.changes { #expect((content.stop != nil) == request.isStopped) }
      // A stop that goes on, as far as is known, is never taken for one without asking.
      if !isAsked { #expect(content.stop?.isOpen != true) }
    }

    for _ in 0..<400 {
      time += .random(in: 0...3, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        time += 1
        try reader.change(at: time)
        // What follows is later than the change.
        time += one(in: 2) ? 0 : 1
      case 1, 2: if reader.heard < reader.count { reader.hear() }
      case 3: reader.answer(!one(in: 3))
      case 4:
        if let record = waiting.keys.first {
          stage.drop([record])
          waiting[record] = nil
        }
      case 5:
        let (isRemoval, isOther) = (one(in: 2), one(in: 2))
        let content = try content(isOther ? other : application, published: time, removing: isRemoval)
        guard isRemoval || isOther else { continue }
        guard case .pass(let passed) = stage.take(parked(), content) else {
          Issue.record("a removal, or another application's request, waits for nothing")
          continue
        }
        #expect(passed.stop == nil)
      default:
        let request = Request(published: time, isStopped: reader.isStopped, changes: reader.count)
        let record = parked()
        switch stage.take(record, try content(application, published: time, removing: false)) {
        case .pass(let content): judge(request, content, after: false)
        case .later: waiting[record] = request
        }
      }
      stage.flush()
      let later = owner.later
      owner.later = []
      for (record, content) in later {
        guard let request = waiting.removeValue(forKey: record) else {
          Issue.record("a record is answered that does not wait")
          continue
        }
        judge(request, content, after: true)
      }
    }
    reader.answer(true)
    for (record, content) in owner.later {
      if let request = waiting.removeValue(forKey: record) { judge(request, content, after: true) }
    }
    #expect(waiting.isEmpty, "nobody waits when all is known")
    #expect(filtered > 10 && shown > 10, "the history has both")
    await stage.close()
  }
}

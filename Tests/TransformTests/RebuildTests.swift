import EventLoop
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// A Redis that is rebuilt, beside what it had before it lost everything: requests of a device come in whatever partitions.
@Suite struct RebuildTests {
  @Test func `what was removed or delivered does not come again from a repeat in another partition`() async throws {
    try await RebuiltDevices.with(count: 16) { devices in
      for number in devices.tokens.indices {
        let (first, second) = number % 2 == 0 ? (Int32(0), Int32(1)) : (1, 0)
        try await devices.request(number, id: number, in: first)
        if number % 4 < 2 {
          try await devices.remove(number, id: number, in: number % 8 < 4 ? first : second)
        } else {
          try await devices.acknowledge(number) { $0.first }
        }
        try await devices.request(number, id: number, in: second)
      }
      try await devices.expectRebuilt()
      for (number, mailbox) in try await devices.mailboxes().enumerated() {
        #expect(mailbox.count == (number % 4 < 2 ? 1 : 0), "only a removal waits")
      }
    }
  }

  @Test func `a request for a device that was not registered then does not come to it`() async throws {
    try await RebuiltDevices.with(count: 1) { devices in
      let late = TransformFixture.tokens(in: [(2, 1)])
      try await devices.publish([RebuiltDevices.record("device:\(late[0])", id: 7, in: 1)])
      try await devices.lane.register(late, for: "late", after: 1)
      try await devices.expectRebuilt()
      #expect(try await devices.lane.waiting(late[0]) == 0)
    }
  }

  /// By such a clock notifications with minutes left would be dropped for good.
  @Test func `a machine whose clock is far from that of Redis does not rebuild it`() async throws {
    let offset = ClockShift()
    try await TransformFixture.with({ $0.store.wallClock = { offset.now } }) { lane in
      try await lane.register([TransformFixture.tokens(in: [(0, 1)])[0]], for: "ada")
      offset.ahead = 3_000_000
      await #expect(throws: StoreError.self) { try await lane.rebuild() }
      offset.ahead = 0
      #expect(try await lane.rebuild().phase == .done)
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `mailboxes are as they were, whatever came in which partition`(seed: UInt64) async throws {
    try await RebuiltDevices.with(count: 8) { devices in
      try await devices.steps(24, seed: seed)
      try await devices.expectRebuilt()
    }
  }
}

/// Devices, each of a person of its own, and what was published for them in two partitions.
private actor RebuiltDevices {
  nonisolated let lane: TransformFixture
  nonisolated let tokens: [String]
  /// What was published, by its place: a partition's offsets are those of this list.
  private var published: [[TestRecord]] = [[], []]
  /// What each device had, by the numbers of the ids.
  private var ids: [[Int]]
  private var lastID = 100

  private init(_ lane: TransformFixture, _ tokens: [String]) {
    (self.lane, self.tokens) = (lane, tokens)
    ids = tokens.map { _ in [] }
  }

  static func with(count: Int, _ body: @Sendable (RebuiltDevices) async throws -> Void) async throws {
    try await TransformFixture.with(partitions: 2) { lane in
      let tokens = TransformFixture.tokens(in: [(0, count / 2), (1, count - count / 2)])
      for (number, token) in tokens.enumerated() { try await lane.publishRegistrations([token], for: "user-\(number)") }
      await lane.eventually("the registrations are committed") { try await lane.committed(lane.topics.devices) == Int64(count) }
      try await body(RebuiltDevices(lane, tokens))
    }
  }

  static func id(_ number: Int) -> String { NotificationID(high: 0xCA51, low: UInt64(number)).description }

  static func record(_ target: String, id: Int, collapse: String? = nil, removes: String? = nil, in partition: Int32) -> TestRecord {
    var headers: [TestRecord.Header] = [
      .init("target", target), .init("apns-topic", TransformFixture.application), .init("apns-id", Self.id(id)),
    ]
    if let collapse { headers.append(.init("apns-collapse-id", collapse)) }
    if removes != nil { headers.append(.init("operation", "remove")) }
    return TestRecord(
      key: target, removes ?? #"{"aps":{"alert":"\#(Int.random(in: 0..<1_000_000))"}}"#, headers: headers, partition: partition)
  }

  // MARK: What happens

  func request(_ device: Int, id: Int, in partition: Int32) async throws {
    try await publish([Self.record(partition == 0 ? "user:user-\(device)" : "device:\(tokens[device])", id: id, in: partition)])
  }

  func remove(_ device: Int, id: Int, in partition: Int32) async throws {
    lastID += 1
    try await publish([
      Self.record("device:\(tokens[device])", id: lastID, removes: #"{"identifiers":["\#(Self.id(id))"]}"#, in: partition)
    ])
  }

  /// Publishes requests, and waits until all are judged.
  func publish(_ records: [TestRecord]) async throws {
    let records = records.map { record in
      var record = record
      record.timestamp = Self.now()
      return record
    }
    for record in records { published[Int(record.partition ?? 0)].append(record) }
    try await lane.kafka.publish(records, to: lane.topics.requests)
    let count = published[0].count + published[1].count
    await lane.eventually("the requests are judged") {
      // The word of `wrongApplication` is that of `rejected`.
      Outcome.allCases.reduce(0) { $0 + ($1 == .wrongApplication ? 0 : self.lane.count($1)) } == count
    }
  }

  /// A device acknowledges an entry of its mailbox, as a fan-out worker would tell.
  func acknowledge(_ device: Int, _ choice: ([Entry]) -> Entry?) async throws {
    guard let entry = choice(try await entries(device)) else { return }
    var writer = EventWriter(source: "/carillon/carillon", worker: "fan-out", requestsTopic: lane.topics.requests)
    let (token, time) = (tokens[device], Self.now())
    entry.bytes.withUnsafeBytes { bytes in
      guard let view = DeliveryEntryView(kept: bytes) else { return }
      Array(token.utf8).withUnsafeBytes { token in
        writer.write(
          EventFacts(view.kind == .remove ? .removed : .delivered, of: view, device: token, revision: entry.revision), at: time)
      }
    }
    var event = TestRecord(
      key: token, writer.withValue { String(decoding: $0, as: UTF8.self) }, partition: Int32(device % 2), timestamp: time)
    writer.forEachHeader { event.headers.append(.init($0.rawValue, String(decoding: $1, as: UTF8.self))) }
    try await lane.kafka.publish([event], to: lane.topics.events)
    try await lane.probe.command("HDEL", .text(TransformFixture.keys.mailbox(token)), .bytes(entry.field))
  }

  /// So often something happens to each device.
  func steps(_ count: Int, seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<count { try await publish(try await step(&random)) }
  }

  private func step(_ random: inout SeededRandom) async throws -> [TestRecord] {
    var records: [TestRecord] = []
    for device in tokens.indices {
      switch Int.random(in: 0..<10, using: &random) {
      case 0...2:
        lastID += 1
        ids[device].append(lastID)
        records.append(notification(device, id: lastID, &random))
      case 3, 4:
        if let id = ids[device].randomElement(using: &random) { records.append(notification(device, id: id, &random)) }
      case 5, 6:
        lastID += 1
        records.append(removal(device, id: lastID, &random))
      case 7:
        if let record = redrive(device, &random) { records.append(record) }
      default:
        let number = Int.random(in: 0..<1_000, using: &random)
        try await acknowledge(device) { $0.isEmpty ? nil : $0[number % $0.count] }
      }
    }
    return records
  }

  private func target(_ device: Int, _ random: inout SeededRandom) -> String {
    Bool.random(using: &random) ? "user:user-\(device)" : "device:\(tokens[device])"
  }

  private func notification(_ device: Int, id: Int, _ random: inout SeededRandom) -> TestRecord {
    var record = Self.record(
      target(device, &random), id: id, collapse: [nil, nil, "c0", "c1"].randomElement(using: &random) ?? nil,
      in: Int32.random(in: 0...1, using: &random))
    if Int.random(in: 0..<4, using: &random) == 0 {
      record.headers.append(
        .init("trigger", #"{"type":"location","region":{"identifier":"shop","latitude":52.5,"longitude":13.4,"radius":100}}"#))
    }
    return record
  }

  private func removal(_ device: Int, id: Int, _ random: inout SeededRandom) -> TestRecord {
    let (target, partition) = (target(device, &random), Int32.random(in: 0...1, using: &random))
    if Int.random(in: 0..<4, using: &random) == 0 { return Self.record(target, id: id, removes: #"{"all":true}"#, in: partition) }
    guard let removed = ids[device].randomElement(using: &random), Bool.random(using: &random) else {
      return Self.record(target, id: id, collapse: "c0", removes: "{}", in: partition)
    }
    return Self.record(target, id: id, removes: #"{"identifiers":["\#(Self.id(removed))"]}"#, in: partition)
  }

  /// A request of a device once more, as new work.
  private func redrive(_ device: Int, _ random: inout SeededRandom) -> TestRecord? {
    let partition = Int.random(in: 0...1, using: &random)
    let own = published[partition].indices.filter { place in
      let record = published[partition][place]
      let target = record.headers.first { $0.name == "target" }?.value.map { String(decoding: $0, as: UTF8.self) }
      return (target == "user:user-\(device)" || target == "device:\(tokens[device])")
        && record.headers.allSatisfy { $0.name != "carillon-origin" }
    }
    guard let place = own.randomElement(using: &random) else { return nil }
    var record = published[partition][place]
    var json = JSONWriter()
    let source = SourceCoordinates(
      topic: lane.topics.requests, partition: Int32(partition), offset: Int64(place), timestamp: record.timestamp ?? 0)
    Origin.write(cluster: "carillon", source, why: .redrive, isUnfinished: Bool.random(using: &random), to: &json)
    record.headers.append(.init("carillon-origin", json.text))
    return record
  }

  private static func now() -> Int64 { WallClock.milliseconds() }

  // MARK: What is there

  struct Entry: Hashable {
    let field: [UInt8]
    let bytes: [UInt8]
    var revision: Revision? { field.withUnsafeBytes { Revision(bytes: $0) } }
  }

  private func entries(_ device: Int) async throws -> [Entry] {
    let all = try await lane.probe.command("HGETALL", .text(TransformFixture.keys.mailbox(tokens[device]))).array ?? []
    let bytes = all.map { $0.bytes ?? [] }
    return stride(from: 0, to: bytes.count - 1, by: 2).map { Entry(field: bytes[$0], bytes: bytes[$0 + 1]) }
      .sorted { $0.field.lexicographicallyPrecedes($1.field) }
  }

  /// The hashes of the apns-ids that a device remembers.
  private func remembered(_ device: Int) async throws -> Set<[UInt8]> {
    let window = try await lane.probe.command("HGET", .text(TransformFixture.keys.device(tokens[device])), "w").bytes ?? []
    return Set(stride(from: 6, to: window.count, by: 12).map { Array(window[$0..<$0 + 8]) })
  }

  func mailboxes() async throws -> [[Entry]] {
    var mailboxes: [[Entry]] = []
    for device in tokens.indices { mailboxes.append(try await entries(device)) }
    return mailboxes
  }

  /// Rebuilds Redis twice, and expects what it had before.
  func expectRebuilt(_ location: SourceLocation = #_sourceLocation) async throws {
    await lane.eventually("all requests are committed") {
      let names = [0, 1].map { TopicPartition(self.lane.topics.requests, $0) }
      return try await self.lane.committedEnds(of: names) == Int64(self.published[0].count + self.published[1].count)
    }
    await lane.drain(withinMilliseconds: hangMilliseconds)
    let before = try await mailboxes()
    var ids: [Set<[UInt8]>] = []
    for device in tokens.indices { ids.append(try await remembered(device)) }
    for _ in 0..<2 {
      try await lane.rebuild()
      let after = try await mailboxes()
      for device in tokens.indices {
        let (lost, back) = (Set(before[device]).subtracting(after[device]), Set(after[device]).subtracting(before[device]))
        #expect(
          lost.isEmpty && back.isEmpty, "device \(device): \(lost.map(told)) lost, \(back.map(told)) came again", sourceLocation: location)
        let forgotten = ids[device].subtracting(try await remembered(device))
        #expect(
          forgotten.isEmpty, "device \(device) has forgotten \(forgotten.count) of \(ids[device].count) ids", sourceLocation: location)
      }
    }
  }

  private func told(_ entry: Entry) -> String {
    entry.bytes.withUnsafeBytes { bytes in
      DeliveryEntryView(kept: bytes).map { "\($0.id) \($0.kind) at \(entry.revision.map { "\($0)" } ?? "?")" }
    }
      ?? "what cannot be read"
  }
}

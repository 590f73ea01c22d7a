import Cryptography
import EventLoop
import HTTP
import JSON
import Kafka
import Notifications
import Redis
import Store
import TestSupport
import Testing
import Worker

@testable import FanOut

/// One fan-out lane on an embedded broker and a Redis of its own, with devices that do what a test says.
actor LaneFixture: LoopActor {
  nonisolated let loop = EventLoop(name: "devices")
  nonisolated let kafka: KafkaFixture
  nonisolated let redis: PrivateServer
  nonisolated let metrics = MetricRegistry()
  nonisolated let topics: Topics
  nonisolated let health = Health()
  private nonisolated let lane: FanOutLane
  private let devices = Devices()
  private var address: SocketAddress?

  private final class Devices {
    var all: [TestDevice] = []
    var client: WebSocketClient?
  }

  private init(_ kafka: KafkaFixture, _ redis: PrivateServer, _ change: (inout FanOutSettings) -> Void) throws {
    self.kafka = kafka
    self.redis = redis
    topics = Topics(prefix: KafkaFixture.unique("lane") + ".")
    for topic in topics.all { try kafka.embedded?.createTopic(topic, partitions: 2) }
    var store = StoreConfiguration(redis.address)
    store.callDeadlineMilliseconds = hangMilliseconds
    var settings = FanOutSettings(
      topics: topics, kafka: kafka.configuration, store: store,
      listen: SocketAddress(host: "127.0.0.1", port: 0),
      admission: .anyone, keys: InForce(KeyRing([KeyRing.Key([1, 2, 3])])), worker: "test/0")
    // A machine that stands still looks like a Kafka or a lane that is away.
    (settings.askMilliseconds, settings.startMilliseconds, settings.limits.laneMilliseconds) = (
      Int32(hangMilliseconds), hangMilliseconds, 600_000
    )
    change(&settings)
    lane = FanOutLane(
      settings, in: LanePlace(on: EventLoop(name: "lane"), logger: .silent, health: health), metrics: FanOutMetrics(metrics))
  }

  /// Runs `body` beside a lane that has started, and drains it afterwards.
  static func with(
    _ change: @escaping @Sendable (inout FanOutSettings) -> Void = { _ in }, _ body: @Sendable (LaneFixture) async throws -> Void
  ) async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      try await withRedis { redis in
        let fixture = try LaneFixture(kafka, redis, change)
        var failure: (any Error)?
        do {
          try await fixture.start()
          try await body(fixture)
        } catch { failure = error }
        await fixture.drain(withinMilliseconds: 0)
        await fixture.cutAll()
        await fixture.lane.loop.close()
        await fixture.loop.close()
        if let failure { throw failure }
      }
    }
  }

  private func start() async throws {
    let lane = lane
    address = try await Task(executorPreference: lane.loop) { try await lane.start() }.value
    await eventually("the lane is ready") { $0.health.isReady }
    if !health.isReady { Issue.record("\(health.unready)") }
    var configuration = WebSocketConfiguration()
    configuration.subprotocols = [DeviceProtocol.subprotocol]
    devices.client = WebSocketClient(on: loop, configuration: configuration, connectMilliseconds: hangMilliseconds)
  }

  /// The port where devices connect.
  var port: Int { address?.port ?? 0 }

  nonisolated func drain(withinMilliseconds milliseconds: Int) async {
    let lane = lane
    await Task(executorPreference: lane.loop) { await lane.drain(withinMilliseconds: milliseconds) }.value
  }

  /// Runs `body` while the lane's thread does nothing.
  nonisolated func whileTheLaneStandsStill(_ body: () async throws -> Void) async throws {
    let (begin, end) = (Latch(), Latch())
    let still = Task(executorPreference: lane.loop) {
      begin.open()
      end.block()
    }
    await begin.wait()
    let result: Result<Void, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    end.open()
    await still.value
    try result.get()
  }

  private func cutAll() {
    for device in devices.all { device.connection?.abort() }
    devices.all = []
  }

  // MARK: Redis

  /// The bytes of the entry of a plain request to a device, published now; or of a removal.
  ///
  /// - Parameter change: changes the entry before it is encoded.
  static func entry(
    for token: String, offset: Int64, application: String = "com.example.shop", removing: Bool = false, isRedriven: Bool = false,
    _ change: (inout DeliveryEntry) -> Void = { _ in }
  ) throws -> [UInt8] {
    var buffer = ByteBuffer()
    var headers = RequestHeaders()
    var (target, topic, requests) = ("device:\(token)", application, "requests")
    var value = removing ? #"{"identifiers":["c"]}"# : #"{"aps":{"alert":"x"}}"#
    try target.withUTF8 { target in
      try topic.withUTF8 { topic in
        try value.withUTF8 { value in
          try requests.withUTF8 { requests in
            (headers[.target], headers[.topic]) = (UnsafeRawBufferPointer(target), UnsafeRawBufferPointer(topic))
            headers[.operation] = removing ? ("remove" as StaticString).withUTF8Buffer { UnsafeRawBufferPointer($0) } : nil
            let record = RequestRecord(
              key: UnsafeRawBufferPointer(target), value: UnsafeRawBufferPointer(value), headers: headers,
              topic: UnsafeRawBufferPointer(requests),
              position: SourcePosition(partition: 0, offset: offset, timestamp: WallClock.milliseconds()))
            guard case .accepted(let view) = RequestView.read(record, limits: RequestLimits()) else { throw ClusterFailure("no request") }
            var entry = DeliveryEntry(view)
            if isRedriven { entry.flags.insert(.isRedriven) }
            change(&entry)
            try entry.append(to: &buffer)
          }
        }
      }
    }
    return buffer.withUnsafeBytes(Array.init)
  }

  /// The key of a device's hash, which a session of it has made.
  nonisolated func deviceKey(_ token: String, in redis: RedisProbe) async throws -> String {
    guard let key = try await redis.command("KEYS", .text("d{*}\(token)")).array?.first?.text else { throw ClusterFailure("no device") }
    return key
  }

  /// The key of its mailbox.
  nonisolated func mailboxKey(_ token: String, in redis: RedisProbe) async throws -> String {
    "m" + (try await deviceKey(token, in: redis)).dropFirst()
  }

  /// Puts an entry into a device's mailbox.
  nonisolated func put(_ entry: [UInt8], _ revision: Revision, for token: String, in redis: RedisProbe) async throws {
    let mailbox = try await mailboxKey(token, in: redis)
    try await redis.command("HSET", .text(mailbox), .bytes(revision.withBytes { Array($0) }), .bytes(entry))
  }

  // MARK: Devices

  /// Connects one, which says hello unless told otherwise; answers its number.
  ///
  /// - Parameters:
  ///   - authorization: as JSON.
  ///   - unacknowledged: the places of the notifications that it never acknowledges; the first is 1.
  func connect(
    _ token: String = LaneFixture.token(), user: String? = nil, credential: String? = nil, authorization: String? = nil,
    saysHello: Bool = true, leaving unacknowledged: Set<Int> = []
  ) async throws(WebSocketClientError) -> Int {
    let device = TestDevice(saysHello ? Self.hello(token, user, credential, authorization) : nil, leaving: unacknowledged)
    devices.all.append(device)
    let number = devices.all.count - 1
    guard let client = devices.client, let address else { return number }
    _ = try await client.connect(to: "ws://\(address)\(DeviceProtocol.path)", handler: device)
    return number
  }

  /// The `filtered` events among so many of them.
  nonisolated func filtered(among count: Int) async throws -> [TestRecord] {
    try await kafka.records(of: topics.events, count: count).filter { $0.header("ce_type") == "carillon.filtered.v1" }
  }

  /// Connects one for a moment, so that it is registered and can have a mailbox; answers its token.
  func registered() async throws -> String {
    let token = Self.token()
    let device = try await connect(token)
    await eventually("it is welcomed") { !$0.frames("welcome", at: device).isEmpty }
    // A session that stays open may read what a test puts into the mailbox for the next one.
    devices.all[device].connection?.close(.goingAway)
    await eventually("it has gone") { $0.end(of: device) != nil }
    return token
  }

  static func token() -> String { (0..<8).map { _ in String(UInt32.random(in: (1 << 28)...(.max)), radix: 16) }.joined() }

  private static func hello(_ token: String, _ user: String?, _ credential: String? = nil, _ authorization: String? = nil) -> String {
    JSONValue.object(
      [
        .init(key: "type", value: "hello"), .init(key: "device", value: .string(token)),
        .init(key: "application", value: "com.example.shop"),
      ] + [("user", user), ("credential", credential)].compactMap { key, value in value.map { .init(key: key, value: .string($0)) } }
        + [authorization.flatMap { try? JSONValue(parsing: $0) }].compactMap { $0.map { .init(key: "authorization", value: $0) } }
    ).text
  }

  /// All of them say hello at once.
  func sayHello(_ devices: [Int]) { for device in devices { send(Self.hello(Self.token(), nil), from: device) } }

  /// Sends a frame so many times at once.
  func send(_ text: String, times count: Int, from device: Int) { for _ in 0..<count { send(text, from: device) } }

  func send(_ text: String, from device: Int) { devices.all[device].connection?.send(.text(text)) }

  /// The frames of a type that a device has got.
  func frames(_ type: String, at device: Int) -> [JSONValue] {
    devices.all[device].frames.filter { $0["type"]?.stringValue == type }
  }

  /// How many of its requests a device has got an answer to.
  func answers(at device: Int) -> Int { frames("accepted", at: device).count + frames("refused", at: device).count }

  /// The frames of a type that any device has got.
  func frames(_ type: String) -> [JSONValue] { devices.all.indices.flatMap { frames(type, at: $0) } }

  func end(of device: Int) -> WebSocketEnd? { devices.all[device].end }

  /// How many devices have got a frame of this type.
  func count(_ type: String) -> Int { devices.all.count { $0.frames.contains { $0["type"]?.stringValue == type } } }

  /// When each device was welcomed, in milliseconds of the loop's clock.
  var welcomes: [UInt64] { devices.all.compactMap(\.welcomedAt) }

  /// When each device's connection ended, and when it was told to reconnect, in the same milliseconds.
  var ends: [(ended: UInt64, comesBack: UInt64, code: UInt16)] {
    devices.all.compactMap { device in
      device.endedAt.map { ($0, $0 + UInt64(device.told ?? 0), device.end?.code.rawValue ?? 0) }
    }
  }

  /// Waits until a condition holds, and says so when it does not.
  func eventually(
    _ what: String, _ location: SourceLocation = #_sourceLocation, _ condition: @Sendable (isolated LaneFixture) async -> Bool
  ) async {
    await TestSupport.eventually(what, location) { await condition(self) }
  }

  /// A metric's value, by its name with labels as `/metrics` shows it.
  nonisolated func metric(_ name: String) -> Double {
    metrics.text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.flatMap { Double($0.dropFirst(name.count + 1)) } ?? 0
  }

  nonisolated func limited(_ limit: Limit) -> Double { metric("carillon_fanout_limited_total{limit=\"\(limit.rawValue)\"}") }
}

/// A device's connection that keeps what it gets.
final class TestDevice: WebSocketHandler {
  private let hello: String?
  private(set) var connection: WebSocketConnection?
  private(set) var frames: [JSONValue] = []
  private(set) var end: WebSocketEnd?
  private(set) var welcomedAt: UInt64?
  private(set) var endedAt: UInt64?
  private(set) var told: Int?
  /// The places of the notifications that it never acknowledges.
  private let unacknowledged: Set<Int>
  private var count = 0

  init(_ hello: String?, leaving unacknowledged: Set<Int> = []) { (self.hello, self.unacknowledged) = (hello, unacknowledged) }

  func webSocketOpened(_ connection: WebSocketConnection) {
    self.connection = connection
    if let hello { connection.send(.text(hello)) }
  }

  func webSocketReceived(text: UnsafeRawBufferPointer) {
    guard let frame = try? JSONValue(parsing: text) else {
      Issue.record("a frame that is no JSON")
      return
    }
    frames.append(frame)
    switch frame["type"]?.stringValue {
    case "welcome": welcomedAt = Self.now
    case "goaway": told = frame["reconnectAfterMs"]?.integerValue.map { Int($0) }
    case "notify", "remove":
      count += 1
      guard !unacknowledged.contains(count), let delivery = frame["delivery"]?.integerValue else { return }
      connection?.send(.text(#"{"type":"ack","deliveries":[\#(delivery)]}"#))
    default: break
    }
  }

  func webSocketReceived(binary: UnsafeRawBufferPointer) { Issue.record("a binary frame") }

  func webSocketEnded(_ end: WebSocketEnd) {
    self.end = end
    endedAt = Self.now
    connection = nil
  }

  private static var now: UInt64 { UInt64(SteadyClock.milliseconds()) }
}

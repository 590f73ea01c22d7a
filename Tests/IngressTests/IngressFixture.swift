import EventLoop
import HTTP
import JSON
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Ingress

/// One ingress lane on an embedded broker of its own.
final class IngressFixture: Sendable {
  let kafka: KafkaFixture
  let topics: Topics
  let port: Int
  let health: Health
  let metrics: MetricRegistry
  private let lane: IngressLane

  /// An answer: the status, the header fields by name in lower case, and the body.
  struct Answer {
    let status: Int
    let headers: [String: String]
    let body: String

    /// The body as JSON.
    var json: JSONValue? { try? JSONValue(parsing: body) }
    /// The lines of the body as JSON.
    var lines: [JSONValue] { body.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) } }
  }

  private init(_ kafka: KafkaFixture, _ fates: FateDesk, _ change: (inout IngressSettings) -> Void) async throws {
    self.kafka = kafka
    topics = Topics(prefix: KafkaFixture.unique("ingress") + ".")
    try await kafka.makeTopics([topics.requests], partitions: 2)
    var settings = IngressSettings(
      topics: topics, kafka: kafka.configuration, listen: SocketAddress(host: "127.0.0.1", port: 0), admission: .anyone)
    (settings.askMilliseconds, settings.answerMilliseconds) = (Int32(hangMilliseconds), hangMilliseconds)
    settings.quietMilliseconds = hangMilliseconds
    change(&settings)
    (health, metrics) = (Health(), MetricRegistry())
    let lane = IngressLane(
      settings, in: LanePlace(on: EventLoop(name: "lane"), logger: .silent, health: health), fates: fates, metrics: IngressMetrics(metrics))
    self.lane = lane
    port = try #require(try await Task(executorPreference: lane.loop) { try await lane.start() }.value).port
  }

  /// Runs `body` beside a lane that has started, and drains it afterwards.
  static func with(
    fates: FateDesk = FateDesk { _, _ in nil }, _ change: @escaping @Sendable (inout IngressSettings) -> Void = { _ in },
    _ body: @concurrent @Sendable (IngressFixture) async throws -> Void
  ) async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let fixture = try await IngressFixture(kafka, fates, change)
      var failure: (any Error)?
      do { try await withTaskExecutorPreference(BlockingThreads.shared) { try await body(fixture) } } catch { failure = error }
      await fixture.drain(withinMilliseconds: 0)
      await fixture.lane.loop.close()
      if let failure { throw failure }
    }
  }

  /// The turns of the lane's loop.
  var turns: UInt64 { lane.loop.turns }

  func drain(withinMilliseconds milliseconds: Int) async {
    let lane = lane
    await Task(executorPreference: lane.loop) { await lane.drain(withinMilliseconds: milliseconds) }.value
  }

  /// The text of a POST.
  static func post(_ body: String, _ headers: [String] = []) -> String {
    (["POST /v1/requests HTTP/1.1", "Host: 127.0.0.1", "Content-Length: \(body.utf8.count)"] + headers + ["", body]).joined(
      separator: "\r\n")
  }

  /// Sends a request on a connection of its own, and reads the answer.
  func send(_ text: String) throws -> Answer {
    let socket = try RawSocket(port: port)
    try socket.send(text)
    return try Self.answer(socket)
  }

  /// Publishes a body.
  func publish(_ body: String, _ headers: [String] = []) throws -> Answer { try send(Self.post(body, headers)) }

  /// Asks for a path.
  func get(_ path: String, _ headers: [String] = []) throws -> Answer {
    try send((["GET \(path) HTTP/1.1", "Host: 127.0.0.1"] + headers + ["", ""]).joined(separator: "\r\n"))
  }

  /// Reads one answer.
  static func answer(_ socket: RawSocket) throws -> Answer {
    let head = try socket.read(through: "\r\n\r\n").split(separator: "\r\n")
    let status = try #require(head.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    let headers = Dictionary(
      head.dropFirst().map { line in
        let parts = line.split(separator: ": ", maxSplits: 1)
        return (parts[0].lowercased(), parts.count > 1 ? String(parts[1]) : "")
      }
    ) { first, _ in first }
    let body = try socket.read(exactly: headers["content-length"].flatMap { Int($0) } ?? 0)
    return Answer(status: status, headers: headers, body: String(decoding: body, as: UTF8.self))
  }

  /// The records of the requests topic.
  func records(_ count: Int) async throws -> [TestRecord] { try await kafka.records(of: topics.requests, count: count) }
}

import DeviceClient
import EventLoop
import Foundation
import Kafka
import Notifications
import Synchronization
import TestSupport
import Testing

/// Devices of the project's own library, and what each of them has gone through.
final class Fleet: Sendable {
  /// What one device has gone through. Times are milliseconds of `SteadyClock`.
  struct Log: Sendable {
    var welcomes: [Int64] = []
    var ends: [(at: Int64, code: UInt16)] = []
    var unreachable: [String] = []
    /// Identifier of each notification that was shown, as often as it was.
    var shown: [String: Int] = [:]
    var knownAgain = 0
    /// When each notification was shown.
    var shownAt: [Int64] = []
    /// When the first notification came after each welcome.
    var isConnected = false
  }

  let tokens: [String]
  private let loop = EventLoop(name: "fleet")
  private let devices: [Device]
  private let logs: Logs
  private let oversleptInAll = Mutex<Int64>(0)

  private final class Logs: Sendable {
    let all: Mutex<[Log]>
    init(_ count: Int) { all = Mutex(Array(repeating: Log(), count: count)) }
  }

  /// Devices that connect to one URL, from the moment of `start` on.
  ///
  /// - Parameter authorities: the certificates that they trust.
  init(_ count: Int, url: String, authorities: String? = nil) throws {
    let logs = Logs(count)
    self.logs = logs
    var devices: [Device] = []
    var tokens: [String] = []
    for number in 0..<count {
      let text = (0..<4).map { _ in String(UInt64.random(in: (1 << 60)...(.max)), radix: 16) }.joined()
      guard let token = DeviceToken(text) else { throw ClusterFailure("\(text) is no token") }
      tokens.append(text)
      var configuration = DeviceConfiguration(
        url: url, hello: Hello(device: token, application: "com.example.shop", authorization: Authorization(status: .authorized)))
      configuration.certificateAuthorities = authorities.map { Array($0.utf8) }
      devices.append(Device(configuration, on: loop) { event in logs.all.withLock { Self.note(event, &$0[number]) } })
    }
    self.devices = devices
    self.tokens = tokens
  }

  private static func note(_ event: DeviceEvent, _ log: inout Log) {
    switch event {
    case .connected:
      log.welcomes.append(RealTime.now())
      log.isConnected = true
    case .closed(let code, _, _):
      log.ends.append((RealTime.now(), code))
      log.isConnected = false
    case .unreachable(let reason, _): log.unreachable.append(reason)
    case .shown(let notification), .updated(let notification):
      log.shown[notification.identifier.text, default: 0] += 1
      log.shownAt.append(RealTime.now())
    case .dropped(_, _, _, .known): log.knownAgain += 1
    default: break
    }
  }

  func start() async throws { for device in devices { try await device.start() } }

  /// Leaves, and ends the loop.
  func close() async {
    await withTaskGroup { group in for device in devices { group.addTask { await device.close() } } }
    await loop.close()
  }

  /// What each device has gone through so far.
  func read() -> [Log] { logs.all.withLock { $0 } }

  /// How long this process, and so most likely the machine, stood still while something was waited for, in milliseconds.
  var overslept: Int64 { oversleptInAll.withLock { $0 } }

  /// Waits until something is true of all logs.
  func until(_ what: String, _ condition: ([Log]) -> Bool) async throws {
    let isTrue = await eventually(what) {
      if condition(read()) { return true }
      let late = await RealTime.passMoment()
      oversleptInAll.withLock { $0 += late }
      return false
    }
    guard isTrue else { throw ClusterFailure("never: \(what)") }
  }

  /// Waits until each device has shown all requests that were published for it, and expects that it showed each once, and nothing else.
  func showEachOnce(_ published: [[String]]) async throws {
    try await until("every request is shown") { logs in zip(logs, published).allSatisfy { $0.shown.count >= $1.count } }
    for (log, ids) in zip(read(), published) {
      #expect(Set(log.shown.keys) == Set(ids))
      #expect(log.shown.values.allSatisfy { $0 == 1 })
    }
  }

  /// The longest of the pauses between these times.
  static func longestPause(_ times: [Int64]) -> Int64 {
    let sorted = times.sorted()
    return zip(sorted, sorted.dropFirst()).map { $1 - $0 }.max() ?? 0
  }

  /// The most of these times that lie within a second.
  static func mostInASecond(_ times: [Int64]) -> Int {
    let sorted = times.sorted()
    var (most, first) = (0, 0)
    for (index, time) in sorted.enumerated() {
      while sorted[first] <= time - 1000 { first += 1 }
      most = max(most, index - first + 1)
    }
    return most
  }
}

/// Publishes plain requests to devices at a steady rate, until it is told to stop.
actor SteadyPublisher: LoopActor {
  nonisolated let loop = EventLoop(name: "publisher")
  private var isStopping = false
  private let failures = Failures()
  private var published: [[String]] = []

  private final class Failures: ProducerHandler {
    var first: KafkaError?
    func producerDelivered(_ reports: [DeliveryReport]) { first = first ?? reports.lazy.compactMap(\.error).first }
    func producerHasRoom() {}
    func producerFailed(_ error: KafkaError) { if error.isFatal { first = error } }
  }

  /// Publishes until `stop`, and answers the ids that each device must show.
  func run(_ kafka: String, topic: String, tokens: [String], perSecond: Int) async throws -> [[String]] {
    published = Array(repeating: [], count: tokens.count)
    let configuration = KafkaConfiguration(bootstrapServers: kafka.split(separator: ",").map(String.init), clientID: "publisher")
    let producer = try Producer(on: loop, configuration, handler: failures)
    let handle = try producer.topic(topic)
    let headers = RecordHeaders()
    let value = Array(#"{"aps":{"alert":{"title":"Order","body":"It is on its way"}}}"#.utf8)
    let beginning = RealTime.now()
    var count = 0
    while !isStopping {
      let wanted = Int(RealTime.now() - beginning) * perSecond / 1000
      while count < wanted {
        let device = Int.random(in: tokens.indices)
        let id = UUID().uuidString.lowercased()
        for (name, text) in [("target", "device:" + tokens[device]), ("apns-topic", "com.example.shop"), ("apns-id", id)] {
          name.withCString { name in Array(text.utf8).withUnsafeBytes { headers.append(name, $0) } }
        }
        let outcome = Array("device:\(tokens[device])".utf8).withUnsafeBytes { key in
          value.withUnsafeBytes { producer.produce(handle, key: key, value: $0, headers: headers, opaque: 0) }
        }
        guard case .taken = outcome else { throw ClusterFailure("the publisher's Kafka does not keep up") }
        published[device].append(id)
        count += 1
      }
      await pause()
    }
    guard await producer.close(withinMilliseconds: hangMilliseconds), failures.first == nil else {
      throw ClusterFailure("Kafka did not take every request: \(failures.first.map { "\($0)" } ?? "too slow")")
    }
    return published
  }

  func stop() { isStopping = true }
}

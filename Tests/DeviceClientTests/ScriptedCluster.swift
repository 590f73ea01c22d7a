import DeviceClient
import EventLoop
import Foundation
import HTTP
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

/// A server of `carillon.v1` that does what a test says, on a real socket.
actor ScriptedCluster: LoopActor {
  nonisolated let loop = EventLoop(name: "scripted")

  private var server: HTTPServer?
  private let script = Script()
  private var sessions: [ScriptedSession] { script.sessions }

  /// What connections and the test share.
  private final class Script {
    var welcome: JSONValue? = ScriptedCluster.welcome()
    var following: [JSONValue] = []
    var sessions: [ScriptedSession] = []
  }

  static func welcome(now: Int64 = 1_700_000_000_000) -> JSONValue {
    ["type": "welcome", "session": "s", "now": .integer(now), "pingSeconds": 30, "window": 32, "rememberSeconds": 2_592_000]
  }

  /// Listens; answers the URL.
  func start() throws -> String {
    var configuration = WebSocketConfiguration()
    configuration.subprotocols = [DeviceProtocol.subprotocol]
    configuration.maximumMessageBytes = 1 << 20
    var routes = HTTPRoutes()
    routes.addWebSocket(DeviceProtocol.path, configuration) { [script] _ in
      let session = ScriptedSession { [unowned script] in script.welcome.map { [$0] + script.following } ?? [] }
      script.sessions.append(session)
      return .accept(session)
    }
    let server = try HTTPServer(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0), routes: routes)
    self.server = server
    return "ws://\(server.localAddress)\(DeviceProtocol.path)"
  }

  /// What each hello is answered with; nil: nothing.
  func answer(with welcome: JSONValue?) { script.welcome = welcome }

  /// Sends these frames after each welcome.
  func follow(with frames: [JSONValue]) { script.following = frames }

  /// Sends frames to a session in one write.
  func send(_ frames: JSONValue..., to session: Int = 0) { for frame in frames { sessions[session].send(frame.text) } }

  func send(text: String, to session: Int = 0) { sessions[session].send(text) }

  func close(_ code: UInt16, session: Int = 0) {
    sessions[session].connection?.close(WebSocketCloseCode(rawValue: code), "", pending: .sent)
  }

  func cut(session: Int = 0) { sessions[session].connection?.abort() }

  /// How many connections there have been.
  var count: Int { sessions.count }

  /// The number of the next session, once the server has taken every connection of a process that has ended.
  func nextSession() async throws -> Int {
    guard let port = server?.localAddress.port else { return 0 }
    // Connections are taken in the order in which they came.
    try await Task(executorPreference: BlockingThreads.shared) {
      let socket = try RawSocket(port: port)
      try socket.send("GET / HTTP/1.0\r\n\r\n")
      _ = try socket.readToEnd()
    }.value
    return count
  }

  /// The frames that a session has sent so far, of one type.
  func frames(_ type: String, of session: Int = 0) -> [JSONValue] {
    guard sessions.indices.contains(session) else { return [] }
    // A device sends a response again while its answer is missing for long. That is the same response.
    var responses: Set<String> = []
    return sessions[session].frames.filter { frame in
      guard frame["type"]?.stringValue == type else { return false }
      return type != "response" || responses.insert(frame["response"]?.stringValue ?? "").inserted
    }
  }

  /// Waits until a session has sent so many frames of a type, and answers them.
  @discardableResult
  func expect(_ type: String, of session: Int = 0, count number: Int = 1, _ location: SourceLocation = #_sourceLocation) async
    -> [JSONValue]
  {
    await eventually("\(number) frames \(type) of session \(session)", location) { frames(type, of: session).count >= number }
    return frames(type, of: session)
  }

  func stop() async {
    await server?.close(withinMilliseconds: 1000)
    server = nil
  }

  /// Runs a test with a cluster and ends it.
  static func with(_ body: (ScriptedCluster, String) async throws -> Void) async throws {
    let cluster = ScriptedCluster()
    let url = try await cluster.start()
    do {
      try await body(cluster, url)
    } catch {
      await cluster.stop()
      await cluster.loop.close()
      throw error
    }
    await cluster.stop()
    await cluster.loop.close()
  }
}

/// One connection of the scripted cluster.
private final class ScriptedSession: WebSocketHandler {
  private(set) var connection: WebSocketConnection?
  private(set) var frames: [JSONValue] = []
  private let welcome: () -> [JSONValue]

  init(_ welcome: @escaping () -> [JSONValue]) { self.welcome = welcome }

  func send(_ text: String) { connection?.send(.text(text)) }

  func webSocketOpened(_ connection: WebSocketConnection) { self.connection = connection }

  func webSocketReceived(text: UnsafeRawBufferPointer) {
    guard let frame = try? JSONValue(parsing: text) else { return }
    frames.append(frame)
    if frame["type"] == "hello" { for frame in welcome() { send(frame.text) } }
  }

  func webSocketReceived(binary: UnsafeRawBufferPointer) {}
  func webSocketEnded(_ end: WebSocketEnd) { connection = nil }
}

/// A device on a loop of its own, and all that it has told.
final class DeviceUnderTest: Sendable {
  static let token = String(repeating: "ab", count: 32)

  let loop: EventLoop
  let device: Device
  private let log: EventLog

  final class EventLog: Sendable {
    let events = Mutex<[DeviceEvent]>([])
  }

  init(_ url: String, _ change: (inout DeviceConfiguration) -> Void = { _ in }) {
    guard let token = DeviceToken(Self.token) else { preconditionFailure("the token is one") }
    var configuration = DeviceConfiguration(
      url: url,
      hello: Hello(
        device: token, application: "com.example.shop", user: "ada", authorization: Authorization(status: .authorized),
        categories: [Self.category]))
    // Only a test of a time gives it one.
    configuration.connectMilliseconds = hangMilliseconds
    configuration.serviceExtensionMilliseconds = hangMilliseconds
    configuration.delegateMilliseconds = hangMilliseconds
    configuration.attachmentMilliseconds = hangMilliseconds
    configuration.stateLimits.busyMilliseconds = hangMilliseconds
    change(&configuration)
    let log = EventLog()
    self.log = log
    loop = EventLoop(name: "device")
    device = Device(configuration, on: loop) { event in log.events.withLock { $0.append(event) } }
  }

  static let category = NotificationCategory(
    identifier: "reply", options: [.customDismissAction],
    actions: [
      NotificationAction(identifier: "reply", title: "Reply", textInput: .init()), NotificationAction(identifier: "like", title: "Like"),
    ])

  var events: [DeviceEvent] { log.events.withLock { $0 } }

  /// How many welcomes there have been.
  var connections: Int { events.count { if case .connected = $0 { true } else { false } } }

  /// What was told of notifications, as `shown order-7 r2`, `dropped order-7 stale` and so on.
  var story: [String] {
    events.compactMap { event in
      switch event {
      case .shown(let notification): "shown \(notification.identifier) \(notification.frame.revision)"
      case .updated(let notification): "updated \(notification.identifier) \(notification.frame.revision)"
      case .silent(let notification): "silent \(notification.identifier)"
      case .held(let notification): "held \(notification.identifier)"
      case .dropped(_, _, let identifiers, let reason): "dropped \(identifiers.map(\.text).joined(separator: " ")) \(reason.rawValue)"
      case .removed(let identifiers, _): "removed \(identifiers.map(\.text).joined(separator: " "))"
      case .accepted(.response): "accepted response"
      case .accepted(.request): "accepted request"
      case .refused(let frame): "refused \(frame.reason)"
      case .unregistered: "unregistered"
      default: nil
      }
    }
  }

  func expect(_ what: String..., location: SourceLocation = #_sourceLocation) async {
    await eventually("\(what) in \(story)", location) { self.story == what }
  }

  func close() async {
    await device.close()
    await loop.close()
  }
}

/// A frame `notify`.
func notify(
  _ delivery: Int64, id: String, _ identifier: String? = nil, revision: String, expiration: Int64 = 0, category: String? = nil,
  aps: JSONValue? = nil, trigger: JSONValue? = nil
) -> JSONValue {
  var content: [JSONValue.Member] = [.init(key: "alert", value: ["title": .string("Order"), "body": .string(revision)])]
  if let category { content.append(.init(key: "category", value: .string(category))) }
  var members: [JSONValue.Member] = [
    .init(key: "type", value: "notify"), .init(key: "delivery", value: .integer(delivery)), .init(key: "id", value: .string(id)),
    .init(key: "identifier", value: .string(identifier ?? id)), .init(key: "revision", value: .string(revision)),
    .init(key: "expiration", value: .integer(expiration)), .init(key: "priority", value: 10), .init(key: "pushType", value: "alert"),
    .init(key: "payload", value: ["aps": aps ?? .object(content)]), .init(key: "receipt", value: .string("receipt-\(id)")),
  ]
  if let trigger { members.append(.init(key: "trigger", value: trigger)) }
  return .object(members)
}

/// The frame of a `notify` as the device reads it.
func notifyFrame(_ value: JSONValue) throws -> NotifyFrame {
  var text = value.text
  guard case .notify(let frame) = try text.withUTF8({ try ServerFrame(UnsafeRawBufferPointer($0)) }) else {
    throw JSONError(reason: .notAnObject, offset: 0)
  }
  return frame
}

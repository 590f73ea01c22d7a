import JSON

@testable import DeviceClient
@testable import Notifications

/// The library's device without socket, disk and clock, in the form of Tests/Conformance/README.md.
final class CaseDevice {
  /// What a frame makes the device do.
  struct Result {
    /// The frames that it sends.
    var answer: [JSONValue] = []
    /// What the screen shows.
    var shown: [JSONValue] = []
    /// Whether it closes the connection instead of deciding.
    var closes = false
  }

  private let memory: DeviceMemory
  private var registration: DeviceRegistration

  /// A device with a state.
  init(_ state: JSONValue) throws {
    var hello: JSONValue = ["type": "hello", "device": .string(DeviceUnderTest.token), "application": "com.example.shop"]
    for name in ["platform", "categories"] { hello.set(name, state[name]) }
    hello.set("authorization", state["authorization"] ?? ["status": "authorized"])
    var text = hello.text
    guard case .hello(let hello) = try text.withUTF8({ try DeviceFrame(UnsafeRawBufferPointer($0)) }) else { throw CaseError("hello") }
    let configuration = DeviceConfiguration(url: "ws://127.0.0.1", hello: hello)
    memory = DeviceMemory(configuration, commit: nil)
    registration = DeviceRegistration(configuration)
    memory.restore(try Self.stored(state))
    memory.store.state = state["screen"] == "locked" ? .locked : .background
    if let seconds = state["rememberSeconds"]?.integerValue { memory.store.rememberSeconds = seconds }
    if let quiet = state["quiet"] { _ = receive(Self.welcome(memory.store.rememberSeconds, quiet).text, now: 0, uncertain: 0) }
  }

  // MARK: Frames

  /// Takes the text of a frame, at a time of the cluster.
  func receive(_ text: String, now: Int64, uncertain: Int64) -> Result {
    var (text, result) = (text, Result())
    guard let frame = text.withUTF8({ try? ServerFrame(UnsafeRawBufferPointer($0)) }) else { return result }
    var acknowledgements = Acknowledgements()
    switch frame {
    case .notify(let frame):
      guard !memory.store.needsTime(frame, from: now - uncertain, to: now) else {
        result.closes = true
        return result
      }
      memory.take(frame, now: now) { [registration] event, acknowledgement in
        acknowledgements.add(acknowledgement)
        switch event {
        case .shown(let notification), .updated(let notification):
          let actions = registration.hello.category(of: notification)?.actions ?? []
          result.shown.append([
            "identifier": .string(notification.identifier.text),
            "presentation": .array(notification.presentation.names.map { .string($0) }),
            "actions": .array(actions.map { .string($0.identifier.text) }),
          ])
        default: break
        }
      }
    case .remove(let frame): memory.remove(frame, now: now) { acknowledgements.add($1) }
    case .accepted(let subject): settle(subject)
    case .refused(let frame): settle(frame.subject)
    case .welcome(let frame):
      memory.store.rememberSeconds = frame.rememberSeconds
      _ = registration.welcomed(frame.quiet, frameBytes: frame.limits.frameBytes, now: 0)
      memory.save(registration.stored)
    case .linked, .gap, .heartbeat, .goaway, .unknown: break
    }
    if !acknowledgements.isEmpty {
      var json = JSONWriter()
      acknowledgements.write(to: &json)
      result.answer = [(try? JSONValue(parsing: json.text)) ?? .null]
    }
    return result
  }

  private func settle(_ subject: FrameSubject) { if case .response(let id) = subject { _ = memory.settle(id) } }

  private static func welcome(_ rememberSeconds: Int64, _ quiet: JSONValue) -> JSONValue {
    [
      "type": "welcome", "session": "0", "now": 0, "pingSeconds": 30, "window": 32, "rememberSeconds": .integer(rememberSeconds),
      "quiet": quiet,
    ]
  }

  // MARK: The state

  /// The members of the state that frames change.
  var state: [String: JSONValue] {
    let store = memory.store
    var (ids, revisions): ([JSONValue], [JSONValue]) = ([], [])
    store.ids.forEach { id, _, at in ids.append([.string(id.text), .integer(at)]) }
    store.revisions.forEach { identifier, revision, at in
      revisions.append([.string(identifier.text), .string(revision.text), .integer(at)])
    }
    var state: [String: JSONValue] = [
      "rememberSeconds": .integer(store.rememberSeconds), "ids": .array(ids), "revisions": .array(revisions),
      "badge": .integer(Int64(store.badge)), "list": .array(store.delivered.map { Self.listed($0, isPending: false) }),
      "pending": .array(store.pending.map { Self.listed($0, isPending: true) }),
      "responses": .array(memory.outbox.waiting.map { Self.value { $0.write(to: &$1) }($0) }),
    ]
    state["floor"] = store.floor.map { .string($0.text) }
    state["quiet"] = store.quietHours.map(Self.value { $0.write(to: &$1) })
    return state
  }

  private static func value<Subject>(_ write: @escaping (Subject, inout JSONWriter) -> Void) -> (Subject) -> JSONValue {
    {
      var json = JSONWriter()
      write($0, &json)
      return (try? JSONValue(parsing: json.text)) ?? .null
    }
  }

  private static func listed(_ notification: DeliveredNotification, isPending: Bool) -> JSONValue {
    var listed: JSONValue = [
      "frame": [
        "id": .string(notification.id), "identifier": .string(notification.identifier.text),
        "revision": .string(notification.frame.revision),
      ], "takenAt": .integer(notification.takenAt),
    ]
    if !isPending { listed.set("presentation", .array(notification.presentation.names.map { .string($0) })) }
    if notification.isLocal { listed.set("local", true) }
    return listed
  }

  private static func stored(_ state: JSONValue) throws -> StoredState {
    var stored = StoredState()
    for entry in state["ids"]?.elements ?? [] {
      let (entry, at) = try Self.entry(entry, names: 1)
      stored.ids.append(.init(id: entry[0], at: at))
    }
    for entry in state["revisions"]?.elements ?? [] {
      let (entry, at) = try Self.entry(entry, names: 2)
      stored.revisions.append(.init(identifier: entry[0], revision: entry[1], at: at))
    }
    stored.floor = state["floor"]?.nameValue
    stored.badge = Int(state["badge"]?.integerValue ?? 0)
    stored.delivered = try (state["list"]?.elements ?? []).reversed().map(listed)
    stored.pending = try (state["pending"]?.elements ?? []).map(listed).map {
      .init(notification: $0, anchor: $0.takenAt, after: $0.takenAt)
    }
    for response in state["responses"]?.elements ?? [] {
      var text = response.text
      guard case .response(let frame) = try text.withUTF8({ try DeviceFrame(UnsafeRawBufferPointer($0)) }) else {
        throw CaseError("a response: \(response.text)")
      }
      let notification = try notifyFrame(notify(1, id: frame.response, frame.identifier.text, revision: "0"))
      stored.responses.append(
        StoredResponse(
          frame: frame, notification: DeviceDatabase.listed(notification, at: 0), isUnsent: true, isUntold: false))
    }
    return stored
  }

  private static func entry(_ value: JSONValue, names: Int) throws -> ([Name], Int64) {
    let parts = value.elements ?? []
    guard parts.count == names + 1, let at = parts[names].integerValue else { throw CaseError("an entry: \(value.text)") }
    return (parts.prefix(names).compactMap(\.nameValue), at)
  }

  private static func listed(_ value: JSONValue) throws -> DeliveredNotification {
    guard let frame = value["frame"], let takenAt = value["takenAt"]?.integerValue else { throw CaseError("in a list: \(value.text)") }
    let presentation = PresentationOptions(words: (value["presentation"]?.elements ?? []).compactMap(\.stringValue))
    return DeliveredNotification(
      try notifyFrame(frame), takenAt: takenAt, isLocal: value["local"]?.boolValue ?? false, ServiceExtensions(chain: nil, locale: nil)
    ).shown(presentation)
  }
}

/// A case is not in the form.
struct CaseError: Error, CustomStringConvertible {
  let description: String

  init(_ what: String) { description = "not in the form of a case: \(what)" }
}

import EventLoop
import JSON
import Notifications
import TestSupport
import Testing

@testable import DeviceClient

/// The database of a device, under random changes.
@Suite(.timeLimit(.minutes(10)), .onThreadsOfTheirOwn) struct StateFuzzTests {
  @Test func `what is read is what was written, whatever is in names, payloads and triggers`() async throws {
    try await TestFolder.with { folder in
      var random = RandomState(seed: 33)
      for round in 0..<(isComplete ? 20 : 6) {
        let path = folder.path + "/state-\(round)"
        var naive = NaiveState()
        for _ in 0..<3 {
          let database = DeviceDatabase.forTests(path, person: naive.state.registration.person)
          #expect(try await database.openForTests() == naive.state, "round \(round)")
          for _ in 0..<10 {
            let batch = random.batch()
            try await database.commit(batch)
            naive.apply(batch)
          }
          await database.closeForTests()
        }
        // What belongs to a person goes with the person, and nothing else.
        if naive.state.registration.person != nil { naive.apply([.forgotPerson]) }
        let last = DeviceDatabase.forTests(path, person: "another")
        #expect(try await last.openForTests() == naive.state, "round \(round)")
        await last.closeForTests()
      }
    }
  }

  @Test func `a frame is read as it was stored`() {
    var random = RandomState(seed: 7)
    for _ in 0..<(isComplete ? 500 : 100) {
      let frame = random.notification()
      #expect(NotifyFrame(stored: frame.jsonBytes) == frame)
    }
  }

  @Test func `bytes that are no frame are none`() {
    var random = RandomState(seed: 8)
    let corpus = (0..<20).map { _ in random.notification().jsonBytes }
    let failures = Fuzz("stored frames", corpus: corpus, tokens: ["{", "}", "\"type\":", "null", "\"payload\":{}"], inputs: 2_000).run {
      bytes, _ in
      guard let frame = NotifyFrame(stored: Array(bytes)) else { return nil }
      return NotifyFrame(stored: frame.jsonBytes) == frame ? nil : "\(frame) is read otherwise"
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}

extension DeviceDatabase {
  /// The database of the device of the tests.
  static func forTests(_ path: String, _ limits: StateLimits = StateLimits(), person: Name? = "ada") -> DeviceDatabase {
    DeviceDatabase(
      path: path, owner: Owner(token: DeviceUnderTest.token, application: "com.example.shop", person: person), limits: limits)
  }

  /// Opens it; returns the state without the clock, which is another on each machine, and without the application.
  func openForTests() throws(DeviceError) -> StoredState {
    var state = try open()
    (state.clock, state.application) = (nil, "")
    return state
  }

  /// A notification as the store lists it.
  static func listed(_ frame: NotifyFrame, at time: Int64) -> DeliveredNotification {
    DeliveredNotification(frame, takenAt: time, isLocal: false, ServiceExtensions(chain: nil, locale: nil)).shown([.list])
  }

  nonisolated func closeForTests() async {
    await end()
    await loop.close()
  }
}

/// A plain model of the database: arrays that changes are applied to.
struct NaiveState {
  private(set) var state = StoredState(token: DeviceToken(DeviceUnderTest.token))

  mutating func apply(_ changes: [StateChange]) { for change in changes { apply(change) } }

  private mutating func apply(_ change: StateChange) {
    switch change {
    case .took(let id, let at):
      state.ids.removeAll { $0.id == id }
      state.ids.append(.init(id: id, at: at))
    case .noted(let identifier, let revision, let at):
      state.revisions.removeAll { $0.identifier == identifier }
      state.revisions.append(.init(identifier: identifier, revision: revision, at: at))
    case .listed(let new, let isPending):
      unlist([new.identifier], isPending)
      if isPending {
        state.pending.append(.init(notification: new, anchor: new.takenAt, after: new.takenAt))
      } else {
        state.delivered.append(new)
      }
    case .waiting(let identifier, let anchor, let after):
      for index in state.pending.indices where state.pending[index].notification.identifier == identifier {
        let waiting = state.pending[index].notification.taken(at: anchor)
        state.pending[index] = .init(notification: waiting, anchor: anchor, after: after)
      }
    case .unlisted(let identifiers, let isPending): unlist(identifiers, isPending)
    case .extending(let new):
      state.extending.removeAll { $0.notification.identifier == new.identifier }
      state.extending.append(.init(notification: new))
    case .extensionBegan(let identifier, let isBegun):
      for index in state.extending.indices where state.extending[index].notification.identifier == identifier {
        state.extending[index].isBegun = isBegun
      }
    case .extended(let identifiers): state.extending.removeAll { identifiers.contains($0.notification.identifier) }
    case .hello(let hello): state.hello = hello
    case .carriedOut: break
    case .forgotPerson:
      (state.delivered, state.pending, state.extending, state.badge) = ([], [], [], 0)
      state.responses.removeAll { $0.isLocked || !$0.isUnsent }
      for index in state.responses.indices { state.responses[index].isUntold = false }
    case .floor(let revision): state.floor = revision
    case .badge(let number): state.badge = number
    case .registration(let registration): state.registration = registration
    case .response(let response):
      if !state.responses.contains(where: { Name($0.frame.response) == Name(response.frame.response) }) {
        state.responses.append(response)
      }
    case .released: for index in state.responses.indices { state.responses[index].isLocked = false }
    case .withdrawn(let response): state.responses.removeAll { Name($0.frame.response) == Name(response) }
    case .forwarded(let response, let isUnanswered, let isLocked):
      finish(response) { ($0.stage, $0.isLocked) = (isUnanswered ? .unanswered : .forwarded, isLocked) }
    case .settled(let response): finish(response) { $0.isUnsent = false }
    case .told(let response): finish(response) { $0.isUntold = false }
    case .forgot(let time, let ids, let identifiers):
      state.ids = state.ids.suffix(ids).filter { $0.at >= time }
      state.revisions = state.revisions.suffix(identifiers).filter { $0.at >= time }
    }
  }

  private mutating func finish(_ response: String, _ change: (inout StoredResponse) -> Void) {
    for index in state.responses.indices where Name(state.responses[index].frame.response) == Name(response) {
      change(&state.responses[index])
    }
    state.responses.removeAll { Name($0.frame.response) == Name(response) && !$0.isUnsent && !$0.isUntold }
  }

  private mutating func unlist(_ identifiers: [Name], _ isPending: Bool) {
    if isPending {
      state.pending.removeAll { identifiers.contains($0.notification.identifier) }
    } else {
      state.delivered.removeAll { identifiers.contains($0.identifier) }
    }
  }
}

/// Random changes, as a cluster and a person could make them.
struct RandomState {
  var json: RandomJSON

  init(seed: UInt64) { json = RandomJSON(seed: seed) }

  /// A batch of changes; names come again, so that they meet.
  mutating func batch() -> [StateChange] { (0..<number(1...8)).map { _ in change() } }

  private mutating func change() -> StateChange {
    switch number(0...15) {
    case 15: number(0...9) == 0 ? .forgotPerson : .released
    case 0: .took(name(), at: number(0...4_000_000_000_000))
    case 1, 2: .noted(identifier: name(), revision: Name(text()), at: number(0...4_000_000_000_000))
    case 3: .unlisted((0..<number(0...3)).map { _ in name() }, isPending: number(0...1) == 0)
    case 4: .badge(number(0...Int.max))
    case 5:
      .response(
        StoredResponse(
          frame: ResponseFrame(
            response: name().text, receipt: text(), identifier: name(), action: Name(text()),
            userText: number(0...1) == 0 ? nil : text(), at: number(0...1) == 0 ? nil : number(0...Int64.max),
            isDynamic: number(0...1) == 0), notification: listed(), isUnsent: number(0...1) == 0, isUntold: true,
          stage: StoredResponse.Stage.allCases.randomElement(using: &json.generator) ?? .held, isLocked: number(0...1) == 0,
          options: Set(NotificationAction.Option.allCases.filter { _ in number(0...1) == 0 })))
    case 10: number(0...1) == 0 ? .released : .badge(0)
    case 6:
      switch number(0...3) {
      case 0: .settled(name().text)
      case 1: .told(name().text)
      case 2: .withdrawn(name().text)
      default: .forwarded(name().text, isUnanswered: number(0...1) == 0, isLocked: number(0...1) == 0)
      }
    case 11:
      .extending(DeliveredNotification(notification(), takenAt: number(0...Int64.max), isLocal: false, .init(chain: nil, locale: nil)))
    case 12: .extensionBegan(name(), number(0...1) == 0)
    case 13: .extended((0..<number(0...3)).map { _ in name() })
    case 8: .waiting(name(), anchor: number(0...Int64.max), after: number(0...Int64.max))
    case 9: number(0...1) == 0 ? .registration(personal()) : .hello(decided())
    case 7: .forgot(before: number(0...1_000_000_000_000), ids: number(0...5), identifiers: number(0...5))
    default:
      .listed(listed(), isPending: number(0...1) == 0)
    }
  }

  private mutating func personal() -> StoredRegistration {
    var registration = registration()
    if number(0...2) > 0 { registration.person = Name(identifier()) }
    if number(0...2) > 0 { registration.signOutRequest = Name(identifier()) }
    return registration
  }

  private mutating func registration() -> StoredRegistration {
    var registration = decided()
    registration.isRegistered = number(0...1) == 0
    registration.environment = [nil, .development, .production].randomElement(using: &json.generator) ?? nil
    return registration
  }

  private mutating func decided() -> StoredRegistration {
    var registration = StoredRegistration()
    if number(0...2) > 0 {
      registration.authorization = Authorization(
        status: Authorization.Status.allCases.randomElement(using: &json.generator) ?? .denied,
        previews: Authorization.Previews.allCases.randomElement(using: &json.generator))
      registration.authorization?.options[.sound] = number(0...1) == 0
    }
    if number(0...2) > 0 {
      registration.categories = [
        NotificationCategory(
          identifier: Name(identifier()), options: [.customDismissAction],
          actions: [NotificationAction(identifier: Name(identifier()), title: word(), options: [.foreground], textInput: .init())])
      ]
    }
    if number(0...2) > 0 {
      registration.quietHours = QuietHours(
        from: number(0...1_439), to: number(0...1_439), days: number(1...QuietHours.everyDay),
        timeZone: ["Europe/Rome", "é"][number(0...1)])
    }
    if number(0...2) > 0 { registration.quietRequest = Name(identifier()) }
    if number(0...2) > 0 { registration.zone = ["Europe/Rome", "Asia/Kolkata"][number(0...1)] }
    return registration
  }

  private mutating func listed() -> DeliveredNotification {
    let notification = DeliveredNotification(
      notification(), takenAt: number(0...Int64.max), isLocal: number(0...1) == 0, ServiceExtensions(chain: nil, locale: nil)
    ).shown(PresentationOptions(rawValue: number(0...63)))
    return number(0...1) == 0 ? notification.changed(to: self.notification()) : notification
  }

  /// One of a few names: some with line breaks and NUL, some that Unicode takes for one another.
  private mutating func name() -> Name {
    let names: [Name] = ["a", "é", "e\u{301}", "\u{212A}", "K", "a\nb", "a\r\nb", "\u{0}", "a\u{0}", "ß", "SS"]
    return number(0...20) == 0 ? Name(text()) : names.randomElement(using: &json.generator) ?? "a"
  }

  /// Any text: empty, with line breaks and NUL, and now and then very long.
  private mutating func text() -> String {
    let text = ["", "\n", "\r\n", "\u{0}", "\u{2028}", "}\n{\"at\":5}"].randomElement(using: &json.generator) ?? ""
    return number(0...30) == 0 ? String(repeating: text + json.string() + "x", count: 20_000) : json.string() + text + json.string()
  }

  /// A text as the protocol allows it for a name.
  private mutating func word() -> String {
    let visible = String(
      String.UnicodeScalarView(json.string().unicodeScalars.filter { $0.properties.generalCategory != .control }.prefix(30)))
    return visible.isEmpty ? "x" : visible
  }

  /// An identifier that the protocol allows; some are equal for Unicode.
  private mutating func identifier() -> String {
    number(0...3) == 0 ? word() : ["a", "é", "e\u{301}", "\u{212A}", "K"].randomElement(using: &json.generator) ?? "a"
  }

  /// JSON as a producer may write it: with white space, and as deep as fits into a frame.
  private mutating func object() -> String {
    let depth = number(0...5) == 0 ? 59 : 0
    let inner = json.text(of: .object([.init(key: text(), value: json.tree(depth: 3))]))
    return "\n" + String(repeating: "[\r\n", count: depth) + inner + String(repeating: "\t]", count: depth)
  }

  mutating func notification() -> NotifyFrame {
    func quoted(_ text: String) -> String { JSONValue.string(text).text }
    var members = [
      #""type":"notify","delivery":\#(number(0...Int64.max))"#, #""id":\#(quoted(word()))"#, #""identifier":\#(quoted(word()))"#,
      #""revision":\#(quoted(word()))"#, #""expiration":\#(number(0...Int64.max))"#, #""priority":\#(number(0...100))"#,
      #""pushType":\#(quoted(word()))"#, #""payload":\#(object())"#,
    ]
    if number(0...1) == 0 { members.append(#""trigger":\#(object())"#) }
    if number(0...1) == 0 { members.append(#""traceparent":\#(quoted(word()))"#) }
    if number(0...1) == 0 { members.append(#""receipt":\#(quoted(word()))"#) }
    if number(0...1) == 0 { members.append(#""presentation":["list","quietly"],"interruptionLevel":"passive""#) }
    if number(0...3) == 0 { members.append(#""category":{"identifier":\#(quoted(word())),"actions":[{"identifier":"x","title":"X"}]}"#) }
    if number(0...3) == 0 {
      let hash = String(repeating: "ab", count: 32)
      members.append(
        #""attachments":[{"identifier":\#(quoted(word())),"hash":"\#(hash)","type":"image/png","size":5,"url":\#(quoted(word())),"expires":7}]"#
      )
    }
    var text = "{" + members.joined(separator: ",") + "}"
    let frame = text.withUTF8 { try? ServerFrame(UnsafeRawBufferPointer($0)) }
    guard case .notify(let notification)? = frame else { preconditionFailure("no frame: \(text)") }
    return notification
  }

  private mutating func number<T: FixedWidthInteger>(_ range: ClosedRange<T>) -> T { T.random(in: range, using: &json.generator) }
}

import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// Foreground, background and the locked screen.
@Suite(.timeLimit(.minutes(10))) struct ProgramStateTests {
  /// The actions that differ: told at once, only unlocked, in the foreground.
  private static let category = NotificationCategory(
    identifier: "door",
    actions: [
      NotificationAction(identifier: "like", title: "Like"),
      NotificationAction(identifier: "unlock", title: "Unlock", options: [.authenticationRequired]),
      NotificationAction(identifier: "show", title: "Show", options: [.foreground]),
    ])

  private static func device(
    _ url: String, _ delegate: CallNoting, _ path: String? = nil, _ state: ApplicationState = .foreground,
    _ change: (inout DeviceConfiguration) -> Void = { _ in }
  ) -> DeviceUnderTest {
    DeviceUnderTest(url) {
      ($0.stateFile, $0.delegate, $0.state) = (path, delegate, state)
      $0.hello.categories = [category]
      change(&$0)
    }
  }

  private static func request(_ identifier: Name) -> NotificationRequest {
    NotificationRequest(
      identifier: identifier, content: NotificationContent(title: "Door", sound: "default", categoryIdentifier: "door"))
  }

  // MARK: Rules

  @Test func `an action that needs the unlocked screen waits for it, and one that opens the program does both`() {
    let rows: [(Name, Set<NotificationAction.Option>, waitsLocked: Bool, opens: Bool)] = [
      ("a", [], false, false), ("a", [.destructive], false, false), ("a", [.authenticationRequired], true, false),
      ("a", [.foreground], true, true), ("a", [.authenticationRequired, .foreground], true, true),
      (NotificationAction.defaultIdentifier, [], true, true), (NotificationAction.dismissIdentifier, [], false, false),
    ]
    for (action, options, waits, opens) in rows {
      for state in ApplicationState.allCases {
        let rule = ActionRule(action, options, in: state)
        #expect(rule.waitsForUnlocking == (waits && state == .locked) && rule.opensProgram == opens, "\(action) \(options) \(state)")
      }
    }
  }

  @Test func `previews show what the person allows: always, while unlocked, or never`() {
    let content = NotificationContent(title: "Bank", subtitle: "Account", body: "You have 5")
    let showing = NotificationCategory(
      identifier: "money", options: [.hiddenPreviewsShowTitle, .hiddenPreviewsShowSubtitle], hiddenPreviewsBodyPlaceholder: "A message")
    for state in ApplicationState.allCases {
      for previews in Authorization.Previews.allCases.map(Optional.some) + [nil] {
        func preview(_ category: NotificationCategory?) -> [String] {
          let preview = NotificationPreview(of: content, previews, in: state, category: category)
          #expect(preview.isHidden == (previews == .never || previews == .whenAuthenticated && state == .locked))
          return [preview.title, preview.subtitle, preview.body]
        }
        let isHidden = previews == .never || previews == .whenAuthenticated && state == .locked
        #expect(preview(nil) == (isHidden ? ["", "", "Notification"] : ["Bank", "Account", "You have 5"]))
        #expect(preview(showing) == ["Bank", "Account", isHidden ? "A message" : "You have 5"])
      }
    }
  }

  /// Calls on a loop of their own, and the ends that each has had.
  private actor Calls: LoopActor {
    nonisolated let loop = EventLoop(name: "calls")
    private let calls = TimedCalls<Bool>()
    private var numbers: [Int: Int] = [:]
    private(set) var ends: [Int: [Bool]] = [:]
    var count: Int { calls.count }

    func add(_ id: Int, milliseconds: Int) {
      numbers[id] = calls.add(on: loop, milliseconds: milliseconds, late: true) { isLate in
        self.assumeIsolated { $0.ends[id, default: []].append(isLate) }
      }
    }

    func end(_ id: Int) { if let number = numbers[id] { calls.end(number, false) } }

    func close() { calls.close() }
  }

  @Test func `each call ends once, by its return or its time`() async {
    let calls = Calls()
    for id in 0..<300 { await calls.add(id, milliseconds: id % 3 == 0 ? 0 : 3_600_000) }
    for id in 0..<300 where id % 3 == 1 { await calls.end(id) }
    await eventually("the time of the late ones is over") { await calls.count == 100 }
    for id in 0..<300 where id % 3 < 2 { await calls.end(id) }
    let ends = await calls.ends
    #expect(ends.count == 200 && ends.allSatisfy { $0.value == [$0.key % 3 == 0] })
    await calls.close()
    #expect(await calls.count == 0)
    await calls.loop.close()
  }

  // MARK: On a device

  @Test func `a locked device shows on its lock screen, and draws the content when it is unlocked`() async throws {
    try await ScriptedCluster.with { _, url in
      let delegate = CallNoting()
      let device = Self.device(url, delegate, nil, .locked) {
        $0.hello.authorization = Authorization(status: .authorized, previews: .whenAuthenticated)
      }
      try await device.device.start()
      try await device.device.userNotificationCenter.add(Self.request("one"))
      let notification = try #require(await device.device.delivered.first)
      #expect(notification.presentation == [.lockScreen, .list, .sound])
      #expect(await device.device.preview(of: notification).body == "Notification")
      await device.device.setState(.background)
      #expect(await device.device.preview(of: notification).title == "Door")
      try await device.device.userNotificationCenter.add(Self.request("two"))
      #expect(await device.device.delivered.first?.presentation == [.banner, .list, .sound])
      #expect(delegate.asked.isEmpty, "in the background the settings decide")
      await device.close()
    }
  }

  @Test func `a response that needs the unlocked screen is stored, and reaches program and cluster after the unlocking`() async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        let path = folder.path + "/state"
        let first = CallNoting()
        var device = Self.device(url, first, path, .locked)
        try await device.device.start()
        await cluster.expect("hello")
        await cluster.send(notify(1, id: "one", revision: "1", category: "door"), notify(2, id: "two", revision: "2", category: "door"))
        await device.expect("shown one 1", "shown two 2")
        let held = try await device.device.respond(to: "one", action: "unlock")
        let sent = try await device.device.respond(to: "two", action: "like")
        #expect(await cluster.expect("response").map { $0["response"]?.stringValue } == [sent])
        await eventually("the other is told") { first.responses == [sent] }
        await cluster.send(["type": "accepted", "response": .string(sent)])
        await device.expect("shown one 1", "shown two 2", "accepted response")
        #expect(await device.device.delivered.isEmpty)
        await device.close()

        let second = CallNoting()
        device = Self.device(url, second, path, .locked)
        try await device.device.start()
        await cluster.expect("hello", of: 1)
        await cluster.send(notify(1, id: "three", revision: "3", category: "door"), to: 1)
        await device.expect("shown three 3")
        let third = try await device.device.respond(to: "three", action: "like")
        #expect(await cluster.expect("response", of: 1).map { $0["response"]?.stringValue } == [third])
        await device.device.setState(.background)
        #expect(await cluster.expect("response", of: 1, count: 2).last?["response"]?.stringValue == held)
        await eventually("it is told") { second.responses == [third, held] }
        #expect(await device.device.state == .background)
        await device.close()
      }
    }
  }

  /// Each response is told once, in the order of the actions, and only while the screen is unlocked if it has to be.
  @Test(arguments: 0..<(isComplete ? 4 : 2)) func `any history of states, actions and restarts tells what a naive model tells`(
    _ seed: UInt64
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { _, url in
        var random = SeededRandom(seed: seed)
        var model = NaiveProgram()
        let delegate = CallNoting()
        let path = folder.path + "/state"
        var device = Self.device(url, delegate, path)
        try await device.device.start()
        for step in 0..<60 {
          switch Int.random(in: 0..<10, using: &random) {
          case 0..<4:
            try await device.device.userNotificationCenter.add(Self.request("\(step)"))
            model.add("\(step)")
          case 4..<7:
            guard let identifier = model.listed.randomElement(using: &random) else { continue }
            let action =
              (["like", "unlock", "show", NotificationAction.defaultIdentifier] as [Name]).randomElement(using: &random) ?? "like"
            let id = try await device.device.respond(to: identifier, action: action)
            model.respond(identifier, action, id)
          case 7..<9:
            let state = ApplicationState.allCases.randomElement(using: &random) ?? .locked
            await device.device.setState(state)
            model.set(state)
          default:
            // The delegate has taken what it was told.
            await eventually("step \(step): all are told") { delegate.responses == model.told }
            await device.close()
            let state = ApplicationState.allCases.randomElement(using: &random) ?? .locked
            device = Self.device(url, delegate, path, state)
            try await device.device.start()
            model.set(state)
          }
          await eventually("step \(step): all are told") { delegate.responses == model.told }
          await eventually("step \(step): the state is \(model.state)") { await device.device.state == model.state }
          #expect(await Set(device.device.delivered.map(\.identifier)) == model.listed, "step \(step)")
          #expect(delegate.asked == model.asked, "step \(step)")
        }
        await device.close()
      }
    }
  }

  @Test func `an action in the foreground, and opening, bring the program there, and no other does`() async throws {
    try await ScriptedCluster.with { _, url in
      let device = Self.device(url, CallNoting(), nil, .background)
      try await device.device.start()
      var expected: [Name] = []
      for (number, (action, opens))
        in ([("like", false), ("unlock", false), ("show", true), (NotificationAction.defaultIdentifier, true)]
        as [(Name, Bool)]).enumerated()
      {
        let identifier = Name("\(number)")
        try await device.device.userNotificationCenter.add(Self.request(identifier))
        try await device.device.respond(to: identifier, action: action)
        if opens { expected.append(identifier) }
        #expect(await device.device.state == (opens ? .foreground : .background))
        await device.device.setState(.background)
      }
      #expect(device.activated == expected)
      await device.close()
    }
  }

  @Test func `a background push wakes the program, and a delegate that never returns blocks nobody`() async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        let path = folder.path + "/state"
        let delegate = CallNoting(isStuck: true)
        var device = Self.device(url, delegate, path, .background) { $0.delegateMilliseconds = 200 }
        try await device.device.start()
        await cluster.expect("hello")
        await cluster.send(
          notify(1, id: "wake", revision: "1", aps: ["content-available": 1]),
          notify(2, id: "both", revision: "2", category: "door", aps: ["alert": "New", "category": "door", "content-available": 1]),
          notify(3, id: "plain", revision: "3", category: "door"))
        await device.expect("silent wake", "shown both 2", "shown plain 3")
        await eventually("the program is woken") { delegate.woken == ["wake", "both"] }
        let id = try await device.device.respond(to: "plain", action: "like")
        await eventually("the response is told") { delegate.responses == [id] }
        await eventually("the calls are over") {
          device.unhandled == ["wake", "both", "plain"]
        }
        try await device.device.respond(to: "both", action: "like")
        await eventually("the next response is told") { delegate.responses.count == 2 }
        await eventually("the last call is over") {
          device.unhandled.count == 4
        }
        await device.close()
        // A response whose call was over is not told again.
        let next = CallNoting()
        device = Self.device(url, next, path, .background)
        try await device.device.start()
        try await device.device.userNotificationCenter.add(Self.request("last"))
        let last = try await device.device.respond(to: "last", action: "like")
        await eventually("the last response is told") { next.responses.last == last }
        #expect(next.responses == [last])
        await device.close()
        delegate.release()
      }
    }
  }
}

extension DeviceUnderTest {
  /// The notifications that brought the program to the foreground.
  fileprivate var activated: [Name] {
    events.compactMap { event -> Name? in if case .activated(let identifier) = event { identifier } else { nil } }
  }

  /// The notifications of calls that were over.
  fileprivate var unhandled: [Name] {
    events.compactMap { event -> Name? in if case .unhandled(let notification) = event { notification.identifier } else { nil } }
  }
}

/// The states of a program in the plainest form.
private struct NaiveProgram {
  private(set) var state = ApplicationState.foreground
  private(set) var listed: Set<Name> = []
  private(set) var told: [String] = []
  private(set) var asked: [Name] = []
  private var held: [(id: String, opens: Bool)] = []

  mutating func add(_ identifier: Name) {
    listed.insert(identifier)
    if state == .foreground { asked.append(identifier) }
  }

  mutating func respond(_ identifier: Name, _ action: Name, _ id: String) {
    listed.remove(identifier)
    let opens = action == "show" || action == NotificationAction.defaultIdentifier
    if state == .locked, action != "like" { return held.append((id, opens)) }
    told.append(id)
    if opens { state = .foreground }
  }

  mutating func set(_ new: ApplicationState) {
    state = new
    guard new != .locked else { return }
    told += held.map(\.id)
    if held.contains(where: \.opens) { state = .foreground }
    held = []
  }
}

/// Notes the calls of the delegate, which return at once or not before the release.
private final class CallNoting: UserNotificationCenterDelegate {
  private struct State {
    var asked: [Name] = []
    var responses: [String] = []
    var woken: [Name] = []
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let isStuck: Bool
  private let noted = Mutex(State())

  init(isStuck: Bool = false) { self.isStuck = isStuck }

  var asked: [Name] { noted.withLock { $0.asked } }
  var responses: [String] { noted.withLock { $0.responses } }
  var woken: [Name] { noted.withLock { $0.woken } }

  func release() {
    for continuation in noted.withLock({ $0.waiting }) { continuation.resume() }
  }

  private func stay() async {
    if isStuck { await withCheckedContinuation { continuation in noted.withLock { $0.waiting.append(continuation) } } }
  }

  func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions {
    noted.withLock { $0.asked.append(notification.identifier) }
    return .all
  }

  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    noted.withLock { $0.responses.append(response.id) }
    await stay()
  }

  func userNotificationCenter(_ center: UserNotificationCenter, didReceiveBackground notification: DeliveredNotification) async {
    noted.withLock { $0.woken.append(notification.identifier) }
    await stay()
  }
}

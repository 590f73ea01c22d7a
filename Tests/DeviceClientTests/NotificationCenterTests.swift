import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// The program's side of notifications, with a real database and a scripted cluster.
@Suite(.timeLimit(.minutes(10))) struct NotificationCenterTests {
  /// Runs a device with a state file at a cluster.
  private static func with(
    _ body: (_ path: String, _ cluster: ScriptedCluster, _ url: String) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in try await body(folder.path + "/state", cluster, url) }
    }
  }

  private static func request(
    _ identifier: Name, _ title: String = "Tea", _ trigger: NotificationTrigger? = nil, category: Name? = nil
  ) -> NotificationRequest {
    NotificationRequest(
      identifier: identifier, content: NotificationContent(title: title, sound: "default", categoryIdentifier: category), trigger: trigger)
  }

  @Test func `a local request without a trigger is shown at once, and never reaches the cluster`() async throws {
    try await Self.with { path, cluster, url in
      let device = DeviceUnderTest(url) { $0.stateFile = path }
      try await device.device.start()
      await cluster.expect("hello")
      let center = device.device.userNotificationCenter
      try await center.add(Self.request("tea", category: "reply"))
      await device.expect("shown tea local")
      let delivered = try #require(await center.deliveredNotifications().first)
      #expect(delivered.request == Self.request("tea", category: "reply"))
      let id = try await device.device.respond(to: "tea", action: "like")
      #expect(!id.isEmpty)
      #expect(await center.deliveredNotifications().isEmpty)
      // The cluster gets the response to its own notification, and only that.
      await cluster.send(notify(1, id: "one", revision: "1"))
      await device.expect("shown tea local", "shown one 1")
      let remote = try await device.device.open("one")
      #expect(await cluster.expect("response").map { $0["response"]?.stringValue } == [remote])
      await device.close()
    }
  }

  @Test func `what came due while the program was down is shown at its start, once`() async throws {
    try await Self.with { path, _, url in
      let first = DeviceUnderTest(url) { $0.stateFile = path }
      try await first.device.start()
      let added = WallClock.milliseconds()
      try await first.device.userNotificationCenter.add(Self.request("tea", "Tea", .timeInterval(60, repeats: false)))
      await first.close()
      // A minute is over in the file.
      let database = DeviceDatabase.forTests(path)
      _ = try await database.open()
      try await database.commit([.waiting("tea", anchor: added - 90_000, after: added - 90_000)])
      await database.closeForTests()
      let second = DeviceUnderTest(url) { $0.stateFile = path }
      try await second.device.start()
      await second.expect("shown tea local")
      #expect(await second.device.userNotificationCenter.pendingNotificationRequests().isEmpty)
      await second.close()
      let third = DeviceUnderTest(url) { $0.stateFile = path }
      try await third.device.start()
      #expect(await third.device.userNotificationCenter.deliveredNotifications().map(\.identifier) == ["tea"])
      #expect(third.story.isEmpty)
      await third.close()
    }
  }

  @Test func `a request comes due while the program runs`() async throws {
    try await Self.with { path, _, url in
      let device = DeviceUnderTest(url) { $0.stateFile = path }
      try await device.device.start()
      try await device.device.userNotificationCenter.add(Self.request("tea", "Tea", .timeInterval(0.2, repeats: false)))
      await device.expect("shown tea local")
      await device.close()
    }
  }

  @Test func `pending requests outlive the program in their order, and are removed by identifiers or all`() async throws {
    try await Self.with { path, _, url in
      let requests = (0..<70).map { Self.request("request \($0)", "Tea", .timeInterval(3600, repeats: true)) }
      let first = DeviceUnderTest(url) { $0.stateFile = path }
      try await first.device.start()
      for request in requests { try await first.device.userNotificationCenter.add(request) }
      // Added again, it is the newest.
      try await first.device.userNotificationCenter.add(requests[10])
      await first.close()
      let second = DeviceUnderTest(url) { $0.stateFile = path }
      try await second.device.start()
      let center = second.device.userNotificationCenter
      let expected = Array(requests[6...].filter { $0.identifier != "request 10" }) + [requests[10]]
      #expect(await center.pendingNotificationRequests() == expected)
      await center.removePendingNotificationRequests(withIdentifiers: ["request 10", "request 11", "other"])
      #expect(await center.pendingNotificationRequests().count == 62)
      await second.close()
      let third = DeviceUnderTest(url) { $0.stateFile = path }
      try await third.device.start()
      #expect(await third.device.userNotificationCenter.pendingNotificationRequests().count == 62)
      await third.device.userNotificationCenter.removeAllPendingNotificationRequests()
      #expect(await third.device.userNotificationCenter.pendingNotificationRequests().isEmpty)
      await third.close()
    }
  }

  @Test func `a request replaces the one of its identifier, pending or delivered, and identifiers are bytes`() async throws {
    try await Self.with { path, cluster, url in
      let device = DeviceUnderTest(url) { $0.stateFile = path }
      try await device.device.start()
      await cluster.expect("hello")
      let center = device.device.userNotificationCenter
      try await center.add(Self.request("é", "Later", .timeInterval(3600, repeats: false)))
      try await center.add(Self.request("e\u{301}", "Other", .timeInterval(3600, repeats: false)))
      try await center.add(Self.request("é", "Now"))
      await device.expect("shown é local")
      #expect(await center.pendingNotificationRequests().map(\.identifier) == ["e\u{301}"])
      try await center.add(Self.request("é", "Again"))
      await device.expect("shown é local", "updated é local")
      // The cluster removes what is its own.
      await cluster.send(["type": "remove", "delivery": 1, "identifiers": ["é", "e\u{301}"], "revision": "5"])
      await cluster.expect("ack")
      #expect(await center.deliveredNotifications().map(\.content.title) == ["Again"])
      #expect(await center.pendingNotificationRequests().count == 1)
      await center.removeAllDeliveredNotifications()
      #expect(await center.deliveredNotifications().isEmpty)
      await device.close()
    }
  }

  @Test func `delivered notifications are removed by identifiers or all, without a response, and do not come back`() async throws {
    try await Self.with { path, cluster, url in
      let first = DeviceUnderTest(url) { $0.stateFile = path }
      try await first.device.start()
      await cluster.expect("hello")
      let center = first.device.userNotificationCenter
      for identifier in ["a", "b", "c"] as [Name] { try await center.add(Self.request(identifier, category: "reply")) }
      await cluster.send(notify(1, id: "d", revision: "1", category: "reply"))
      await first.expect("shown a local", "shown b local", "shown c local", "shown d 1")
      await center.removeDeliveredNotifications(withIdentifiers: ["a", "d", "other"])
      #expect(await center.deliveredNotifications().map(\.identifier) == ["c", "b"])
      #expect(await first.device.waitingResponses == 0)
      await first.close()
      let second = DeviceUnderTest(url) { $0.stateFile = path }
      try await second.device.start()
      #expect(await second.device.userNotificationCenter.deliveredNotifications().map(\.identifier) == ["c", "b"])
      await second.device.userNotificationCenter.removeAllDeliveredNotifications()
      #expect(await second.device.userNotificationCenter.deliveredNotifications().isEmpty)
      await second.close()
      #expect(await cluster.frames("response").isEmpty)
    }
  }

  @Test func `a local notification has each member that the program has set`() async throws {
    try await Self.with { path, _, url in
      let device = DeviceUnderTest(url) { $0.stateFile = path }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      let content = NotificationContent(
        title: "Tea", subtitle: "Green", body: "It is ready", badge: 4, sound: .init(name: "bell", isCritical: true, volume: 0.5),
        threadIdentifier: "kitchen", categoryIdentifier: "reply", targetContentIdentifier: "pot", interruptionLevel: .critical,
        relevanceScore: 0.25, filterCriteria: "home", launchImageName: "pot.png", userInfo: ["cup": 3, "aps": 7])
      try await center.add(NotificationRequest(identifier: "tea", content: content))
      await device.expect("shown tea local")
      let shown = try #require(await center.deliveredNotifications().first).content
      #expect(shown == content)
      #expect(shown.title == "Tea" && shown.subtitle == "Green" && shown.body == "It is ready" && shown.badge == 4)
      #expect(shown.sound == NotificationSound(name: "bell", isCritical: true, volume: 0.5) && shown.interruptionLevel == .critical)
      #expect(shown.threadIdentifier == "kitchen" && shown.categoryIdentifier == "reply" && shown.targetContentIdentifier == "pot")
      #expect(shown.relevanceScore == 0.25 && shown.filterCriteria == "home" && shown.launchImageName == "pot.png")
      #expect(shown[userInfo: "cup"] == 3)
      #expect(NotificationContent(title: "Tea", sound: "bell").sound == NotificationSound(name: "bell"))
      await device.close()
    }
  }

  @Test func `a delegate can be set while the device runs, and gets the responses that no delegate had taken`() async throws {
    try await Self.with { path, _, url in
      let first = DeviceUnderTest(url) { ($0.stateFile, $0.delegate) = (path, NotedDelegate(waits: true)) }
      try await first.device.start()
      try await first.device.userNotificationCenter.add(Self.request("tea"))
      let id = try await first.device.open("tea")
      await first.close()
      let second = DeviceUnderTest(url) { $0.stateFile = path }
      try await second.device.start()
      let (center, delegate) = (second.device.userNotificationCenter, NotedDelegate(ways: .list))
      center.delegate = delegate
      #expect(center.delegate === delegate)
      await eventually("it has the response") { delegate.responses.map(\.id) == [id] }
      try await center.add(Self.request("own"))
      #expect(await center.deliveredNotifications().map(\.presentation) == [.list])
      center.delegate = nil
      #expect(center.delegate == nil)
      await second.close()
    }
  }

  @Test func `a delegate without an answer to willPresent shows nothing in the foreground`() async throws {
    final class Silent: UserNotificationCenterDelegate {}
    try await Self.with { _, _, url in
      let device = DeviceUnderTest(url) { $0.delegate = Silent() }
      try await device.device.start()
      try await device.device.userNotificationCenter.add(Self.request("tea"))
      await device.expect("dropped tea filtered")
      await device.device.setState(.background)
      try await device.device.userNotificationCenter.add(Self.request("tea"))
      await device.expect("dropped tea filtered", "shown tea local")
      await device.close()
    }
  }

  @Test func `a content that is set member by member is the same as one that is made at once`() {
    var content = MutableNotificationContent()
    content.title = "Tea"
    content.sound = .defaultCritical
    content.badge = 2
    content.userInfo = ["cup": 3, "aps": 7]
    content.attachments = [AttachmentSource(identifier: "photo", path: "/photo")]
    let request = NotificationRequest(identifier: "tea", content: content, trigger: .timeInterval(60, repeats: false))
    let made = NotificationContent(title: "Tea", badge: 2, sound: NotificationSound(isCritical: true), userInfo: ["cup": 3])
    #expect(request.content == made && request.attachments == content.attachments)
    #expect(made.userInfo == ["cup": 3] && made.interruptionLevel == .critical)
  }

  @Test func `date components make the trigger that their units make, and those that match nothing are refused`() throws {
    var components = DateComponents()
    (components.hour, components.minute, components.weekday) = (9, 30, 2)
    components.timeZone = TimeZone(identifier: "Europe/Rome")
    var units = CalendarUnits()
    (units[.hour], units[.minute], units[.weekday]) = (9, 30, 2)
    let trigger = try NotificationTrigger.calendar(dateMatching: components, repeats: true)
    #expect(trigger == .calendar(units, timeZone: "Europe/Rome", repeats: true))
    // A Tuesday. The next Monday has winter time.
    let due = trigger.nextTriggerDate(after: Date(timeIntervalSince1970: 1_700_000_000))
    #expect(due == Date(timeIntervalSince1970: 1_700_469_000))
    #expect(NotificationTrigger.timeInterval(1, repeats: false).nextTriggerDate(after: Date(timeIntervalSince1970: .infinity)) == nil)
    components.nanosecond = 5
    #expect(throws: DeviceError.self) { try NotificationTrigger.calendar(dateMatching: components, repeats: true) }
    // An hour that no day has is kept, so that `add` refuses it.
    #expect(try NotificationTrigger.calendar(dateMatching: DateComponents(hour: 25), repeats: true).nextTriggerDate() == nil)
  }

  @Test func `what is printed has words`() throws {
    let options: PresentationOptions = [.banner, .sound]
    #expect("\(options)" == "[banner, sound]")
    #expect("\(Authorization(status: .authorized, options: [.alert: true, .sound: false]).options)" == "[alert on, sound off]")
    var units = CalendarUnits()
    (units[.hour], units[.minute]) = (9, 30)
    #expect("\(units)" == "[hour 9, minute 30]")
    var store = NotificationStore()
    guard case .shown(let notification) = store.take(try notifyFrame(notify(1, id: "one", "a", revision: "1")), now: 0) else {
      throw DeviceError(.badRequest, "it is shown")
    }
    #expect("\(notification)" == #"a ["Order", "1"] [banner, list]"#)
  }

  @Test func `a waiting request says when it is due next`() async throws {
    try await Self.with { path, _, url in
      let device = DeviceUnderTest(url) { $0.stateFile = path }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      let before = WallClock.milliseconds()
      try await center.add(Self.request("tea", "Tea", .timeInterval(3600, repeats: true)))
      let due = try #require(await center.nextTriggerDate(of: "tea"))
      #expect((Date(milliseconds: before + 1_800_000)...Date(milliseconds: before + 5_400_000)).contains(due))
      await center.removeAllPendingNotificationRequests()
      #expect(await center.nextTriggerDate(of: "tea") == nil)
      await device.close()
    }
  }

  private static func units(month: Int? = nil, hour: Int? = nil, minute: Int? = nil) -> CalendarUnits {
    var units = CalendarUnits()
    (units[.month], units[.hour], units[.minute]) = (month, hour, minute)
    return units
  }

  @Test func `a request that can never be shown is refused with the rule, and changes nothing`() async throws {
    try await Self.with { path, _, url in
      let device = DeviceUnderTest(url) { $0.stateFile = path }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      try await center.add(Self.request("tea", "Tea", .timeInterval(3600, repeats: false)))
      let wrong: [(NotificationRequest, String)] = [
        (Self.request("tea", "Tea", .timeInterval(0, repeats: false)), "timeInterval"),
        (Self.request("tea", "Tea", .timeInterval(.nan, repeats: false)), "timeInterval"),
        (Self.request("tea", "Tea", .timeInterval(59, repeats: true)), "60 seconds"),
        (Self.request("tea", "Tea", .calendar(CalendarUnits(), repeats: false)), "dateComponents"),
        (Self.request("tea", "Tea", .calendar(Self.units(hour: 25, minute: 30), repeats: true)), "dateComponents.hour"),
        (Self.request("tea", "Tea", .calendar(Self.units(month: 13), repeats: true)), "dateComponents.month"),
        (Self.request("tea", "Tea", .calendar(Self.units(hour: -1), repeats: true)), "dateComponents.hour"),
        (Self.request("tea", "Tea", .calendar(Self.units(hour: .min), repeats: true)), "dateComponents.hour"),
        (Self.request("tea", "Tea", .location("{}")), "trigger"), (Self.request(""), "identifier"), (Self.request("a\nb"), "identifier"),
        (NotificationRequest(identifier: "tea", content: NotificationContent(badge: 0)), "badge other than 0"),
        (NotificationRequest(identifier: "tea", content: NotificationContent(badge: -1)), "from 0 to"),
        (Self.request("tea", String(repeating: "x", count: 40_000)), "32768 bytes"),
      ]
      for (request, rule) in wrong {
        await #expect { try await center.add(request) } throws: { error in
          (error as? DeviceError)?.code == .badRequest && "\(error)".contains(rule)
        }
      }
      #expect(await center.pendingNotificationRequests() == [Self.request("tea", "Tea", .timeInterval(3600, repeats: false))])
      await device.close()
    }
  }

  @Test func `the delegate chooses the presentation and takes the response, local or remote, which the trigger tells`() async throws {
    try await Self.with { path, cluster, url in
      let delegate = NotedDelegate(ways: [.list, .sound])
      let device = DeviceUnderTest(url) {
        $0.stateFile = path
        $0.delegate = delegate
      }
      try await device.device.start()
      await cluster.expect("hello")
      try await device.device.userNotificationCenter.add(Self.request("tea"))
      await cluster.send(notify(1, id: "one", revision: "1", category: "reply"))
      await device.expect("shown tea local", "shown one 1")
      #expect(await device.device.delivered.map(\.presentation) == [[.list], [.list, .sound]])
      try await device.device.respond(to: "one", action: "reply", userText: "thank you")
      try await device.device.open("tea")
      await eventually("both responses are told") { delegate.responses.count == 2 }
      #expect(delegate.responses.map(\.userText) == ["thank you", nil])
      #expect(delegate.responses.map(\.notification.request.trigger) == [.push, nil])
      #expect(delegate.responses.map(\.actionIdentifier) == ["reply", NotificationAction.defaultIdentifier])
      await device.close()
    }
  }

  @Test func `a program that shows nothing drops the notification as filtered`() async throws {
    try await Self.with { path, cluster, url in
      let device = DeviceUnderTest(url) { $0.delegate = NotedDelegate(ways: []) }
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(notify(1, id: "one", revision: "1"))
      await device.expect("dropped one filtered")
      #expect(await cluster.expect("ack").first?["dropped"] == [["delivery": 1, "reason": "filtered"]])
      await device.close()
    }
  }

  @Test func `a response that the program had not taken is passed to it again at the next start`() async throws {
    try await Self.with { path, _, url in
      let stuck = NotedDelegate(waits: true)
      let first = DeviceUnderTest(url) {
        $0.stateFile = path
        $0.delegate = stuck
      }
      try await first.device.start()
      try await first.device.userNotificationCenter.add(Self.request("tea", category: "reply"))
      let id = try await first.device.respond(to: "tea", action: "like")
      await eventually("it is told") { stuck.responses.count == 1 }
      await first.close()
      let delegate = NotedDelegate()
      for expected in [1, 1] {
        let next = DeviceUnderTest(url) {
          $0.stateFile = path
          $0.delegate = delegate
        }
        try await next.device.start()
        await eventually("it is told again") { delegate.responses.count == expected }
        await next.close()
      }
      #expect(delegate.responses.map(\.id) == [id])
      #expect(delegate.responses.first?.notification.request == Self.request("tea", category: "reply"))
      stuck.release()
    }
  }

  @Test func `the person is asked once, and the cluster hears the answer`() async throws {
    try await Self.with { path, cluster, url in
      let asked = Atomic(0)
      let device = DeviceUnderTest(url) {
        $0.hello.authorization = nil
        $0.authorizationPrompt = { options in
          asked.add(1, ordering: .relaxed)
          return options == [.alert, .badge]
        }
      }
      try await device.device.start()
      await eventually("connected") { device.events.contains { if case .connected = $0 { true } else { false } } }
      let center = device.device.userNotificationCenter
      try await center.add(Self.request("early"))
      await device.expect("dropped early filtered")
      #expect(try await center.requestAuthorization(options: [.alert, .badge]))
      let settings = try #require(await cluster.expect("settings").first)
      #expect(settings["authorization"]?["status"] == "authorized" && settings["authorization"]?["sound"] == false)
      let decided = await center.notificationSettings()
      #expect(decided.status == .authorized)
      for option in Authorization.Option.allCases where ![.provisional, .scheduledDelivery].contains(option) {
        #expect(decided.options[option] == [.alert, .badge, .lockScreen, .notificationCenter].contains(option), "\(option)")
      }
      try await center.add(
        NotificationRequest(identifier: "tea", content: NotificationContent(title: "Tea", badge: 1, sound: "default")))
      #expect(await center.deliveredNotifications().first?.presentation == [.banner, .list, .badge])
      #expect(try await center.requestAuthorization(options: [.sound]))
      try await device.device.setAuthorization(Authorization(status: .denied))
      #expect(try await !center.requestAuthorization(options: [.alert]))
      #expect(asked.load(ordering: .relaxed) == 1)
      await device.close()
    }
  }

  @Test func `with the option provisional nobody is asked, and notifications come quietly`() async throws {
    try await Self.with { path, cluster, url in
      let device = DeviceUnderTest(url) { $0.hello.authorization = nil }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      await #expect(throws: DeviceError.self) { try await center.requestAuthorization(options: [.alert]) }
      #expect(try await center.requestAuthorization(options: [.alert, .provisional]))
      try await center.add(Self.request("tea"))
      // The cluster accepts the changed settings before or after that.
      await eventually("it is shown: \(device.story)") { device.story.contains("shown tea local") }
      #expect(await center.deliveredNotifications().map(\.presentation) == [[.list, .quietly]])
      await device.close()
    }
  }

  @Test(arguments: [true, false]) func `after a provisional grant a request without the option asks the person`(_ isGranted: Bool)
    async throws
  {
    try await Self.with { path, cluster, url in
      let asked = Atomic(0)
      let device = DeviceUnderTest(url) {
        $0.hello.authorization = nil
        $0.authorizationPrompt = { _ in
          asked.add(1, ordering: .relaxed)
          return isGranted
        }
      }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      for _ in 1...2 { #expect(try await center.requestAuthorization(options: [.alert, .sound, .provisional])) }
      #expect(asked.load(ordering: .relaxed) == 0)
      for _ in 1...2 { #expect(try await center.requestAuthorization(options: [.alert]) == isGranted) }
      #expect(asked.load(ordering: .relaxed) == 1)
      let decided = await center.notificationSettings()
      #expect(decided.status == (isGranted ? .authorized : .denied) && decided.options[.sound] == false)
      await device.close()
    }
  }

  @Test func `the badge is what was set last, also after a restart`() async throws {
    try await Self.with { path, _, url in
      let first = DeviceUnderTest(url) { $0.stateFile = path }
      try await first.device.start()
      try await first.device.userNotificationCenter.setBadgeCount(7)
      await first.close()
      let second = DeviceUnderTest(url) { $0.stateFile = path }
      try await second.device.start()
      #expect(await second.device.badge == 7)
      for count in [-1, Int.min, Int(Int32.max) + 1] {
        await #expect {
          try await second.device.userNotificationCenter.setBadgeCount(count)
        } throws: { ($0 as? DeviceError)?.code == .badRequest }
      }
      #expect(await second.device.badge == 7)
      try await second.device.userNotificationCenter.add(
        NotificationRequest(identifier: "count", content: NotificationContent(badge: 3)))
      #expect(await second.device.badge == 3)
      await second.close()
    }
  }

  @Test func `the delegate may read and change the device while it chooses the presentation`() async throws {
    try await Self.with { path, cluster, url in
      let delegate = ReadingDelegate()
      let device = DeviceUnderTest(url) { ($0.stateFile, $0.delegate) = (path, delegate) }
      delegate.device.withLock { $0 = device.device }
      try await device.device.start()
      await cluster.expect("hello")
      try await device.device.userNotificationCenter.add(Self.request("tea"))
      await cluster.send(notify(1, id: "one", revision: "1"))
      await device.expect("shown tea local", "shown one 1")
      // It has taken the former one away at each.
      #expect(await device.device.delivered.map(\.frame.id) == ["one"])
      await device.close()
    }
  }

  @Test(arguments: [
    "null", "{\"type\":\"push\"}", "", "{}", "null,\"identifier\":\"other\"", "{\"type\":\"timeInterval\",\"timeInterval\":60}",
  ])
  func `a location trigger whose text is none is refused with the rule`(_ text: String) async throws {
    try await Self.with { path, _, url in
      let device = DeviceUnderTest(url) { $0.stateFile = path }
      try await device.device.start()
      let error = await #expect(throws: DeviceError.self) {
        try await device.device.userNotificationCenter.add(Self.request("tea", "Tea", .location(text)))
      }
      #expect(error?.code == .badRequest && error?.description.contains("trigger") == true, "\(error.debugDescription)")
      #expect(await device.device.delivered.isEmpty)
      #expect(await device.device.pending.isEmpty)
      await device.close()
    }
  }
}

/// A delegate that notes what it is told.
private final class NotedDelegate: UserNotificationCenterDelegate {
  private struct State {
    var responses: [NotificationResponse] = []
    var waiting: [CheckedContinuation<Void, Never>] = []
    var isReleased = false
  }

  private let ways: PresentationOptions
  private let waits: Bool
  private let state = Mutex(State())

  init(ways: PresentationOptions = .all, waits: Bool = false) { (self.ways, self.waits) = (ways, waits) }

  var responses: [NotificationResponse] { state.withLock { $0.responses } }

  func release() {
    let waiting = state.withLock { state in
      defer { (state.waiting, state.isReleased) = ([], true) }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions { ways }

  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    state.withLock { $0.responses.append(response) }
    guard waits else { return }
    await withCheckedContinuation { continuation in
      let isReleased = state.withLock { state in
        if !state.isReleased { state.waiting.append(continuation) }
        return state.isReleased
      }
      if isReleased { continuation.resume() }
    }
  }
}

/// A delegate that takes what is in the list away whenever it is asked how to present something.
private final class ReadingDelegate: UserNotificationCenterDelegate {
  let device = Mutex<Device?>(nil)

  func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions {
    device.withLock { $0 }?.assumeIsolated { device in _ = device.remove(device.delivered.map(\.identifier)) }
    return .all
  }
}

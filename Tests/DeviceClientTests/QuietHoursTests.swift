import EventLoop
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// The person's quiet hours, for what the device itself shows.
@Suite(.timeLimit(.minutes(10))) struct QuietHoursTests {
  /// Thursday, 15 January 2026, 00:00 UTC.
  private static let thursday: Int64 = 1_768_435_200_000
  /// Hours that hold at each moment.
  private static let always = QuietHours(from: 0, to: 0, timeZone: "UTC")

  private static func minutes(_ hour: Int, _ minute: Int = 0) -> Int64 { Int64(hour * 60 + minute) * 60_000 }

  private static func nights(_ zone: String, days: UInt8 = QuietHours.everyDay) -> QuietHours {
    QuietHours(from: 22 * 60, to: 7 * 60, days: days, timeZone: zone)
  }

  private static func tea(_ trigger: NotificationTrigger? = nil, _ level: InterruptionLevel = .active) -> NotificationRequest {
    NotificationRequest(
      identifier: "tea", content: NotificationContent(title: "Tea", badge: 2, sound: "default", interruptionLevel: level),
      trigger: trigger)
  }

  /// A store of a program in the background, with these hours.
  private static func store(_ hours: QuietHours?) -> NotificationStore {
    var store = NotificationStore()
    (store.state, store.quietHours) = (.background, hours)
    return store
  }

  /// How a notification is shown; nil if it is not.
  private static func ways(_ outcome: NotificationStore.Outcome?) -> PresentationOptions? {
    switch outcome {
    case .shown(let notification), .updated(let notification): notification.presentation
    default: nil
    }
  }

  private static let loud: PresentationOptions = [.banner, .list, .sound, .badge]
  private static let quiet: PresentationOptions = [.list, .badge, .quietly]

  // MARK: The rule

  @Test(arguments: [
    ("UTC", 0), ("Europe/Rome", 60), ("America/New_York", -300), ("Asia/Kolkata", 330), ("Pacific/Kiritimati", 840),
  ])
  func `a local notification of a night goes to the list without banner and sound, by the clock on the wall of the hours' zone`(
    _ zone: String, _ offset: Int
  ) throws {
    let midnight = Self.thursday - Int64(offset) * 60_000
    let moments: [(hour: Int, minute: Int, isQuiet: Bool)] = [
      (0, 0, true), (6, 59, true), (7, 0, false), (12, 0, false), (21, 59, false), (22, 0, true), (23, 59, true), (30, 59, true),
      (31, 0, false),
    ]
    for moment in moments {
      var store = Self.store(Self.nights(zone))
      let time = midnight + Self.minutes(moment.hour, moment.minute)
      let outcome = store.add(try Self.tea().frame(id: "1"), localTime: LocalTime(time))
      #expect(Self.ways(outcome) == (moment.isQuiet ? Self.quiet : Self.loud), "\(moment)")
      #expect(store.badge == 2 && store.delivered.map(\.identifier) == ["tea"])
    }
  }

  @Test func `a night belongs to the day on which it begins`() throws {
    // From Thursday to Friday only.
    var store = Self.store(Self.nights("UTC", days: 1 << 4))
    for (hour, isQuiet) in [(6, false), (22, true), (30, true), (31, false), (46, false), (54, false)] {
      let outcome = store.add(try Self.tea().frame(id: "\(hour)"), localTime: LocalTime(Self.thursday + Self.minutes(hour)))
      #expect(Self.ways(outcome) == (isQuiet ? Self.quiet : Self.loud), "\(hour) hours after the beginning of Thursday")
    }
  }

  @Test func `time-sensitive and critical notifications pass, unless the person has switched that off`() throws {
    for (level, option) in [(.timeSensitive, .timeSensitive), (.critical, .criticalAlert)] as [(InterruptionLevel, Authorization.Option)] {
      var store = Self.store(Self.always)
      #expect(Self.ways(store.add(try Self.tea(nil, level).frame(id: "1"), localTime: LocalTime(Self.thursday))) == Self.loud)
      store.authorization.options[option] = false
      #expect(Self.ways(store.add(try Self.tea(nil, level).frame(id: "2"), localTime: LocalTime(Self.thursday))) == Self.quiet)
    }
    var store = Self.store(Self.always)
    #expect(Self.ways(store.add(try Self.tea(nil, .passive).frame(id: "1"), localTime: LocalTime(Self.thursday))) == Self.quiet)
    let bell = NotificationRequest(identifier: "bell", content: NotificationContent(sound: "default"))
    #expect(store.add(try bell.frame(id: "2"), localTime: LocalTime(Self.thursday)) == .dropped(.filtered))
  }

  @Test func `the hours at the time of the showing count, whatever they were when the request was added`() throws {
    let evening = Self.thursday + Self.minutes(21)
    for (before, after, isQuiet) in [
      (nil, Self.nights("UTC"), true), (Self.nights("UTC"), nil, false), (Self.nights("UTC"), Self.nights("America/New_York"), false),
      (Self.nights("Asia/Kolkata"), Self.nights("UTC"), true),
    ] as [(QuietHours?, QuietHours?, Bool)] {
      var store = Self.store(before)
      _ = store.add(try Self.tea(.timeInterval(7_200, repeats: false)).frame(id: "1"), localTime: LocalTime(evening))
      #expect(store.takeTime(LocalTime(evening + Self.minutes(1))).isEmpty)
      store.quietHours = after
      let shown = store.takeTime(LocalTime(evening + Self.minutes(2))).map { Self.ways($0.1) }
      #expect(shown == [isQuiet ? Self.quiet : Self.loud])
    }
  }

  @Test func `each occurrence of a repeating trigger is judged at its own time`() throws {
    var store = Self.store(Self.nights("Europe/Rome"))
    let evening = Self.thursday + Self.minutes(19, 30)
    _ = store.add(try Self.tea(.timeInterval(3_600, repeats: true)).frame(id: "1"), localTime: LocalTime(evening))
    var shown: [PresentationOptions?] = []
    for hour in 1...11 { shown += store.takeTime(LocalTime(evening + Self.minutes(hour))).map { Self.ways($0.1) } }
    // 21:30 in Rome, then 22:30 to 06:30, then 07:30.
    #expect(shown == [Self.loud] + Array(repeating: Self.quiet, count: 9) + [Self.loud])
  }

  @Test func `the cluster has judged what it sends to be shown at once, and the device judges the rest`() throws {
    var store = Self.store(Self.always)
    let aps: JSONValue = ["alert": "text", "sound": "bell", "badge": 3]
    // Another device of the person may have ended the hours.
    #expect(Self.ways(store.take(try notifyFrame(notify(1, id: "one", revision: "1", aps: aps)), now: Self.thursday)) == Self.loud)
    let trigger: JSONValue = ["type": "location", "repeats": false, "region": ["identifier": "shop"]]
    _ = store.take(try notifyFrame(notify(2, id: "two", revision: "2", aps: aps, trigger: trigger)), now: Self.thursday)
    #expect(Self.ways(store.fire("two", now: Self.thursday, localTime: 0)) == Self.quiet)
    // On a watch.
    let showing = NotificationShowing(identifier: "three", id: "three", takenAt: Self.thursday)
    let forwarded = try notifyFrame(notify(3, id: "three", revision: "3", aps: aps))
    #expect(Self.ways(store.takeForwarded(forwarded, showing, now: Self.thursday)) == Self.quiet)
  }

  @Test func `hours of a zone that is unknown here never hold, and no time is too early or too late to be judged`() throws {
    var unknown = Self.store(QuietHours(from: 0, to: 0, timeZone: "Mars/Olympus"))
    #expect(Self.ways(unknown.add(try Self.tea().frame(id: "1"), localTime: LocalTime(Self.thursday))) == Self.loud)
    for time in [Int64.min, -1, 0, .max] {
      var store = Self.store(Self.always)
      #expect(Self.ways(store.add(try Self.tea().frame(id: "1"), localTime: LocalTime(time))) == Self.quiet)
    }
  }

  // MARK: The device

  private static func with(_ body: (_ path: String, _ cluster: ScriptedCluster, _ url: String) async throws -> Void) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in try await body(folder.path + "/state", cluster, url) }
    }
  }

  private static func welcome(_ hours: JSONValue?) -> JSONValue {
    var welcome = ScriptedCluster.welcome()
    if let hours { welcome.set("quiet", hours) }
    return welcome
  }

  private static let alwaysJSON: JSONValue = ["from": "00:00", "to": "00:00", "timeZone": "UTC"]

  /// Whether the device shows a notification quietly at this moment.
  private static func isQuiet(_ device: DeviceUnderTest) async throws -> Bool {
    try await device.device.userNotificationCenter.add(Self.tea())
    return await device.device.delivered.first?.presentation.contains(.quietly) ?? false
  }

  @Test func `the hours of a welcome outlive the program, and hold at its next start before any connection`() async throws {
    try await Self.with { path, cluster, url in
      await cluster.answer(with: Self.welcome(Self.alwaysJSON))
      let first = DeviceUnderTest(url) { $0.stateFile = path }
      try await first.device.start()
      await eventually("it has the hours") { await first.device.quietHours == Self.always }
      #expect(try await Self.isQuiet(first))
      let added = WallClock.milliseconds()
      try await first.device.userNotificationCenter.add(
        NotificationRequest(
          identifier: "late", content: NotificationContent(title: "Late", sound: "default"), trigger: .timeInterval(3_600, repeats: false)))
      await first.close()
      // An hour is over in the file.
      let database = DeviceDatabase.forTests(path)
      _ = try await database.open()
      try await database.commit([.waiting("late", anchor: added - 3_600_000, after: added - 3_600_000)])
      await database.closeForTests()
      await cluster.answer(with: nil)
      let second = DeviceUnderTest(url) { $0.stateFile = path }
      try await second.device.start()
      await second.expect("shown late local")
      #expect(await second.device.delivered.first?.presentation == [.list, .quietly])
      await second.close()
      // The person has ended them elsewhere.
      await cluster.answer(with: Self.welcome(nil))
      let third = DeviceUnderTest(url) { $0.stateFile = path }
      try await third.device.start()
      await eventually("it has no hours") { await third.device.quietHours == nil }
      #expect(try await !Self.isQuiet(third))
      await third.close()
    }
  }

  @Test func `hours that the person sets here hold at once, and reach the cluster even after the program's end`() async throws {
    try await Self.with { path, cluster, url in
      await cluster.answer(with: nil)
      let first = DeviceUnderTest(url) { $0.stateFile = path }
      try await first.device.start()
      await cluster.expect("hello")
      let request = try await first.device.setQuietHours(Self.always)
      #expect(try await Self.isQuiet(first))
      await first.close()
      // This welcome is older than the change.
      await cluster.answer(with: Self.welcome(nil))
      let second = DeviceUnderTest(url) { $0.stateFile = path }
      try await second.device.start()
      let frame = try #require(await cluster.expect("settings", of: 1).first)
      #expect(frame == ["type": "settings", "request": .string(request), "quiet": Self.alwaysJSON])
      #expect(try await Self.isQuiet(second))
      // A lost connection loses no change.
      await cluster.cut(session: 1)
      #expect(await cluster.expect("settings", of: 2).first == frame)
      let accepted = Moment()
      await cluster.send(["type": "accepted", "request": .string(request)], to: 2)
      await eventually("it is accepted") { second.story.contains("accepted request") }
      #expect(await second.device.quietHours == Self.always)
      // The next worker may not have heard of it yet.
      await cluster.cut(session: 2)
      await eventually("it is connected again") { second.connections == 3 }
      let hours = await second.device.quietHours
      // It waits ten seconds for the workers to hear of it.
      if accepted.isWithin(.seconds(10)) { #expect(hours == Self.always) }
      let removal = try await second.device.setQuietHours(nil)
      #expect(await cluster.expect("settings", of: 3).first == ["type": "settings", "request": .string(removal), "quiet": [:]])
      await second.close()
      // The removal was not answered, and this welcome is older.
      await cluster.answer(with: Self.welcome(Self.alwaysJSON))
      let third = DeviceUnderTest(url) { $0.stateFile = path }
      try await third.device.start()
      await cluster.expect("settings", of: 4)
      #expect(try await !Self.isQuiet(third))
      // Refused hours do not hold: those of the cluster do.
      await cluster.send(["type": "refused", "request": .string(removal), "reason": "BadFrame", "field": "quiet"], to: 4)
      await eventually("it is refused") { third.story.contains { $0.hasPrefix("refused") } }
      #expect(await third.device.quietHours == Self.always)
      try await third.device.unregister()
      let leaving = try #require(await cluster.expect("unregister", of: 4).first?["request"])
      await cluster.send(["type": "accepted", "request": leaving], to: 4)
      await eventually("it has signed out") { third.story.last == "unregistered" }
      #expect(try await !Self.isQuiet(third), "they belong to the person who has signed out")
      await third.close()
    }
  }

  @Test func `hours that break a rule are refused, and so are those of a device without a user and of a watch`() async throws {
    try await ScriptedCluster.with { _, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      var late = Self.always
      late.from = 1_440
      for (hours, field) in [
        (QuietHours(from: 0, to: 0, days: 0, timeZone: "UTC"), "quiet.days"), (late, "quiet.from"),
        (QuietHours(from: 0, to: 0, timeZone: "Mars/Olympus"), "quiet.timeZone"),
        (QuietHours(from: 0, to: 0, timeZone: ""), "quiet.timeZone"),
      ] {
        let error = await #expect(throws: DeviceError.self) { try await device.device.setQuietHours(hours) }
        #expect(error?.code == .badRequest && error?.description.hasPrefix("settings: \(field): ") == true, "\(String(describing: error))")
      }
      #expect(await device.device.quietHours == nil)
      await device.close()
      let nobody = DeviceUnderTest(url) { $0.hello.user = nil }
      let watch = DeviceUnderTest(url) { $0.watchConnectivity = WatchConnectivity(.watch) { _ in } }
      for device in [nobody, watch] {
        try await device.device.start()
        let error = await #expect(throws: DeviceError.self) { try await device.device.setQuietHours(Self.always) }
        #expect(error?.code == .configuration)
        await device.close()
      }
    }
  }

  // MARK: The watch

  @Test func `a watch has the hours of its phone, for its own requests too, and keeps them without it`() async throws {
    try await Self.with { path, cluster, url in
      let channel = WatchTests.Channel()
      await cluster.answer(with: Self.welcome(Self.alwaysJSON))
      let phone = DeviceUnderTest(url) { ($0.stateFile, $0.watchConnectivity) = (path, channel.end(of: .phone)) }
      func startWatch() async throws -> DeviceUnderTest {
        let watch = DeviceUnderTest(url) { ($0.stateFile, $0.watchConnectivity) = (path + "-watch", channel.end(of: .watch)) }
        channel.state.withLock { $0.watch = watch.device }
        try await watch.device.start()
        return watch
      }
      channel.state.withLock { $0.phone = phone.device }
      try await phone.device.start()
      await eventually("the phone has the hours") { await phone.device.quietHours == Self.always }
      // It asks for them at its start.
      let first = try await startWatch()
      await eventually("the watch has the hours") { await first.device.quietHours == Self.always }
      #expect(try await Self.isQuiet(first))
      // A change is told.
      try await phone.device.setQuietHours(nil)
      await eventually("the watch has none") { await first.device.quietHours == nil }
      #expect(try await !Self.isQuiet(first))
      try await phone.device.setQuietHours(Self.always)
      await eventually("the watch has the hours") { await first.device.quietHours == Self.always }
      await first.close()
      channel.state.withLock { $0.lost = 100 }
      let second = try await startWatch()
      #expect(try await Self.isQuiet(second))
      await second.close()
      await phone.close()
    }
  }

  @Test func `hours of another person on the same state file do not hold, and are not sent as those of this one`() async throws {
    try await Self.with { path, cluster, url in
      await cluster.answer(with: nil)
      let ada = DeviceUnderTest(url) { $0.stateFile = path }
      try await ada.device.start()
      await cluster.expect("hello")
      try await ada.device.setQuietHours(Self.always)
      #expect(try await Self.isQuiet(ada))
      await ada.close()
      await cluster.answer(with: ScriptedCluster.welcome())
      let bob = DeviceUnderTest(url) { ($0.stateFile, $0.hello.user) = (path, "bob") }
      try await bob.device.start()
      #expect(await bob.device.quietHours == nil)
      #expect(try await !Self.isQuiet(bob))
      // This change is sent after an earlier one. Before the hello it would be part of that.
      await cluster.expect("hello", of: 1)
      try await bob.device.setAuthorization(Authorization(status: .authorized))
      let frame = try #require(await cluster.expect("settings", of: 1).first)
      #expect(frame["quiet"] == nil && frame["authorization"] != nil)
      await bob.close()
    }
  }
}

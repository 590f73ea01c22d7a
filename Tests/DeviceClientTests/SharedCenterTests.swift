import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// The notification center of another process, on the state file of a device.
@Suite(.timeLimit(.minutes(10))) struct SharedCenterTests {
  private static let application: Name = "com.example.shop"

  private static func request(_ identifier: Name, _ trigger: NotificationTrigger? = nil, title: String = "Tea") -> NotificationRequest {
    NotificationRequest(identifier: identifier, content: NotificationContent(title: title), trigger: trigger)
  }

  private static let hour = NotificationTrigger.timeInterval(3_600, repeats: false)

  /// Runs a device with a state file at a cluster.
  private static func with(
    _ body: (_ path: String, _ cluster: ScriptedCluster, _ url: String) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in try await body(folder.path + "/state", cluster, url) }
    }
  }

  private static func device(_ url: String, _ path: String, _ change: (inout DeviceConfiguration) -> Void = { _ in }) -> DeviceUnderTest {
    DeviceUnderTest(url) {
      ($0.stateFile, $0.commandMilliseconds) = (path, 20)
      change(&$0)
    }
  }

  private static func code(_ body: () async throws -> Void) async -> DeviceError.Code? {
    do { try await body() } catch { return (error as? DeviceError)?.code }
    return nil
  }

  // MARK: A device that runs

  @Test func `another process reads the lists, the settings and the categories of the device`() async throws {
    try await Self.with { path, cluster, url in
      let device = Self.device(url, path) { $0.hello.authorization = Authorization(status: .authorized, options: [.sound: false]) }
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(
        notify(1, id: "one", "a", revision: "1", aps: ["alert": "Hello", "badge": 3]), notify(2, id: "two", "b", revision: "2"))
      try await device.device.userNotificationCenter.add(Self.request("tea", Self.hour))
      await device.expect("shown a 1", "shown b 2")
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      #expect(try await center.deliveredNotifications() == device.device.delivered)
      let groups = await device.device.userNotificationCenter.deliveredNotificationGroups()
      #expect(groups.map { $0.notifications.map(\.identifier) } == [["b", "a"]])
      #expect(try await center.deliveredNotificationGroups() == groups)
      #expect(try await center.pendingNotificationRequests() == [Self.request("tea", Self.hour)])
      #expect(try await center.notificationSettings() == device.device.authorization)
      #expect(try await center.requestAuthorization(options: [.alert]))
      #expect(try await center.notificationCategories() == [DeviceUnderTest.category])
      #expect(try await center.badgeCount() == 3)
      // What the person changes meanwhile is read, too.
      try await device.device.setAuthorization(Authorization(status: .denied))
      await eventually("the change is read") { (try? await center.notificationSettings().status) == .denied }
      #expect(try await center.requestAuthorization(options: [.alert]) == false)
      await center.close()
      #expect(await Self.code { _ = try await center.badgeCount() } == .notRunning)
      await device.close()
    }
  }

  @Test func `the device does what another process asks for, once`() async throws {
    try await Self.with { path, cluster, url in
      let device = Self.device(url, path)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(notify(1, id: "one", "a", revision: "1"), notify(2, id: "two", "b", revision: "2"))
      try await device.device.userNotificationCenter.add(Self.request("old", Self.hour))
      await device.expect("shown a 1", "shown b 2")
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      try await center.add(Self.request("now"))
      try await center.add(Self.request("later", Self.hour))
      try await center.add(Self.request("soon", .timeInterval(0.2, repeats: false)))
      try await center.removePendingNotificationRequests(withIdentifiers: ["old", "none"])
      try await center.removeDeliveredNotifications(withIdentifiers: ["a"])
      try await center.setBadgeCount(7)
      let categories = [NotificationCategory(identifier: "shared")]
      try await center.setNotificationCategories(categories)
      // Its own answers have it at once.
      #expect(try await center.badgeCount() == 7)
      #expect(try await center.notificationCategories() == categories)
      #expect(try await Set(center.pendingNotificationRequests().map(\.identifier)).subtracting(["soon"]) == ["later"])
      #expect(try await !center.deliveredNotifications().map(\.identifier).contains("a"))
      await cluster.expect("categories")
      // In the file, too: a removal is of what its process has seen there.
      await eventually("all is done: \(device.story)") {
        let listed = try? await center.deliveredNotifications()
        let shown = await device.device.delivered
        return [listed ?? [], shown].allSatisfy { Set($0.map(\.identifier)) == ["b", "now", "soon"] }
      }
      #expect(await device.device.pending.map(\.identifier) == ["later"])
      #expect(await device.device.badge == 7)
      #expect(await device.device.categories == categories)
      try await center.removeAllDeliveredNotifications()
      try await center.removeAllPendingNotificationRequests()
      await eventually("nothing is left") { await (device.device.delivered + device.device.pending).isEmpty }
      #expect(device.story.filter { $0.hasPrefix("shown now") }.count == 1 && device.story.filter { $0.hasPrefix("shown soon") }.count == 1)
      await center.close()
      await device.close()
      // Nothing of it is done again.
      let again = Self.device(url, path)
      try await again.device.start()
      #expect(await again.device.badge == 7 && again.story.isEmpty)
      #expect(await (again.device.delivered + again.device.pending).isEmpty)
      await again.close()
    }
  }

  @Test func `another process reads when a request is due, whether the device has it yet or not`() async throws {
    try await Self.with { path, _, url in
      let device = Self.device(url, path)
      try await device.device.start()
      let own = device.device.userNotificationCenter
      let daily = NotificationTrigger.timeInterval(86_400, repeats: true)
      try await own.add(Self.request("tea", daily))
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      let due = try #require(await own.nextTriggerDate(of: "tea"))
      // The two processes read two clocks, one after the other.
      let slack: Double = 3_600
      #expect(try (due - slack...due + slack).contains(#require(await center.nextTriggerDate(of: "tea"))))
      try await center.add(Self.request("later", daily))
      let expected = try #require(await center.nextTriggerDate(of: "later"))
      #expect(expected > due - slack)
      await eventually("the device has it") { await own.nextTriggerDate(of: "later") != nil }
      #expect(try (expected - slack...expected + slack).contains(#require(await own.nextTriggerDate(of: "later"))))
      #expect(try await center.nextTriggerDate(of: "none") == nil)
      await center.close()
      await device.close()
    }
  }

  @Test func `a removal by another process leaves what was updated before the device heard of it`() async throws {
    try await Self.with { path, cluster, url in
      let device = Self.device(url, path) { $0.commandMilliseconds = 3_600_000 }
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(notify(1, id: "one", "a", revision: "1"), notify(2, id: "two", "b", revision: "2"))
      await device.expect("shown a 1", "shown b 2")
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      try await center.removeDeliveredNotifications(withIdentifiers: ["a", "b"])
      await cluster.send(notify(3, id: "three", "a", revision: "3"))
      await device.expect("shown a 1", "shown b 2", "updated a 3")
      await center.close()
      await device.close()
      let again = Self.device(url, path)
      try await again.device.start()
      #expect(await again.device.delivered.map(\.id) == ["three"])
      await again.close()
    }
  }

  // MARK: Time zones

  /// The wall clock of UTC in an hour, as the units of a one-off. In Kiritimati that time has passed 13 hours ago.
  private static func inAnHour() throws -> NotificationTrigger {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = try #require(TimeZone(identifier: "UTC"))
    let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute], from: Date(timeIntervalSinceNow: 3_600))
    var units = CalendarUnits()
    (units[.year], units[.month], units[.day]) = (parts.year, parts.month, parts.day)
    (units[.hour], units[.minute]) = (parts.hour, parts.minute)
    return .calendar(units, repeats: false)
  }

  private static let kiritimati = "Pacific/Kiritimati"

  @Test func `a calendar trigger that names no zone is checked in the zone of the device, as its state file has it`() async throws {
    try await Self.with { path, _, url in
      let first = Self.device(url, path) { $0.hello.timeZone = Self.kiritimati }
      try await first.device.start()
      await first.close()
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      let soon = try Self.inAnHour()
      let error = await #expect(throws: DeviceError.self) { try await center.add(Self.request("soon", soon)) }
      #expect(error?.code == .badRequest && error?.description.contains("dateComponents") == true)
      #expect(try await center.pendingNotificationRequests().isEmpty)
      // The device moves, and one whose zone nobody knows has its times of day in UTC.
      for zone in ["UTC", "Mars/Olympus"] {
        let device = Self.device(url, path) { $0.hello.timeZone = Self.kiritimati }
        try await device.device.start()
        try await device.device.setLocale(nil, timeZone: zone)
        await device.close()
        try await center.add(Self.request("soon", soon))
        #expect(try await center.pendingNotificationRequests().map(\.identifier) == ["soon"])
        try await center.removeAllPendingNotificationRequests()
        #expect(try await center.notificationSettings().status == .authorized)
      }
      await center.close()
    }
  }

  @Test func `a request that is never due in the device's zone does not wait there, wherever it was checked`() async throws {
    try await Self.with { path, _, url in
      let device = Self.device(url, path) { $0.hello.timeZone = Self.kiritimati }
      try await device.device.start()
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application, timeZone: "UTC")
      try await center.add(Self.request("soon", Self.inAnHour()))
      await device.expect("dropped soon expired")
      #expect(await device.device.pending.isEmpty)
      #expect(try await center.pendingNotificationRequests().isEmpty)
      await center.close()
      // The device's own call refuses it, and what waits when the device moves is dropped.
      let soon = try Self.inAnHour()
      #expect(await Self.code { try await device.device.userNotificationCenter.add(Self.request("soon", soon)) } == .badRequest)
      try await device.device.setLocale(nil, timeZone: "UTC")
      try await device.device.userNotificationCenter.add(Self.request("later", soon))
      #expect(await device.device.pending.count == 1)
      try await device.device.setLocale(nil, timeZone: Self.kiritimati)
      await device.expect("dropped soon expired", "dropped later expired")
      #expect(await device.device.pending.isEmpty)
      await device.close()
    }
  }

  // MARK: A device that does not run

  @Test func `what another process asks for while no device runs is done at the start, before anything is shown`() async throws {
    try await Self.with { path, _, url in
      let first = Self.device(url, path)
      try await first.device.start()
      let added = WallClock.milliseconds()
      try await first.device.userNotificationCenter.add(Self.request("old", .timeInterval(60, repeats: false)))
      await first.close()
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      try await center.removeAllPendingNotificationRequests()
      try await center.add(Self.request("tea", .timeInterval(0.001, repeats: false)))
      try await center.add(Self.request("tea", Self.hour))
      try await center.add(Self.request("now"))
      #expect(try await center.pendingNotificationRequests() == [Self.request("tea", Self.hour)])
      await center.close()
      // A minute is over in the file.
      let database = DeviceDatabase.forTests(path)
      _ = try await database.open()
      try await database.commit([.waiting("old", anchor: added - 90_000, after: added - 90_000)])
      await database.closeForTests()
      let second = Self.device(url, path)
      try await second.device.start()
      await eventually("it is shown: \(second.story)") { second.story.contains("shown now local") }
      #expect(await second.device.pending.map(\.request) == [Self.request("tea", Self.hour)])
      #expect(await second.device.delivered.map(\.identifier) == ["now"] && !second.story.contains("shown old local"), "\(second.story)")
      await second.close()
    }
  }

  @Test func `a time interval that another process adds counts by the device's clock, which the clock on the wall may have left`()
    async throws
  {
    try await Self.with { path, _, url in
      let first = Self.device(url, path)
      try await first.device.start()
      await first.close()
      // The clock on the wall was set forward by two hours since.
      let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      try connection.run("UPDATE clock SET offset = offset - 7200000")
      connection.close()
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      try await center.add(Self.request("tea", Self.hour))
      let device = Self.device(url, path)
      try await device.device.start()
      await eventually("it waits") { await device.device.pending.count == 1 }
      let now = Date()
      for due in [try await center.nextTriggerDate(of: "tea"), await device.device.userNotificationCenter.nextTriggerDate(of: "tea")] {
        #expect(try (now + 1_800...now + 5_400).contains(#require(due)))
      }
      await center.close()
      await device.close()
    }
  }

  // MARK: Errors

  @Test func `what only the device can do says so, and a request that breaks a rule is refused`() async throws {
    try await Self.with { path, _, url in
      #expect(await Self.code { _ = try await UserNotificationCenter.shared(in: path, application: Self.application) } == .stateUnusable)
      let device = Self.device(url, path) { $0.hello.authorization = Authorization(status: .notDetermined) }
      try await device.device.start()
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      #expect(await Self.code { try await center.requestAuthorization(options: [.alert]) } == .needsDevice)
      #expect(await Self.code { try await center.openSettings() } == .needsDevice)
      var attached = Self.request("photo")
      attached.attachments = [AttachmentSource(identifier: "photo", path: "/tmp/none.gif")]
      #expect(await Self.code { try await center.add(attached) } == .needsDevice)
      #expect(await Self.code { try await center.add(Self.request("never", .timeInterval(-1, repeats: false))) } == .badRequest)
      #expect(await Self.code { try await center.add(NotificationRequest(identifier: "x", content: NotificationContent())) } == .badRequest)
      #expect(await Self.code { try await center.setBadgeCount(-1) } == .badRequest)
      #expect(try await center.pendingNotificationRequests().isEmpty)
      await center.close()
      #expect(await Self.code { _ = try await UserNotificationCenter.shared(in: path, application: "com.example.other") } == .stateUnusable)
      #expect(
        await Self.code { _ = try await UserNotificationCenter.shared(in: path + "/none", application: Self.application) } == .stateUnusable
      )
      await device.close()
    }
  }

  @Test func `no more commands wait for the device than may`() async throws {
    try await Self.with { path, _, url in
      let device = Self.device(url, path)
      try await device.device.start()
      await device.close()
      let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      try connection.transaction { () throws(DeviceError) in
        try StateFile.add(.badge(7), connection)
        for _ in 1..<StoredCommand.maximum { try StateFile.add(.removePending([]), connection) }
      }
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      #expect(await Self.code { try await center.add(Self.request("tea")) } == .tooManyWaiting)
      #expect(try await center.badgeCount() == 7)
      await center.close()
      // One that cannot be read is passed over.
      try connection.run("UPDATE commands SET value = x'7b' WHERE place = 5")
      try connection.run("UPDATE commands SET kind = x'78' WHERE place = 6")
      let again = Self.device(url, path)
      try await again.device.start()
      await eventually("all are done") { (try? connection.integer("SELECT count(*) FROM commands")) == 0 }
      #expect(await again.device.badge == 7)
      await again.close()
      connection.close()
    }
  }

  @Test func `commands that wait for the device have a bound in bytes, and a later badge or category takes the place of an earlier one`()
    async throws
  {
    try await Self.with { path, _, url in
      let device = Self.device(url, path)
      try await device.device.start()
      await device.close()
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      var (added, error): (Int, DeviceError?) = (0, nil)
      while error == nil, added < 1_000 {
        do throws(DeviceError) {
          try await center.add(Self.request("n\(added)", title: String(repeating: "x", count: 30_000)))
          added += 1
        } catch let refusal {
          error = refusal
        }
      }
      #expect(error?.code == .tooManyWaiting && error?.description.contains("\(StoredCommand.maximumBytes) bytes") == true)
      #expect((100..<200).contains(added))
      let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      try connection.run("DELETE FROM commands WHERE place > 20")
      for number in 0..<50 {
        try await center.setBadgeCount(number)
        try await center.setNotificationCategories([NotificationCategory(identifier: Name("c\(number)"))])
      }
      #expect(try connection.integer("SELECT count(*) FROM commands") == 22)
      #expect(try await center.badgeCount() == 49)
      await center.close()
      let again = Self.device(url, path) { $0.hello.categories = nil }
      try await again.device.start()
      await eventually("all are done") { (try? connection.integer("SELECT count(*) FROM commands")) == 0 }
      #expect(await again.device.badge == 49)
      #expect(await again.device.categories.map(\.identifier) == ["c49"])
      #expect(await again.device.delivered.count == 20)
      await again.close()
      connection.close()
    }
  }

  @Test func `more commands than may wait, which another program has written, are done in their order`() async throws {
    try await Self.with { path, _, url in
      let device = Self.device(url, path)
      try await device.device.start()
      await device.close()
      let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      let count = StoredCommand.maximum * 2 + 500
      try connection.transaction { () throws(DeviceError) in
        for number in 1...count {
          try connection.run(
            "INSERT INTO commands (kind, at, value) VALUES (?, 0, ?)", .text("badge"), .bytes(Array("\(number)".utf8)))
        }
      }
      #expect(try StateFile.commands(connection).count == StoredCommand.maximum)
      let again = Self.device(url, path)
      try await again.device.start()
      await eventually("all are done") { (try? connection.integer("SELECT count(*) FROM commands")) == 0 }
      #expect(await again.device.badge == count)
      await again.close()
      connection.close()
    }
  }

  @Test(arguments: 0..<(isComplete ? 30 : 6)) func `calls during the closing return, and a second closing waits for the first`(_ round: Int)
    async throws
  {
    try await Self.with { path, _, url in
      let device = Self.device(url, path)
      try await device.device.start()
      await device.close()
      let returned = Returned()
      let center = try await UserNotificationCenter.shared(in: path, application: Self.application)
      for number in 0..<64 {
        Self.call(center, closes: number % 16 == round % 16, returned)
      }
      await eventually("all have returned") { returned.count.withLock { $0 } == 64 }
      #expect(await Self.code { _ = try await center.badgeCount() } == .notRunning)
    }
  }

  /// How many calls have returned.
  private final class Returned: Sendable {
    let count = Mutex(0)
    func add() { count.withLock { $0 += 1 } }
  }

  private static func call(_ center: SharedNotificationCenter, closes: Bool, _ returned: Returned) {
    Task.detached {
      if closes { await center.close() } else { _ = try? await center.badgeCount() }
      returned.add()
    }
  }

  @Test(.onThreadsOfTheirOwn) func `a command is read as it was stored`() {
    var random = RandomState(seed: 11)
    for number in 0..<(isComplete ? 200 : 40) {
      let showings = (0..<number % 4).map {
        NotificationShowing(identifier: "e\u{301} \($0)\n", id: "\u{0}\"", takenAt: .max - Int64($0))
      }
      let commands: [StoredCommand] = [
        .add(random.notification(), at: Int64(number)), .removePending(showings), .removeDelivered(showings), .badge(.max - number),
        .categories([NotificationCategory(identifier: "é"), DeviceUnderTest.category]),
      ]
      for command in commands { #expect(StoredCommand(kind: command.kind, at: command.at, bytes: command.bytes) == command) }
    }
  }

  // MARK: Processes that are killed

  /// A device with a notification `a` in its list and a request `old` that waits.
  private static func prepare(_ path: String) async throws {
    let database = DeviceDatabase.forTests(path)
    _ = try await database.open()
    let old = try Self.request("old", Self.hour).frame(id: "old")
    try await database.commit([
      .listed(DeviceDatabase.listed(try notifyFrame(notify(1, id: "one", "a", revision: "1")), at: 1), isPending: false),
      .listed(.init(old, takenAt: WallClock.milliseconds(), isLocal: true, .init(chain: nil, locale: nil)), isPending: true),
    ])
    await database.closeForTests()
  }

  /// What the commands of the other process have made of the device.
  private static func done(_ device: Device) async -> Set<String> {
    var done: Set<String> = []
    let (pending, delivered) = await (device.pending.map(\.identifier), device.delivered.map(\.identifier))
    if pending.contains("later") { done.insert("later") }
    if delivered.contains("now") { done.insert("now") }
    if !pending.contains("old") { done.insert("old") }
    if !delivered.contains("a") { done.insert("a") }
    if await device.badge == 5 { done.insert("badge") }
    if await device.categories.map(\.identifier) == ["shared"] { done.insert("categories") }
    return done
  }

  @Test func `another process that is killed at any step loses nothing that it was told is stored, and nothing is shown twice`()
    async throws
  {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { _, url in
        var step = 1
        while true {
          let path = command.folder.appendingPathComponent("state-\(step)").path
          try await Self.prepare(path)
          let device = Self.device(url, path)
          try await device.device.start()
          let run = try await command.run(["center", path, "\(step)"], program: CarillonCommand.product("KilledDevice"))
          let told = Set(run.lines.filter { !$0.hasPrefix("steps") })
          await eventually("step \(step): \(told) are done") {
            await told.isSubset(of: Self.done(device.device))
          }
          // A command that was stored and not told may be done, and no other.
          #expect(await Self.done(device.device).count <= told.count + 1, "step \(step)")
          #expect(device.story.filter { $0 == "shown now local" }.count <= 1, "step \(step): \(device.story)")
          #expect(!device.events.contains { if case .failed = $0 { true } else { false } }, "step \(step)")
          await device.close()
          guard run.status == 128 + SIGKILL else {
            #expect(run.status == 0 && told.count == 6, "step \(step): \(run.output) \(run.errors)")
            break
          }
          step += 1
        }
        #expect(step > 20, "only \(step) steps: does the disk count them?")
      }
    }
  }

  @Test func `a device that is killed at any step does what another process has asked for, once`() async throws {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { _, url in
        var step = 1
        while true {
          let path = command.folder.appendingPathComponent("state-\(step)").path
          try await Self.prepare(path)
          let run = try await command.run(["center", path, "0"], program: CarillonCommand.product("KilledDevice"))
          #expect(run.status == 0, "\(run.errors)")
          let killed = try await command.run(
            [url, DeviceUnderTest.token, path, "\(step)", "commands"], program: CarillonCommand.product("KilledDevice"))
          // The categories of the hello would count more than those that are stored.
          let device = Self.device(url, path) { $0.hello.categories = nil }
          try await device.device.start()
          await eventually("step \(step): all are done") { await Self.done(device.device).count == 6 }
          let shown = killed.lines.filter { $0.hasPrefix("shown") }.count + device.story.filter { $0 == "shown now local" }.count
          #expect(shown <= 1, "step \(step): \(killed.output), then \(device.story)")
          await device.close()
          guard killed.status == 128 + SIGKILL else {
            #expect(killed.status == 0 && shown == 1, "step \(step): \(killed.output) \(killed.errors)")
            break
          }
          step += 1
        }
        #expect(step > 20, "only \(step) steps: does the disk count them?")
      }
    }
  }
}

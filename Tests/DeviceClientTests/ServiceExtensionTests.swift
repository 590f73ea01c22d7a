import EventLoop
import Extensions
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// The program's own service extension, with a real database and a scripted cluster.
@Suite(.timeLimit(.minutes(10))) struct ServiceExtensionTests {
  private static func id(_ number: Int) -> String { NotificationID(high: 7, low: UInt64(number)).description }

  /// A notification that an extension may change.
  private static func mutable(
    _ number: Int, _ identifier: String? = nil, expiration: Int64 = 0, aps: JSONValue = ["alert": "Hello", "mutable-content": 1]
  ) -> JSONValue {
    notify(
      Int64(number), id: id(number), identifier ?? "n\(number)", revision: NotificationStoreTests.revision(number), expiration: expiration,
      aps: aps)
  }

  /// Runs a device with an extension and a state file at a cluster; the body closes it.
  private static func with(
    _ work: any ServiceExtension, _ change: (inout DeviceConfiguration) -> Void = { _ in },
    _ body: (_ device: DeviceUnderTest, _ cluster: ScriptedCluster, _ path: String) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        let device = DeviceUnderTest(url) {
          ($0.stateFile, $0.serviceExtension) = (folder.path + "/state", work)
          change(&$0)
        }
        try await device.device.start()
        await cluster.expect("hello")
        try await body(device, cluster, folder.path + "/state")
      }
    }
  }

  private static func acknowledged(_ cluster: ScriptedCluster) async -> [JSONValue] {
    await cluster.frames("ack").flatMap { $0["deliveries"]?.elements ?? [] }
  }

  // MARK: What is shown

  @Test func `only an alert of the cluster that says it is mutable, and would be shown as one, passes the extension`() async throws {
    let calls = Calls { $1.title = "Changed" }
    try await Self.with(calls) { device, cluster, _ in
      let frames = [
        Self.mutable(1), Self.mutable(2, aps: ["alert": "Hello"]), Self.mutable(3, aps: ["badge": 3, "mutable-content": 1]),
        Self.mutable(4, aps: ["sound": "bell", "mutable-content": 1]),
        Self.mutable(5, aps: ["content-available": 1, "mutable-content": 1]),
        Self.mutable(6, aps: ["alert": ["title": "Order"], "mutable-content": 1]),
      ]
      for frame in frames { await cluster.send(frame) }
      let request = NotificationRequest(identifier: "tea", content: NotificationContent(["aps": ["alert": "Tea", "mutable-content": 1]]))
      try await device.device.userNotificationCenter.add(request)
      await eventually("all are shown: \(device.story)") { device.story.count == 7 }
      #expect(calls.identifiers == ["n1", "n6"])
      let changed = await device.device.delivered.filter { $0.content.title == "Changed" }
      #expect(Set(changed.map(\.identifier)) == ["n1", "n6"])
      // Of one that is not shown as an alert the extension hears nothing.
      try await device.device.setAuthorization(Authorization(status: .denied))
      await cluster.send(Self.mutable(7))
      await eventually("it is dropped: \(device.story)") { device.story.contains("dropped n7 filtered") }
      #expect(calls.identifiers == ["n1", "n6"])
      await device.close()
    }
  }

  @Test func `a notification is stored and acknowledged, then changed, then shown, and stays changed after a restart`() async throws {
    let gate = Latch()
    let calls = Calls { _, content in
      await gate.waitUnlessCancelled()
      content.title = "Changed"
    }
    try await Self.with(calls, { $0.extensions = Self.mark }) { device, cluster, path in
      await cluster.send(Self.mutable(1))
      await eventually("it is acknowledged") { await Self.acknowledged(cluster) == [1] }
      await eventually("the extension has it") { calls.identifiers == ["n1"] }
      #expect(await device.device.delivered.isEmpty && device.story.isEmpty)
      gate.open()
      await device.expect("shown n1 \(NotificationStoreTests.revision(1))")
      let shown = try #require(await device.device.delivered.first)
      // The built-in extensions come first.
      #expect(shown.content.title == "Changed" && shown.content.body == "> Hello")
      #expect(String(decoding: shown.frame.payload, as: UTF8.self).contains("Changed") == false)
      await device.close()
      try await ScriptedCluster.with { _, url in
        let again = DeviceUnderTest(url) { $0.stateFile = path }
        try await again.device.start()
        #expect(await again.device.delivered == [shown] && again.story.isEmpty)
        await again.close()
      }
    }
  }

  private static let mark: ExtensionChain? = JSONPointer("/aps/alert").map { place in
    ExtensionChain(
      application: "com.example.shop", steps: [.init(name: "mark", work: SetAndCopy([(place: place, change: .prefix("> "))]))])
  }

  // MARK: Extensions that do not finish

  @Test(.onlyInAll("it is about the time of a call, which a machine that stands still uses up before it has begun"))
  func `when the time is up the best attempt is shown, else what was received, and a later result changes nothing`() async throws {
    let gate = Latch()
    let calls = Calls(last: ["n3": "Last chance"]) { request, content, attempt in
      switch request.identifier {
      case "n1": attempt.update { $0.title = "Attempt" }
      case "n4":
        // It ignores that its task is cancelled.
        await Task.detached { _ = await gate.waitUnlessCancelled() }.value
        content.title = "Too late"
        attempt.update { $0.title = "Too late" }
        return
      default: break
      }
      try await Calls.never()
    }
    // The best attempt of a machine that stands still for some seconds is in time.
    try await Self.with(calls, { $0.serviceExtensionMilliseconds = 20_000 }) { device, cluster, _ in
      for number in 1...4 { await cluster.send(Self.mutable(number)) }
      await eventually("all are shown: \(device.story)") { device.story.count == 4 }
      let titles = await device.titles
      // A machine that stands still leaves no time for the last chance.
      let last = titles["n3"] == "" ? "" : "Last chance"
      #expect(titles == ["n1": "Attempt", "n2": "", "n3": last, "n4": ""])
      #expect(Set(device.failures) == Set((1...4).map { "n\($0): its time was up" }))
      gate.open()
      await eventually("the last has returned") { calls.returned == 4 }
      try await device.device.userNotificationCenter.setBadgeCount(1)
      #expect(await device.titles == titles && device.story.count == 4)
      await device.close()
    }
  }

  @Test func `an extension that throws, or takes the text away, loses nothing`() async throws {
    let calls = Calls { request, content, attempt in
      switch request.identifier {
      case "n1": throw ExtensionFailure("it has no key")
      case "n2":
        attempt.update { $0.title = "Attempt" }
        throw ExtensionFailure("it has no key")
      case "n3": content.payload = ["aps": [:]]
      default: content.payload = .null
      }
    }
    try await Self.with(calls) { device, cluster, _ in
      for number in 1...4 { await cluster.send(Self.mutable(number)) }
      await eventually("all are shown: \(device.story)") { device.story.count == 4 }
      #expect(await device.titles == ["n1": "", "n2": "Attempt", "n3": "", "n4": ""])
      #expect(await device.device.delivered.allSatisfy { $0.content.body == "Hello" })
      #expect(device.failures.count == 4 && device.failures.filter { $0.hasSuffix("it has no key") }.count == 2, "\(device.failures)")
      await device.close()
    }
  }

  @Test func `an extension that blocks its thread stops neither the device nor its own deadline`() async throws {
    let gate = Latch()
    let calls = Calls { _, _, _ in gate.block() }
    try await Self.with(calls, { $0.serviceExtensionMilliseconds = 300 }) { device, cluster, _ in
      await cluster.send(Self.mutable(1), notify(2, id: "plain", revision: "2"))
      await eventually("both are shown: \(device.story)") { device.story.count == 2 }
      gate.open()
      await eventually("it has returned") { calls.returned == 1 }
      await device.close()
    }
  }

  /// A machine that stands still at that moment has it expire, which the cluster's rules say, too.
  @Test func `it is not waited for beyond the expiration of its notification`() async throws {
    let calls = Calls { _, _, _ in try await Calls.never() }
    try await Self.with(calls, { $0.serviceExtensionMilliseconds = 4 * hangMilliseconds }) { device, cluster, _ in
      await eventually("it is welcomed") { device.welcome != nil }
      let now = try #require(device.welcome)
      await cluster.send(Self.mutable(1, expiration: now / 1000 + 5))
      await eventually("it has ended: \(device.story)") { !device.story.isEmpty }
      #expect(["shown n1 \(NotificationStoreTests.revision(1))", "dropped n1 expired"].contains(device.story.first))
      await device.close()
    }
  }

  @Test func `the path of a file may be relative, and have any characters`() {
    let folder = FileManager.default.currentDirectoryPath
    #expect(ContentAttachment(identifier: "a", path: "a b.png").filePath == folder + "/a b.png")
    #expect(ContentAttachment(identifier: "a", path: "/tmp/ü%#?").filePath == "/tmp/ü%#?")
  }

  // MARK: Several notifications

  @Test func `of many notifications a few are with the extension at the same time, and all are shown`() async throws {
    let gate = Latch()
    let calls = Calls { _, content in
      await gate.waitUnlessCancelled()
      content.title = "Changed"
    }
    try await Self.with(calls) { device, cluster, _ in
      for number in 1...30 { await cluster.send(Self.mutable(number)) }
      await eventually("all are acknowledged") { await Self.acknowledged(cluster).count == 30 }
      await eventually("some are called") { calls.identifiers.count == ExtensionTurns.concurrency }
      gate.open()
      await eventually("all are shown") { device.story.count == 30 }
      #expect(calls.most == ExtensionTurns.concurrency && calls.identifiers.count == 30)
      #expect(await device.device.delivered.allSatisfy { $0.content.title == "Changed" })
      await device.close()
    }
  }

  @Test func `a newer notification of the identifier, and a removal, win over the one that the extension has`() async throws {
    let gate = Latch()
    let calls = Calls { request, content in
      if request.id.description != Self.id(2) { await gate.waitUnlessCancelled() }
      content.title = request.id.description
    }
    try await Self.with(calls) { device, cluster, _ in
      await cluster.send(Self.mutable(1, "a"), Self.mutable(3, "b"), Self.mutable(4, "c"))
      await eventually("it has them") { calls.identifiers.count == 3 }
      await cluster.send(
        Self.mutable(2, "a"),
        ["type": "remove", "delivery": 5, "identifiers": ["b"], "revision": .string(NotificationStoreTests.revision(5))])
      try await device.device.userNotificationCenter.add(
        NotificationRequest(identifier: "c", content: NotificationContent(title: "Local")))
      await eventually("the newer are shown: \(device.story)") { device.story.count == 3 }
      gate.open()
      await eventually("all have returned") { calls.returned == 4 }
      try await device.device.userNotificationCenter.setBadgeCount(1)
      #expect(Set(device.story) == ["shown a \(NotificationStoreTests.revision(2))", "removed b", "shown c local"])
      let listed = await device.device.delivered
      #expect(Set(listed.map(\.content.title)) == [Self.id(2), "Local"])
      await device.close()
    }
  }

  @Test func `what the extension had at the device's end, and what waited for it, passes it at the next start`() async throws {
    let calls = Calls { _, _, _ in try await Calls.never() }
    try await Self.with(calls) { device, cluster, path in
      for number in 1...20 { await cluster.send(Self.mutable(number)) }
      await eventually("all are acknowledged") { await Self.acknowledged(cluster).count == 20 }
      await device.close()
      #expect(device.story.isEmpty)
      let again = Calls { $1.title = "Changed" }
      try await ScriptedCluster.with { _, url in
        let second = DeviceUnderTest(url) { ($0.stateFile, $0.serviceExtension) = (path, again) }
        try await second.device.start()
        await eventually("all are shown") { second.story.count == 20 }
        #expect(await second.device.delivered.allSatisfy { $0.content.title == "Changed" })
        await second.close()
      }
    }
  }

  @Test func `a device that signs out while the extension works shows nothing of its notification, and closes`() async throws {
    let gate = Latch()
    let calls = Calls { _, content in
      await gate.waitUnlessCancelled()
      content.title = "Changed"
    }
    try await Self.with(calls) { device, cluster, _ in
      await cluster.send(Self.mutable(1))
      await eventually("the extension has it") { calls.identifiers == ["n1"] }
      let request = try await device.device.unregister()
      await cluster.expect("unregister")
      await cluster.send(["type": "accepted", "request": .string(request)])
      await eventually("it has left") {
        device.events.contains { if case .closed(_, _, reconnectAfter: nil) = $0 { true } else { false } }
      }
      gate.open()
      try await device.device.userNotificationCenter.add(
        NotificationRequest(identifier: "own", content: NotificationContent(title: "Own")))
      await eventually("it is shown: \(device.story)") { device.story.last == "shown own local" }
      #expect(!device.story.contains { $0.hasPrefix("shown n1") })
      #expect(await device.titles == ["own": "Own"])
      await device.close()
    }
  }

  // MARK: Attachments

  @Test func `files that it attaches are moved into the store, and one that cannot be is left out with the reason`() async throws {
    let content = "GIF89a" + String(repeating: "x", count: 1_000)
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-attach-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (photo, text) = (folder + "/a photo %ü.gif", folder + "/text")
    try content.write(toFile: photo, atomically: false, encoding: .utf8)
    try "no picture, but text of some length".write(toFile: text, atomically: false, encoding: .utf8)
    let calls = Calls { _, content in
      content.title = "Changed"
      content.attachments = [
        ContentAttachment(identifier: "photo", path: photo), ContentAttachment(identifier: "text", path: text),
        ContentAttachment(identifier: "none", url: "file:///none"), ContentAttachment(identifier: "far", url: "https://example.com/a.gif"),
        ContentAttachment(
          identifier: "other", .stored(Media(hash: try #require(MediaHash(String(repeating: "ab", count: 32))), type: .gif, size: 3))),
      ]
    }
    try await Self.with(calls) { device, cluster, path in
      await cluster.send(Self.mutable(1))
      await device.expect("shown n1 \(NotificationStoreTests.revision(1))")
      #expect(device.missing == ["text wrongType", "none disk", "far unreachable", "other wrongContent"])
      let read = try await device.device.withAttachment("photo", of: "n1") { try String(contentsOfFile: $0.path, encoding: .utf8) }
      await eventually("the photo is moved") { !FileManager.default.fileExists(atPath: photo) }
      #expect(read == content && FileManager.default.fileExists(atPath: text))
      await device.close()
      // It is the notification's until that goes.
      try await ScriptedCluster.with { _, url in
        let again = DeviceUnderTest(url) { $0.stateFile = path }
        try await again.device.start()
        #expect(await again.device.delivered.first?.attachments.map(\.attachment.identifier) == ["photo"])
        _ = try await again.device.withAttachment("photo", of: "n1") { $0.size }
        try await again.device.open("n1")
        await eventually("the file goes with it") {
          (try? FileManager.default.contentsOfDirectory(atPath: path + "-attachments"))?.isEmpty == true
        }
        await again.close()
      }
    }
  }

  // MARK: What decides

  @Test(arguments: 0..<(isComplete ? 20 : 4)) func `any history of turns keeps the order, the bound and the deadlines`(_ seed: UInt64)
    throws
  {
    var random = SeededRandom(seed: seed)
    var turns = ExtensionTurns()
    var (waiting, running): ([(Name, UInt64)], [Name]) = ([], [])
    var now: UInt64 = 0
    func notification(_ identifier: Name) throws -> DeliveredNotification {
      DeviceDatabase.listed(try notifyFrame(notify(1, id: "one", identifier.text, revision: "1")), at: 1)
    }
    for step in 0..<600 {
      now += UInt64.random(in: 0...2, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1:
        waiting.append((Name("\(step)"), now + 40))
        turns.add(.init(notification: try notification(Name("\(step)")), budget: CallBudget(at: now, lifetime: 40), deadline: now + 40))
      case 2:
        let next = running.count < ExtensionTurns.concurrency ? waiting.first?.0 : nil
        #expect(turns.begin()?.notification.identifier == next, "step \(step)")
        if let next {
          waiting.removeFirst()
          running.append(next)
        }
      case 3:
        guard let name = running.randomElement(using: &random) else { continue }
        running.removeAll { $0 == name }
        #expect(turns.end(try notification(name)) == true)
        #expect(turns.end(try notification(name)) == false)
      case 4:
        #expect(turns.expire(now: now).map(\.identifier) == waiting.filter { $0.1 <= now }.map(\.0), "step \(step)")
        waiting.removeAll { $0.1 <= now }
      default:
        let gone = Set((waiting.map(\.0) + running).filter { _ in Int.random(in: 0..<10, using: &random) == 0 })
        #expect(turns.keep { !gone.contains($0.identifier) }.map(\.identifier) == running.filter(gone.contains), "step \(step)")
        waiting.removeAll { gone.contains($0.0) }
        running.removeAll { gone.contains($0) }
      }
      #expect(turns.running.map(\.identifier) == running && turns.deadline == waiting.map(\.1).min(), "step \(step)")
    }
  }

  /// Frames, removals, endings of the extension and kills in any order.
  @Test(arguments: 0..<(isComplete ? 100 : 20)) func `each notification is shown once and changed, or a newer one has come`(_ seed: UInt64)
    throws
  {
    var random = SeededRandom(seed: seed)
    var store = NotificationStore()
    store.hasServiceExtension = true
    var stored = NaiveState()
    var shown: [String: Int] = [:]
    var newest: [Name: String] = [:]
    var lastShown: [Name: String] = [:]
    func note(_ outcome: NotificationStore.Outcome?) {
      switch outcome {
      case .shown(let notification), .updated(let notification):
        shown[notification.id, default: 0] += 1
        #expect(notification.frame.revision == newest[notification.identifier], "an old one was shown")
        lastShown[notification.identifier] = notification.frame.revision
      default: break
      }
    }
    for step in 0..<300 {
      let name: Name = "thread-\(Int.random(in: 0..<5, using: &random))"
      let revision = NotificationStoreTests.revision(Int.random(in: 0..<60, using: &random))
      switch Int.random(in: 0..<8, using: &random) {
      case 0:
        _ = store.remove([name], revision: Name(revision), now: 1)
        if revision > newest[name] ?? "" { newest[name] = revision }
      case 1 where step % 4 == 0:
        // Killed: what the extension had is shown without it.
        store = NotificationStore()
        store.hasServiceExtension = true
        store.restore(stored.state)
        for (notification, stored) in zip(store.extending, stored.state.extending) where stored.isBegun {
          note(store.endExtending(notification, changed: nil, now: 1))
        }
      case 2: if let next = store.extending.first { #expect(store.beginExtending(next) == true) }
      case 3, 4:
        guard let next = store.extending.randomElement(using: &random) else { continue }
        note(store.endExtending(next, changed: next.frame, now: 1))
        #expect(store.endExtending(next, changed: next.frame, now: 1) == nil)
      default:
        let frame = try notifyFrame(
          notify(1, id: Self.id(step), name.text, revision: revision, aps: ["alert": "Hello", "mutable-content": 1]))
        if case .extending = store.take(frame, now: 1) { newest[name] = revision }
      }
      stored.apply(store.takeChanges())
    }
    for next in store.extending { note(store.endExtending(next, changed: next.frame, now: 1)) }
    #expect(shown.values.allSatisfy { $0 == 1 } && store.extending.isEmpty)
    for notification in store.delivered { #expect(notification.frame.revision == lastShown[notification.identifier]) }
  }
}

/// A service extension that notes its calls.
private final class Calls: ServiceExtension {
  typealias Work = @Sendable (ExtensionRequest, inout MutableContent, BestAttempt) async throws -> Void

  private struct State {
    var identifiers: [Name] = []
    var running = 0
    var most = 0
    var returned = 0
  }

  private let state = Mutex(State())
  private let last: [Name: String]
  private let work: Work

  init(last: [Name: String] = [:], _ work: @escaping Work) { (self.last, self.work) = (last, work) }

  convenience init(_ work: @escaping @Sendable (ExtensionRequest, inout MutableContent) async throws -> Void) {
    self.init { request, content, _ in try await work(request, &content) }
  }

  var identifiers: [Name] { state.withLock { $0.identifiers } }
  var most: Int { state.withLock { $0.most } }
  var returned: Int { state.withLock { $0.returned } }

  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    state.withLock {
      $0.identifiers.append(request.identifier)
      $0.running += 1
      $0.most = max($0.most, $0.running)
    }
    defer {
      state.withLock {
        $0.running -= 1
        $0.returned += 1
      }
    }
    var content = bestAttempt.content
    try await work(request, &content, bestAttempt)
    return content
  }

  func serviceExtensionTimeWillExpire(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async -> MutableContent? {
    guard let last = last[request.identifier] else { return nil }
    bestAttempt.update { $0.title = last }
    return bestAttempt.content
  }

  /// Waits until its task is cancelled.
  static func never() async throws { try await untilCancelled() }
}

extension DeviceUnderTest {
  /// The titles in the list.
  fileprivate var titles: [Name: String] {
    get async { Dictionary(await device.delivered.map { ($0.identifier, $0.content.title) }) { first, _ in first } }
  }

  /// What the service extension has not finished, as `order-7: its time was up`.
  fileprivate var failures: [String] {
    events.compactMap { if case .extensionFailed(let notification, let reason) = $0 { "\(notification): \(reason)" } else { nil } }
  }

  /// The attachments that were left out, as `photo late`.
  fileprivate var missing: [String] {
    events.compactMap {
      if case .attachmentMissing(_, let attachment, let failure) = $0 { "\(attachment) \(failure.reason.rawValue)" } else { nil }
    }
  }

  /// The cluster's time in its welcome.
  fileprivate var welcome: Int64? {
    events.lazy.compactMap { if case .connected(let welcome, _) = $0 { welcome.now } else { nil } }.first
  }
}

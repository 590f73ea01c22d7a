import Extensions
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// A device in a process of its own, which ends by SIGKILL at a step of its disk.
@Suite(.timeLimit(.minutes(10))) struct KilledDeviceTests {
  private static let frames = [
    notify(1, id: "one", "a", revision: "1"), notify(2, id: "two", "b", revision: "2"),
    notify(3, id: "three", "c", revision: "3", trigger: ["type": "location", "region": ["identifier": "shop"]]),
    ["type": "remove", "delivery": 4, "identifiers": ["z"], "revision": "4"],
  ]

  /// Runs a device that is killed at a step, for each step of its disk, and once to its end. The short form takes every ninth step, from
  /// any of the first ones.
  private static func atSteps(_ run: (Int) async throws -> CarillonCommand.Result) async throws {
    let stride = isComplete ? 1 : 9
    var step = Int.random(in: 1...stride)
    while true {
      let result = try await run(step)
      guard result.status == 128 + SIGKILL else {
        #expect(result.status == 0, "step \(step): \(result.output) \(result.errors)")
        break
      }
      step += stride
    }
    #expect(step > 50, "only \(step) steps: does the disk count them?")
  }

  @Test func `a device that is killed at any step of its disk shows nothing twice and loses neither notification nor response`()
    async throws
  {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { cluster, url in
        await cluster.follow(with: Self.frames)
        try await Self.atSteps { try await Self.respond($0, command, cluster, url) }
      }
    }
  }

  /// The notification `b`, which the device expands.
  private static let expanded = [notify(1, id: "one", "b", revision: "1", category: "reply")]

  @Test(.onlyInAll("the short form kills a device at steps of two other histories"))
  func `a response that an extension had when its device was killed reaches cluster and application, and no extension again`()
    async throws
  {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { cluster, url in
        await cluster.follow(with: Self.expanded)
        try await Self.atSteps { step in
          let state = command.folder.appendingPathComponent("state-\(step)").path
          return try await Self.expand([url, DeviceUnderTest.token, state, "\(step)", "forwards"], command, cluster, url)
        }
      }
    }
  }

  @Test func `a response at which its extension trapped reaches cluster and application, marked as unanswered`() async throws {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { cluster, url in
        await cluster.follow(with: Self.expanded)
        let state = command.folder.appendingPathComponent("state").path
        let run = try await Self.expand([url, DeviceUnderTest.token, state, "0", "traps"], command, cluster, url)
        #expect(run.status > 128 && run.status != 128 + SIGKILL, "\(run.output) \(run.errors)")
        #expect(run.lines.contains { $0.hasPrefix("asked ") })
      }
    }
  }

  /// Two notifications that a service extension changes.
  private static let mutable = ["a", "b"].enumerated().map { number, identifier in
    notify(
      Int64(number + 1), id: NotificationID(high: 7, low: UInt64(number)).description, identifier, revision: "\(number + 1)",
      aps: ["alert": "Hello", "mutable-content": 1])
  }

  @Test func `what a service extension had when its device was killed is in the list, and is shown at most once`() async throws {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { cluster, url in
        await cluster.follow(with: Self.mutable)
        try await Self.atSteps { step in
          let state = command.folder.appendingPathComponent("state-\(step)").path
          return try await Self.extend([url, DeviceUnderTest.token, state, "\(step)", "extends"], command, cluster, url)
        }
      }
    }
  }

  @Test func `a notification at which its service extension trapped is shown without it at the next start`() async throws {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { cluster, url in
        await cluster.follow(with: Self.mutable)
        let state = command.folder.appendingPathComponent("state").path
        let run = try await Self.extend([url, DeviceUnderTest.token, state, "0", "extension-traps"], command, cluster, url)
        #expect(run.status > 128 && run.status != 128 + SIGKILL, "\(run.output) \(run.errors)")
        #expect(run.lines.contains("called b"))
      }
    }
  }

  @Test(.onlyInAll("the short form kills a device at steps of two other histories"))
  func `a locked phone and its watch that are killed at any step show nothing on both, and nothing is lost`() async throws {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { cluster, url in
        await cluster.follow(with: Array(Self.frames.prefix(2)))
        try await Self.atSteps { step in
          let path = command.folder.appendingPathComponent("state-\(step)").path
          let run = try await command.run(
            [url, DeviceUnderTest.token, path, "\(step)", "pair"], program: CarillonCommand.product("KilledDevice"))
          try await Self.pairAgain(after: run, path, step, cluster, url)
          return run
        }
      }
    }
  }

  /// Runs a phone and its watch again in this process, and compares what was shown.
  private static func pairAgain(
    after run: CarillonCommand.Result, _ path: String, _ step: Int, _ cluster: ScriptedCluster, _ url: String
  ) async throws {
    let second = try await cluster.nextSession()
    let channel = WatchTests.Channel()
    let watch = DeviceUnderTest(url) { ($0.stateFile, $0.watchConnectivity) = (path + "-watch", channel.end(of: .watch)) }
    let phone = DeviceUnderTest(url) {
      ($0.stateFile, $0.watchConnectivity, $0.state) = (path + "-phone", channel.end(of: .phone), .locked)
      $0.watchConnectivity?.leaseMilliseconds = hangMilliseconds
    }
    channel.state.withLock { ($0.phone, $0.watch) = (phone.device, watch.device) }
    try await watch.device.start()
    try await phone.device.start()
    await eventually("step \(step): all are acknowledged") {
      await cluster.frames("ack", of: second).contains { $0.text.contains("2") }
    }
    await eventually("step \(step): nothing is with the watch any more") { await phone.device.hasLentNothing }
    #expect(await Set(phone.device.delivered.map(\.identifier)) == ["a", "b"], "step \(step)")
    func shown(_ name: String, _ device: DeviceUnderTest) -> [String] {
      run.lines.filter { $0.hasPrefix("\(name) ") }.map { String($0.dropFirst(name.count + 1)) }
        + device.events.compactMap {
          switch $0 {
          case .shown(let notification), .updated(let notification): notification.id
          default: nil
          }
        }
    }
    let all = shown("phone", phone) + shown("watch", watch)
    #expect(Set(all).count == all.count, "step \(step): \(run.output), then \(phone.story) and \(watch.story)")
    await phone.close()
    await watch.close()
  }

  /// Runs a device with a service extension, and again in this process, and compares what was shown.
  private static func extend(
    _ arguments: [String], _ command: CarillonCommand, _ cluster: ScriptedCluster, _ url: String
  ) async throws -> CarillonCommand.Result {
    let run = try await command.run(
      arguments, environment: ["SWIFT_BACKTRACE": "enable=no"], program: CarillonCommand.product("KilledDevice"))
    func shown(_ word: String) -> Set<String> { Set(run.lines.filter { $0.hasPrefix(word) }.map { String($0.dropFirst(word.count)) }) }
    let second = try await cluster.nextSession()
    let again = CallNotes()
    let device = DeviceUnderTest(url) { ($0.stateFile, $0.serviceExtension) = (arguments[2], again) }
    try await device.device.start()
    await eventually("\(arguments): all are acknowledged") {
      await cluster.frames("ack", of: second).contains { $0.text.contains("2") }
    }
    await eventually("\(arguments): all are in the list") { await Set(device.device.delivered.map(\.identifier)) == ["a", "b"] }
    let identifiers = device.events.compactMap { event -> String? in
      switch event {
      case .shown(let notification), .updated(let notification): notification.id
      default: nil
      }
    }
    #expect(
      Set(identifiers).count == identifiers.count && Set(identifiers).isDisjoint(with: shown("shown ")), "\(arguments): \(run.output)")
    // The extension may be the reason for the end, so it does not get one again that it had.
    #expect(shown("called ").isDisjoint(with: again.called), "\(arguments): \(run.output)")
    for notification in await device.device.delivered where again.called.contains(notification.identifier.text) {
      #expect(notification.content.title == "Changed again")
    }
    await device.close()
    return run
  }

  /// Runs a device that likes the notification `b` in its panel, and again in this process, and compares what became of the response.
  private static func expand(
    _ arguments: [String], _ command: CarillonCommand, _ cluster: ScriptedCluster, _ url: String
  ) async throws -> CarillonCommand.Result {
    let first = await cluster.count
    let run = try await command.run(
      arguments, environment: ["SWIFT_BACKTRACE": "enable=no"], program: CarillonCommand.product("KilledDevice"))
    func ids(_ word: String) -> [String] { run.lines.filter { $0.hasPrefix(word) }.map { String($0.dropFirst(word.count)) } }
    let sent = await cluster.frames("response", of: first).compactMap { $0["response"]?.stringValue }
    let stored = Set(ids("responded ") + ids("asked ") + ids("told ") + sent)
    #expect(stored.count <= 1, "\(arguments): \(run.output)")

    let second = try await cluster.nextSession()
    let delegate = UnansweredDelegate()
    let device = DeviceUnderTest(url) {
      $0.stateFile = arguments[2]
      $0.delegate = delegate
      $0.contentExtensions = [ContentExtensionDeclaration(categories: ["reply"]) { delegate.makeExtension() }]
    }
    try await device.device.start()
    await cluster.expect("ack", of: second)
    // The notification leaves the list with its response.
    if await !device.device.delivered.map(\.identifier).contains("b") { await cluster.expect("response", of: second) }
    let frames = await cluster.frames("response", of: second)
    let again = frames.compactMap { $0["response"]?.stringValue }
    #expect(again.count <= 1 && stored.isSubset(of: again), "\(arguments): \(stored), then \(again)")
    let told = ids("told ")
    if told.isEmpty, !again.isEmpty { await eventually("\(arguments): the application has it") { !delegate.told.isEmpty } }
    #expect(delegate.told.map(\.id).allSatisfy { again.contains($0) } && delegate.told.count <= 1)
    // The cluster is told the same as the application.
    #expect(delegate.told.isEmpty || delegate.told.map(\.isUnanswered) == frames.map { $0["unanswered"] == true }, "\(arguments)")
    // Either the extension has forwarded it, or it is marked.
    if ids("asked ").isEmpty || run.status != 128 + SIGKILL && told.isEmpty {
      #expect(!delegate.told.contains { !$0.isUnanswered })
    }
    #expect(!delegate.hasExtension, "\(arguments): the extension got it again")
    #expect(await device.device.delivered.map(\.identifier).contains("b") == again.isEmpty, "\(arguments)")
    await device.close()
    return run
  }

  /// Runs the device until it is killed at a step, and again in this process, and compares what was shown and responded.
  private static func respond(
    _ step: Int, _ command: CarillonCommand, _ cluster: ScriptedCluster, _ url: String
  ) async throws -> CarillonCommand.Result {
    let path = command.folder.appendingPathComponent("state-\(step)").path
    let first = await cluster.count
    let run = try await command.run(
      [url, DeviceUnderTest.token, path, "\(step)"], program: CarillonCommand.product("KilledDevice"))
    guard run.status == 128 + SIGKILL else { return run }
    let acknowledged = await cluster.frames("ack", of: first).flatMap { $0["deliveries"]?.elements ?? [] }.compactMap(\.integerValue)
    let responses = await cluster.frames("response", of: first)
    let second = try await cluster.nextSession()

    let device = DeviceUnderTest(url) { $0.stateFile = path }
    try await device.device.start()
    // The acknowledgement has the number of the last frame when all were taken.
    await eventually("step \(step): all are acknowledged") {
      await cluster.frames("ack", of: second).contains { $0.text.contains("4") }
    }
    let shown = run.lines.filter { $0.hasPrefix("shown ") }
    let again = device.events.compactMap { event -> String? in
      switch event {
      case .shown(let notification), .updated(let notification): "shown \(notification.id)"
      default: nil
      }
    }
    #expect(Set(shown).count == shown.count && Set(shown).isDisjoint(with: again), "step \(step): \(shown), then \(again)")
    for (delivery, id) in [(1, "one"), (2, "two")] where acknowledged.contains(Int64(delivery)) {
      #expect(!again.contains("shown \(id)"), "step \(step): \(id) was acknowledged")
    }
    let stored = run.lines.filter { $0.hasPrefix("responded ") }.map { String($0.dropFirst("responded ".count)) }
    let expected = Set(stored + responses.compactMap { $0["response"]?.stringValue })
    if !expected.isEmpty { await cluster.expect("response", of: second) }
    let repeated = await cluster.frames("response", of: second).compactMap { $0["response"]?.stringValue }
    #expect(expected.isSubset(of: repeated) && repeated.count <= 1, "step \(step): \(expected), then \(repeated)")
    // Opening takes a notification off the list, in the transaction that stores the response.
    let listed = await device.device.delivered.map(\.identifier)
    #expect(Set(listed).subtracting(["tea"]) == (repeated.isEmpty ? ["a", "b"] : ["a"]), "step \(step)")
    #expect(listed.contains("tea") || !run.lines.contains("added"), "step \(step): the local request is lost")
    #expect(await device.device.pending.map(\.identifier) == ["c"], "step \(step)")
    await device.close()
    return run
  }
}

extension Device {
  /// Whether nothing is with the watch that it could still show.
  fileprivate var hasLentNothing: Bool { leases.deadline == nil }
}

/// A service extension that notes its calls.
private final class CallNotes: ServiceExtension {
  private let state = Mutex<Set<String>>([])

  var called: Set<String> { state.withLock { $0 } }

  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    _ = state.withLock { $0.insert(request.identifier.text) }
    bestAttempt.update { $0.title = "Changed again" }
    return bestAttempt.content
  }
}

/// A delegate that notes responses, and whether an extension was made.
private final class UnansweredDelegate: UserNotificationCenterDelegate {
  func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions { .all }

  private let state = Mutex<(told: [NotificationResponse], hasExtension: Bool)>(([], false))

  var told: [NotificationResponse] { state.withLock { $0.told } }
  var hasExtension: Bool { state.withLock { $0.hasExtension } }

  func makeExtension() -> any ContentExtension {
    state.withLock { $0.hasExtension = true }
    return NoExtension()
  }

  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    state.withLock { $0.told.append(response) }
  }

  private final class NoExtension: ContentExtension {
    func didReceive(_ notification: DeliveredNotification, in context: ContentExtensionContext) {}
  }
}

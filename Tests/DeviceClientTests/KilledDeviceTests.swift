import DeviceClient
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

/// A device in a process of its own, which ends by SIGKILL at a step of its disk.
@Suite(.timeLimit(.minutes(10))) struct KilledDeviceTests {
  private static let frames = [
    notify(1, id: "one", "a", revision: "1"), notify(2, id: "two", "b", revision: "2"),
    notify(3, id: "three", "c", revision: "3", trigger: ["type": "location", "region": ["identifier": "shop"]]),
    ["type": "remove", "delivery": 4, "identifiers": ["z"], "revision": "4"],
  ]

  @Test func `a device that is killed at any step of its disk shows nothing twice and loses neither notification nor response`()
    async throws
  {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { cluster, url in
        await cluster.follow(with: Self.frames)
        var step = 1
        while try await !Self.isDone(step, command, cluster, url) { step += 1 }
        #expect(step > 50, "only \(step) steps: does the disk count them?")
      }
    }
  }

  /// The notification `b`, which the device expands.
  private static let expanded = [notify(1, id: "one", "b", revision: "1", category: "reply")]

  @Test func `a response that an extension had when its device was killed reaches cluster and application, and no extension again`()
    async throws
  {
    try await CarillonCommand.with { command in
      try await ScriptedCluster.with { cluster, url in
        await cluster.follow(with: Self.expanded)
        var step = 1
        while true {
          let arguments = [url, DeviceUnderTest.token, command.folder.appendingPathComponent("state-\(step)").path, "\(step)", "forwards"]
          let run = try await Self.expand(arguments, command, cluster, url)
          guard run.status == 128 + SIGKILL else {
            #expect(run.status == 0, "step \(step): \(run.output) \(run.errors)")
            break
          }
          step += 1
        }
        #expect(step > 50, "only \(step) steps: does the disk count them?")
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

    let second = await cluster.count
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
    let again = await cluster.frames("response", of: second).compactMap { $0["response"]?.stringValue }
    #expect(again.count <= 1 && stored.isSubset(of: again), "\(arguments): \(stored), then \(again)")
    let told = ids("told ")
    if told.isEmpty, !again.isEmpty { await eventually("\(arguments): the application has it") { !delegate.told.isEmpty } }
    #expect(delegate.told.map(\.id).allSatisfy { again.contains($0) } && delegate.told.count <= 1)
    // Either the extension has forwarded it, or it is marked.
    if ids("asked ").isEmpty || run.status != 128 + SIGKILL && told.isEmpty {
      #expect(!delegate.told.contains { !$0.isUnanswered })
    }
    #expect(!delegate.hasExtension, "\(arguments): the extension got it again")
    #expect(await device.device.delivered.map(\.identifier).contains("b") == again.isEmpty, "\(arguments)")
    await device.close()
    return run
  }

  /// Runs the device until it is killed at a step, and again in this process; returns whether it ended before that step.
  private static func isDone(_ step: Int, _ command: CarillonCommand, _ cluster: ScriptedCluster, _ url: String) async throws -> Bool {
    let path = command.folder.appendingPathComponent("state-\(step)").path
    let first = await cluster.count
    let run = try await command.run(
      [url, DeviceUnderTest.token, path, "\(step)"], program: CarillonCommand.product("KilledDevice"))
    guard run.status == 128 + SIGKILL else {
      #expect(run.status == 0, "step \(step): \(run.output) \(run.errors)")
      return true
    }
    let acknowledged = await cluster.frames("ack", of: first).flatMap { $0["deliveries"]?.elements ?? [] }.compactMap(\.integerValue)
    let responses = await cluster.frames("response", of: first)
    let second = await cluster.count

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
    return false
  }
}

/// A delegate that notes responses, and whether an extension was made.
private final class UnansweredDelegate: UserNotificationCenterDelegate {
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

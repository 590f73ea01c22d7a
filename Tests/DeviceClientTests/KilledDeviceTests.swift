import DeviceClient
import Foundation
import JSON
import Notifications
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

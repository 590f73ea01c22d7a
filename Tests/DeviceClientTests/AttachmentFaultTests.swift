import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// A folder of attachments whose process is killed, or whose disk is full, at any step.
@Suite(.timeLimit(.minutes(10))) struct AttachmentFaultTests {
  /// What the cluster sends, and what the program attaches.
  private static let sent = AttachmentStoreTests.Photo()
  private static let own = AttachmentStoreTests.Photo("GIF89a" + String(repeating: "y", count: 2_000))

  @Test(arguments: ["attaches", "attaches-full", "attaches-full-once"])
  func `a folder of attachments that fails at any step loses neither a notification nor a file, and keeps nothing else`(
    _ mode: String
  ) async throws {
    try await CarillonCommand.with { command in
      try await ScriptedServer.with({ _ in AttachmentStoreTests.reply(Self.sent.content) }) { _, port in
        try await ScriptedCluster.with { cluster, url in
          await cluster.follow(with: [AttachmentStoreTests.attached(1, "one", Self.sent.attachment("http://127.0.0.1:\(port)/a"))])
          var step = 1
          while true {
            let path = command.folder.appendingPathComponent("state-\(step)").path
            try Self.own.content.write(toFile: path + "-photo", atomically: false, encoding: .utf8)
            let run = try await command.run(
              [url, DeviceUnderTest.token, path, "\(step)", mode], program: CarillonCommand.product("KilledDevice"))
            try await Self.judge(run, path, "\(mode), step \(step): \(run.output)", cluster, url)
            if mode == "attaches" {
              guard run.status == 128 + SIGKILL else { break }
            } else {
              #expect(run.status == 0, "step \(step): \(run.output) \(run.errors)")
              let left = Set(run.lines.filter { $0.hasPrefix("left ") && !$0.hasPrefix("left .") })
              #expect(left == (run.lines.contains("missing disk") ? [] : ["left \(Self.sent.hash)"]), "step \(step): \(run.output)")
              // No step has failed that counts: removals never do.
              guard run.lines.contains(where: { $0.hasPrefix("missing") || $0.hasPrefix("refused") }) else { break }
            }
            step += 1
          }
          #expect(step > 8, "only \(step) steps: does the folder count them?")
        }
      }
    }
  }

  /// Runs the device again in this process, without faults.
  private static func judge(
    _ run: CarillonCommand.Result, _ path: String, _ what: String, _ cluster: ScriptedCluster, _ url: String
  ) async throws {
    #expect(run.lines.allSatisfy { !$0.hasPrefix("missing") || $0 == "missing disk" }, "\(what)")
    #expect(run.lines.allSatisfy { !$0.hasPrefix("refused") || $0 == "refused attachment" }, "\(what)")
    let second = await cluster.count
    let device = DeviceUnderTest(url) { ($0.stateFile, $0.attachmentMilliseconds) = (path, 60_000) }
    try await device.device.start()
    // The connection of the killed process may be taken after its end, and then it is the first of these sessions.
    await eventually("\(what): the notification is acknowledged") {
      for session in second..<max(second, await cluster.count) {
        if await !cluster.frames("ack", of: session).isEmpty { return true }
      }
      return false
    }
    await eventually("\(what): the attachment is there") {
      (try? await device.device.withAttachment("photo", of: "one") { try String(contentsOfFile: $0.path, encoding: .utf8) }) == sent.content
    }
    let isListed = await device.device.delivered.contains { $0.identifier == "tea" }
    if isListed {
      let read = try await device.device.withAttachment("photo", of: "tea") { try String(contentsOfFile: $0.path, encoding: .utf8) }
      #expect(read == own.content, "\(what)")
    } else if !run.lines.contains("removing") || run.lines.contains("refused attachment") {
      #expect(try String(contentsOfFile: path + "-photo", encoding: .utf8) == own.content, "\(what): the program's file is lost")
    }
    let told = run.lines.filter { $0.hasPrefix("shown") } + device.story.filter { $0.hasPrefix("shown one") }
    #expect(told.count <= 1, "\(what): \(device.story)")
    let files = Set(try FileManager.default.contentsOfDirectory(atPath: path + "-attachments"))
    #expect(files == Set([sent.hash] + (isListed ? [own.hash] : [])), "\(what)")
    await device.close()
  }

  // MARK: Any history

  @Test(arguments: 0..<(isComplete ? 2 : 1))
  func `a device that is killed at any step of any history can open what is listed, and keeps nothing else`(
    _ seed: UInt64
  ) async throws {
    let history = AttachmentHistory(seed: seed, rounds: 5)
    try await CarillonCommand.with { command in
      var step = 1
      while true {
        let path = command.folder.appendingPathComponent("state-\(step)").path
        try history.write(beside: path)
        let run = try await command.run(
          ["ws://127.0.0.1:1/", DeviceUnderTest.token, path, "\(step)", "history"], program: CarillonCommand.product("KilledDevice"))
        try await Self.judge(run, history, path, "step \(step): \(run.output) \(run.errors)")
        guard run.status == 128 + SIGKILL else {
          #expect(run.status == 0, "step \(step): \(run.output) \(run.errors)")
          break
        }
        step += 1
      }
      #expect(step > 100, "only \(step) steps: do the folder and the database count them?")
    }
  }

  /// Runs the device again in this process, and compares what is listed with the model.
  private static func judge(_ run: CarillonCommand.Result, _ history: AttachmentHistory, _ path: String, _ what: String) async throws {
    #expect(!run.lines.contains { $0.hasPrefix("error") }, "\(what)")
    let begun = run.lines.count { $0 == "round" }
    let (before, after) = (history.listed(after: begun - 1), history.listed(after: begun))
    let device = DeviceUnderTest("ws://127.0.0.1:1/") { $0.stateFile = path }
    try await device.device.start()
    let listed = try await contents(of: device.device)
    for identifier in AttachmentHistory.identifiers {
      let content = listed[identifier]
      #expect(content == before[identifier] || content == after[identifier], "\(what): \(identifier)")
      if content != after[identifier], let source = history.source(of: identifier, round: begun - 1, beside: path) {
        #expect(FileManager.default.fileExists(atPath: source), "\(what): the program's file is lost")
      }
    }
    let files = Set((try? FileManager.default.contentsOfDirectory(atPath: path + "-attachments")) ?? [])
    #expect(files == Set(listed.values.compactMap { $0 }.map { AttachmentStoreTests.Photo($0).hash }), "\(what)")
    await device.close()
  }

  /// What each notification has as its attachment, read from the store.
  private static func contents(of device: Device) async throws -> [Name: String?] {
    var contents: [Name: String?] = [:]
    for notification in await device.delivered {
      let content: String? =
        notification.attachments.isEmpty
        ? nil
        : try await device.withAttachment("photo", of: notification.identifier) { try String(contentsOfFile: $0.path, encoding: .utf8) }
      contents[notification.identifier] = .some(content)
    }
    return contents
  }

  @Test(arguments: 0..<(isComplete ? 6 : 3)) func `requests and removals at the same time leave each listed attachment, and no other file`(
    _ seed: UInt64
  ) async throws {
    let history = AttachmentHistory(seed: 100 + seed, rounds: 15)
    try await TestFolder.with { folder in
      try await ScriptedServer.with({ request in
        // The path is the number of the content.
        let number = request.split(separator: " ")[1].dropFirst().first?.wholeNumberValue
        return AttachmentStoreTests.reply(number.map { AttachmentHistory.contents[$0] } ?? "")
      }) { _, port in
        try await ScriptedCluster.with { cluster, url in
          let path = folder.path + "/state"
          let device = DeviceUnderTest(url) { ($0.stateFile, $0.attachmentMilliseconds) = (path, 60_000) }
          try await device.device.start()
          await cluster.expect("hello")
          try history.write(beside: path)
          for round in history.rounds.indices {
            await withTaskGroup { group in
              for (place, step) in history.rounds[round].enumerated() {
                group.addTask { await Self.run(step, round * 10 + place, round, device.device, cluster, "http://127.0.0.1:\(port)", path) }
              }
            }
            let listed = history.listed(after: round + 1)
            await eventually("round \(round) of \(seed) is done") { (try? await Self.contents(of: device.device)) == listed }
            let hashes = Set(listed.values.compactMap { $0 }.map { AttachmentStoreTests.Photo($0).hash })
            await eventually("the files are those of round \(round) of \(seed)") {
              (try? FileManager.default.contentsOfDirectory(atPath: path + "-attachments")).map { Set($0) } ?? [] == hashes
            }
          }
          await device.close()
        }
      }
    }
  }

  /// Takes a step: the notifications with an even number come from the cluster.
  private static func run(
    _ step: AttachmentHistory.Step, _ number: Int, _ round: Int, _ device: Device, _ cluster: ScriptedCluster, _ files: String,
    _ path: String
  ) async {
    switch step {
    case .add(let identifier, let content) where identifier % 2 == 0:
      let attachments = content.map { [AttachmentStoreTests.Photo(AttachmentHistory.contents[$0]).attachment("\(files)/\($0)")] } ?? []
      var frame = notify(
        Int64(number), id: "id-\(number)", AttachmentHistory.identifiers[identifier].text, revision: "\(1_000 + number)")
      frame.set("attachments", .array(attachments))
      await cluster.send(frame)
    case .add(let identifier, let content):
      let name = AttachmentHistory.identifiers[identifier]
      let attachments = content.map { _ in [AttachmentSource(identifier: "photo", path: AttachmentHistory.source(round, identifier, path))]
      }
      do {
        try await device.userNotificationCenter.add(
          NotificationRequest(identifier: name, content: NotificationContent(title: "Tea"), attachments: attachments ?? []))
      } catch { Issue.record("\(error)") }
    case .remove(let identifier): await device.remove([AttachmentHistory.identifiers[identifier]])
    case .open(let identifier):
      let name = AttachmentHistory.identifiers[identifier]
      guard await device.delivered.contains(where: { $0.identifier == name && !$0.attachments.isEmpty }) else { return }
      do {
        let content = try await device.withAttachment("photo", of: name) { try String(contentsOfFile: $0.path, encoding: .utf8) }
        #expect(AttachmentHistory.contents.contains(content))
      } catch { Issue.record("\(error)") }
    }
  }

  // MARK: One order of events

  @Test func `a file stays until the removal of its last notification is durable`() async throws {
    try await Self.withTwoRequests { device, path, files in
      let holder = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      try holder.run("BEGIN IMMEDIATE")
      await device.remove(["tea"])
      // The closing looks for files that may go.
      try await device.withAttachment("photo", of: "other") { _ in }
      await eventually("nothing uses the folder") { await device.attachmentTasks == 0 }
      #expect(files().count == 2)
      try holder.run("ROLLBACK")
      holder.close()
      await eventually("it is gone") { files() == [AttachmentStoreTests.Photo(AttachmentHistory.contents[1]).hash] }
    }
  }

  @Test func `a file that is being copied stays when the last notification with its content goes`() async throws {
    try await Self.withTwoRequests { device, path, files in
      let photo = AttachmentHistory.contents[0]
      try photo.write(toFile: path + "-photo", atomically: false, encoding: .utf8)
      let disk = try #require(await device.attachmentDisk).loop
      // The disk looks at the program's file, copies it, and gives it its name. It stops before each.
      let looking = Stop(disk)
      await looking.isReached()
      let adding = Task { try await device.userNotificationCenter.add(Self.request("cake", path + "-photo")) }
      await eventually("the request is copied") { await device.attachmentTasks > 0 }
      let copying = Stop(disk)
      looking.end()
      await copying.isReached()
      _ = await device.delivered
      let naming = Stop(disk)
      copying.end()
      await naming.isReached()
      _ = await device.delivered
      await device.remove(["tea"])
      try await device.userNotificationCenter.setBadgeCount(1)
      _ = await device.delivered
      naming.end()
      try await adding.value
      let read = try await device.withAttachment("photo", of: "cake") { try String(contentsOfFile: $0.path, encoding: .utf8) }
      #expect(read == photo && files().count == 2)
      await device.remove(["cake", "other"])
      await eventually("all are gone") { files().isEmpty }
    }
  }

  @Test func `a file of the store that the program attaches again is shared, and stays`() async throws {
    try await Self.withTwoRequests { device, _, files in
      try await device.withAttachment("photo", of: "tea") { file in
        try await device.userNotificationCenter.add(Self.request("cake", file.path))
      }
      await device.remove(["tea"])
      try await device.userNotificationCenter.setBadgeCount(1)
      let read = try await device.withAttachment("photo", of: "cake") { try String(contentsOfFile: $0.path, encoding: .utf8) }
      #expect(read == AttachmentHistory.contents[0] && files().count == 2)
    }
  }

  @Test func `the program's file is moved, also when the device is closed while its request is stored`() async throws {
    try await Self.withTwoRequests { device, path, _ in
      let source = path + "-photo"
      try AttachmentHistory.contents[2].write(toFile: source, atomically: false, encoding: .utf8)
      let holder = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      try holder.run("BEGIN IMMEDIATE")
      let adding = Task { try await device.userNotificationCenter.add(Self.request("cake", source)) }
      await eventually("it is copied") { await device.delivered.count == 3 }
      let closing = Task { await device.close() }
      await eventually("the device is being closed") { await device.isClosing }
      #expect(FileManager.default.fileExists(atPath: source))
      try holder.run("ROLLBACK")
      holder.close()
      try await adding.value
      await closing.value
      #expect(!FileManager.default.fileExists(atPath: source))
    }
  }

  /// Runs a test with a device that lists `tea` and `other`, each with a file.
  private static func withTwoRequests(
    _ body: @escaping @Sendable (Device, _ path: String, _ files: @escaping @Sendable () -> Set<String>) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/state"
      let device = DeviceUnderTest("ws://127.0.0.1:1/") { ($0.stateFile, $0.stateLimits.busyMilliseconds) = (path, 3_600_000) }
      try await device.device.start()
      for (identifier, content) in zip(["tea", "other"] as [Name], AttachmentHistory.contents) {
        try content.write(toFile: path + "-photo", atomically: false, encoding: .utf8)
        try await device.device.userNotificationCenter.add(request(identifier, path + "-photo"))
      }
      try await body(device.device, path) { Set((try? FileManager.default.contentsOfDirectory(atPath: path + "-attachments")) ?? []) }
      await device.close()
    }
  }

  private static func request(_ identifier: Name, _ path: String) -> NotificationRequest {
    NotificationRequest(
      identifier: identifier, content: NotificationContent(title: "Tea"), attachments: [AttachmentSource(identifier: "photo", path: path)])
  }
}

extension Device {
  /// Whether its end has begun.
  fileprivate var isClosing: Bool { commandTimer == nil }
}

/// Stops a thread in the middle of its queue.
private final class Stop: Sendable {
  private let (reached, gate) = (Latch(), Latch())

  init(_ loop: EventLoop) {
    loop.execute {
      self.reached.open()
      self.gate.block()
    }
  }

  func isReached() async { await reached.wait() }

  func end() { gate.open() }
}

import EventLoop
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// The end of a device, while other tasks run.
@Suite(.timeLimit(.minutes(10))) struct DeviceEndTests {
  /// The task that closes does not prefer the loop, as a program's does not. So each of its awaits may let other jobs of the loop run first.
  @Test(arguments: 0..<16) func `the store closes, whenever its last task ends`(_ turns: Int) async throws {
    let device = DeviceUnderTest("ws://127.0.0.1:1/")
    let isClosed = Mutex(false)
    Task.detached {
      await device.device.closeStore(whileATaskEndsAfter: turns)
      isClosed.withLock { $0 = true }
    }
    await eventually("it is closed") { isClosed.withLock { $0 } }
    await device.loop.close()
  }

  @Test(arguments: 0..<8) func `calls during the end return, and what they have stored is there at the next start`(
    _ round: Int
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        let under = DeviceUnderTest(url) { $0.stateFile = folder.path + "/state" }
        try await under.device.start()
        await cluster.expect("hello")
        let center = under.device.userNotificationCenter
        let added = await withTaskGroup(of: Name?.self) { group in
          for number in 0..<40 {
            group.addTask {
              guard number % 16 != 8 + round else {
                await under.device.close()
                return nil
              }
              let request = NotificationRequest(identifier: Name("n\(number)"), content: NotificationContent(title: "Tea"))
              do { try await center.add(request) } catch { return nil }
              return request.identifier
            }
          }
          return await group.reduce(into: Set<Name>()) { names, name in if let name { names.insert(name) } }
        }
        await #expect(throws: DeviceError.self) { try await center.setBadgeCount(1) }
        await under.close()
        let again = DeviceUnderTest(url) { $0.stateFile = folder.path + "/state" }
        try await again.device.start()
        #expect(added.isSubset(of: Set(await again.device.delivered.map(\.identifier))))
        await again.close()
      }
    }
  }

  @Test func `a locked phone that is closed with a batch or an attachment under way shows it, and lends its watch nothing`() async throws {
    try await TestFolder.with { folder in
      try await ScriptedServer.with({ _ in .silence }) { server, port in
        try await ScriptedCluster.with { cluster, url in
          let path = folder.path + "/state"
          let messages = Mutex(0)
          let phone = DeviceUnderTest(url) {
            ($0.stateFile, $0.stateLimits.busyMilliseconds, $0.state) = (path, 3_600_000, .locked)
            $0.attachmentMilliseconds = 3_600_000
            $0.watchConnectivity = WatchConnectivity(.phone) { _ in messages.withLock { $0 += 1 } }
          }
          try await phone.device.start()
          await cluster.expect("hello")
          let photo = AttachmentStoreTests.Photo().attachment("http://127.0.0.1:\(port)/a")
          await cluster.send(AttachmentStoreTests.attached(1, "one", photo))
          await eventually("its attachment is being fetched") { await server.requests.count == 1 }
          let holder = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
          try holder.run("BEGIN IMMEDIATE")
          await cluster.send(notify(2, id: "two", revision: "2"), notify(3, id: "three", revision: "3"))
          await eventually("the others are being stored") { await phone.device.delivered.count == 3 }
          let closing = Task { await phone.device.close() }
          await eventually("it is being closed") { await phone.device.hasNoTimers }
          try holder.run("ROLLBACK")
          holder.close()
          await closing.value
          #expect(Set(phone.story) == ["shown one 1", "shown two 2", "shown three 3"] && phone.story.count == 3)
          #expect(messages.withLock { $0 } == 0)
          // A message of the watch, and the program, find nothing to show.
          let count = phone.events.count
          let showing = NotificationShowing(identifier: "two", id: "two", takenAt: 1_700_000_000_000)
          await phone.device.didReceiveMessageData(WatchMessage.claim(showing, claim: "c").bytes)
          await phone.device.setState(.foreground)
          #expect(phone.events.count == count && messages.withLock { $0 } == 0)
          await phone.close()
        }
      }
    }
  }

  @Test func `a device that has signed out still shows local notifications, and closes`() async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        let under = DeviceUnderTest(url) { $0.stateFile = folder.path + "/state" }
        try await under.device.start()
        let request = try await under.device.unregister()
        await cluster.expect("unregister")
        await cluster.send(["type": "accepted", "request": .string(request)])
        await eventually("it has left") {
          under.events.contains { if case .closed(_, _, reconnectAfter: nil) = $0 { true } else { false } }
        }
        let added = Task {
          try await under.device.userNotificationCenter.add(
            NotificationRequest(identifier: "tea", content: NotificationContent(title: "Tea")))
        }
        await eventually("it is shown: \(under.story)") { under.story.last == "shown tea local" }
        await under.close()
        try await added.value
      }
    }
  }

  @Test func `a sign-out without a connection outlives the program, unless another person has the device then`() async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        func device(_ user: Name) -> DeviceUnderTest {
          DeviceUnderTest(url) { ($0.stateFile, $0.hello.user) = (folder.path + "/state", user) }
        }
        func signOut() async throws -> String {
          await cluster.answer(with: nil)
          let device = device("ada")
          try await device.device.start()
          let request = try await device.device.unregister()
          await device.close()
          await cluster.answer(with: ScriptedCluster.welcome())
          return request
        }
        let request = try await signOut()
        var session = try await cluster.nextSession()
        let again = device("ada")
        try await again.device.start()
        #expect(await cluster.expect("unregister", of: session).first?["request"]?.stringValue == request)
        await cluster.send(["type": "accepted", "request": .string(request)], to: session)
        await eventually("it has signed out") { again.story.last == "unregistered" }
        await again.close()
        // The file knows that it is confirmed. Another person has the device, so that it is not signed out again.
        for user: Name in ["ada", "bob", "ada"] {
          session = try await cluster.nextSession()
          let later = device(user)
          try await later.device.start()
          // Before the hello the change would be part of that.
          await cluster.expect("hello", of: session)
          try await later.device.setAuthorization(Authorization(status: .authorized))
          await cluster.expect("settings", of: session)
          #expect(await cluster.frames("unregister", of: session).isEmpty, "\(user)")
          await later.close()
          if user == "ada" { _ = try await signOut() }
        }
      }
    }
  }

  @Test func `a device that is closed while it starts is closed`() async throws {
    for turns in 0..<30 {
      try await TestFolder.with { folder in
        try await ScriptedCluster.with { _, url in
          let under = DeviceUnderTest(url) { $0.stateFile = folder.path + "/state" }
          let started = Task { try? await under.device.start() }
          for _ in 0..<turns { _ = await under.device.badge }
          await under.device.close()
          await started.value
          // One that has not begun to start yet is not closed.
          await under.close()
          // Its end has freed the file.
          let next = DeviceUnderTest(url) { $0.stateFile = folder.path + "/state" }
          try await next.device.start()
          await next.close()
        }
      }
    }
  }
}

extension Device {
  /// Whether its end has come to the notifications that it still has.
  fileprivate var hasNoTimers: Bool { commandTimer == nil && watchTimer == nil }

  /// Closes the store of attachments while the last task that uses it ends, so many turns of the loop later.
  fileprivate func closeStore(whileATaskEndsAfter turns: Int) async {
    attachmentTasks += 1
    endTask(after: turns)
    await closeAttachments()
  }

  private func endTask(after turns: Int) {
    guard turns > 0 else { return attachmentTaskEnded() }
    loop.execute { self.assumeIsolated { $0.endTask(after: turns - 1) } }
  }
}

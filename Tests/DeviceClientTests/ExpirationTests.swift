import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// Notifications that expire between the storing and the showing.
@Suite(.timeLimit(.minutes(10))) struct ExpirationTests {
  /// The cluster's time at the first welcome, in milliseconds.
  private static let start: Int64 = 1_700_000_000_000

  /// A notification that expires an hour after the start, or never.
  private static func frame(_ number: Int64, expires: Bool = true) -> JSONValue {
    notify(number, id: "id-\(number)", "n\(number)", revision: "\(number)", expiration: expires ? start / 1_000 + 3_600 : 0)
  }

  private static func with(_ body: (_ path: String, _ cluster: ScriptedCluster, _ url: String) async throws -> Void) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in try await body(folder.path + "/state", cluster, url) }
    }
  }

  /// Two hours later, by the cluster's time: the device learns it from its next welcome.
  private static func passHours(_ cluster: ScriptedCluster, _ device: DeviceUnderTest) async {
    await cluster.answer(with: ScriptedCluster.welcome(now: start + 7_200_000))
    await cluster.cut()
    await eventually("it is connected again") { device.connections == 2 }
  }

  /// The messages of one end of the program's channel.
  private final class Sent: Sendable {
    private let noted = Mutex<[WatchMessage]>([])
    var messages: [WatchMessage] { noted.withLock { $0 } }

    func end(of side: WatchConnectivity.Side) -> WatchConnectivity {
      var connectivity = WatchConnectivity(side) { data in
        guard let message = WatchMessage(data) else { return }
        self.noted.withLock { $0.append(message) }
      }
      // The tests send each answer.
      connectivity.leaseMilliseconds = 3_600_000
      return connectivity
    }

    /// The showings that were offered, by their identifiers.
    var offered: [Name: NotificationShowing] {
      var offered: [Name: NotificationShowing] = [:]
      for case .offer(let showing, _, _) in messages { offered[showing.identifier] = showing }
      return offered
    }
  }

  @Test func `what waits for its attachments is not shown after its expiration, and leaves the list`() async throws {
    try await Self.with { path, cluster, url in
      let device = DeviceUnderTest(url) { ($0.stateFile, $0.attachmentMilliseconds) = (path, 3_600_000) }
      try await device.device.start()
      await cluster.expect("hello")
      // Their links are not good any more, and the cluster gives new ones late.
      for (number, expires) in [(1, true), (2, false)] as [(Int64, Bool)] {
        var frame = Self.frame(number, expires: expires)
        let photo = AttachmentStoreTests.Photo("GIF89a\(number)")
        frame.set("attachments", .array([photo.attachment("http://127.0.0.1/x", expires: 0)]))
        await cluster.send(frame)
      }
      await cluster.expect("link", count: 2)
      #expect(await device.device.delivered.count == 2)
      await Self.passHours(cluster, device)
      for link in await cluster.expect("link", of: 1, count: 2) {
        let request = try #require(link["request"])
        await cluster.send(["type": "refused", "request": request, "reason": "UnknownMedia", "field": "hash"], to: 1)
      }
      await eventually("both are told: \(device.story)") { Set(device.story) == ["dropped n1 expired", "shown n2 2"] }
      #expect(await device.device.delivered.map(\.identifier) == ["n2"])
      await device.close()
      let again = DeviceUnderTest(url) { $0.stateFile = path }
      try await again.device.start()
      #expect(await again.device.delivered.map(\.identifier) == ["n2"])
      await again.close()
    }
  }

  @Test func `what the watch has not claimed is not shown on the phone after its expiration`() async throws {
    try await Self.with { path, cluster, url in
      let sent = Sent()
      let phone = DeviceUnderTest(url) { ($0.stateFile, $0.state, $0.watchConnectivity) = (path, .locked, sent.end(of: .phone)) }
      try await phone.device.start()
      await cluster.expect("hello")
      await cluster.send(Self.frame(1), Self.frame(2, expires: false))
      await eventually("they are offered") { sent.offered.count == 2 }
      await Self.passHours(cluster, phone)
      await phone.device.setState(.background)
      await phone.expect("dropped n1 expired", "shown n2 2")
      #expect(await phone.device.delivered.map(\.identifier) == ["n2"])
      await phone.close()
    }
  }

  @Test func `a claim after the expiration gets no grant, and what the watch has not shown is not shown on the phone after it`()
    async throws
  {
    try await Self.with { path, cluster, url in
      let sent = Sent()
      let phone = DeviceUnderTest(url) { ($0.stateFile, $0.state, $0.watchConnectivity) = (path, .locked, sent.end(of: .phone)) }
      try await phone.device.start()
      await cluster.expect("hello")
      await cluster.send(Self.frame(1), Self.frame(2))
      await eventually("they are offered") { sent.offered.count == 2 }
      let (first, second) = (try #require(sent.offered["n1"]), try #require(sent.offered["n2"]))
      await phone.device.didReceiveMessageData(WatchMessage.claim(first, claim: "1").bytes)
      #expect(sent.messages.contains(.grant(first, claim: "1")))
      await Self.passHours(cluster, phone)
      await phone.device.didReceiveMessageData(WatchMessage.claim(second, claim: "2").bytes)
      #expect(sent.messages.contains(.gone(second)) && !sent.messages.contains(.grant(second, claim: "2")))
      await phone.device.didReceiveMessageData(WatchMessage.never(first).bytes)
      #expect(phone.story == ["dropped n2 expired", "dropped n1 expired"])
      #expect(await phone.device.delivered.isEmpty)
      await phone.close()
    }
  }

  @Test func `a watch does not show what its phone has granted after its expiration, and says so`() async throws {
    try await Self.with { path, _, url in
      let sent = Sent()
      let watch = DeviceUnderTest(url) { ($0.stateFile, $0.watchConnectivity) = (path, sent.end(of: .watch)) }
      try await watch.device.start()
      var showings: [NotificationShowing] = []
      for (number, expires) in [(1, true), (2, false)] as [(Int64, Bool)] {
        let showing = NotificationShowing(identifier: "n\(number)", id: "id-\(number)", takenAt: number)
        showings.append(showing)
        let frame = try notifyFrame(Self.frame(number, expires: expires))
        await watch.device.didReceiveMessageData(WatchMessage.offer(showing, frame, milliseconds: 3_600_000).bytes)
        let claims = sent.messages.compactMap { if case .claim(showing, let claim) = $0 { claim } else { nil } }
        await watch.device.didReceiveMessageData(WatchMessage.grant(showing, claim: try #require(claims.first)).bytes)
      }
      let answers: [WatchMessage] = [.never(showings[0]), .shown(showings[1])]
      await eventually("both are answered: \(sent.messages)") { answers.allSatisfy(sent.messages.contains) }
      #expect(watch.story == ["shown n2 2"])
      #expect(await watch.device.delivered.map(\.identifier) == ["n2"])
      await watch.close()
    }
  }

  @Test func `what expires while the watch stores it has one answer, that it is not shown`() async throws {
    try await Self.with { path, _, url in
      let sent = Sent()
      let watch = DeviceUnderTest(url) {
        ($0.stateFile, $0.watchConnectivity, $0.stateLimits.busyMilliseconds) = (path, sent.end(of: .watch), 3_600_000)
      }
      try await watch.device.start()
      let holder = try SQLiteConnection(path: path, busyMilliseconds: Int32(hangMilliseconds))
      try holder.run("BEGIN IMMEDIATE")
      let expiration = WallClock.seconds() + 3
      let showing = NotificationShowing(identifier: "n1", id: "id-1", takenAt: 1)
      let frame = try notifyFrame(notify(1, id: "id-1", "n1", revision: "1", expiration: expiration))
      await watch.device.didReceiveMessageData(WatchMessage.offer(showing, frame, milliseconds: 3_600_000).bytes)
      let claims = sent.messages.compactMap { if case .claim(showing, let claim) = $0 { claim } else { nil } }
      await watch.device.didReceiveMessageData(WatchMessage.grant(showing, claim: try #require(claims.first)).bytes)
      await eventually("it has expired") { WallClock.seconds() > expiration }
      try holder.run("ROLLBACK")
      holder.close()
      // After a machine has stood still for seconds it may have expired before.
      await eventually("it is answered: \(sent.messages)") { sent.messages.contains(.never(showing)) }
      try await watch.device.flush()
      await watch.device.didReceiveMessageData(WatchMessage.ask(showing).bytes)
      #expect(sent.messages.count { $0 == .never(showing) } == 2)
      #expect(!sent.messages.contains(.shown(showing)) && !sent.messages.contains(.cleared(showing)))
      #expect(await watch.device.delivered.isEmpty)
      await watch.close()
    }
  }
}

import EventLoop
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// What belongs to a person goes with the person.
@Suite(.timeLimit(.minutes(10))) struct PersonTests {
  private static func with(
    _ body: (_ device: (Name?) -> DeviceUnderTest, _ cluster: ScriptedCluster, _ path: String) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        let path = folder.path + "/state"
        try await body(
          { user in DeviceUnderTest(url) { ($0.stateFile, $0.hello.user, $0.commandMilliseconds) = (path, user, 20) } }, cluster, path)
      }
    }
  }

  private static func request(_ identifier: Name, _ trigger: NotificationTrigger? = nil) -> NotificationRequest {
    NotificationRequest(identifier: identifier, content: NotificationContent(title: "Tea"), trigger: trigger)
  }

  private static let place: JSONValue = [
    "type": "location", "region": ["identifier": "shop", "latitude": 52.5, "longitude": 13.4, "radius": 100],
  ]
  private static let hour = NotificationTrigger.timeInterval(3_600, repeats: false)

  /// Gives a device notifications of every kind: in the list and waiting, its own and the cluster's, with a badge.
  private static func fill(_ device: DeviceUnderTest, _ cluster: ScriptedCluster, session: Int = 0) async throws {
    await cluster.expect("hello", of: session)
    await cluster.send(
      notify(1, id: "one", "order", revision: "1", aps: ["alert": "Order", "badge": 3]),
      notify(2, id: "two", "near", revision: "2", trigger: place), to: session)
    await eventually("they are there: \(device.story)") { device.story.contains("held near") }
    let center = device.device.userNotificationCenter
    try await center.add(request("tea"))
    try await center.add(request("later", hour))
    try await center.add(request("shop", .location(place.text)))
    #expect(await device.device.delivered.count == 2)
    #expect(await device.device.pending.count == 3)
    #expect(await device.device.badge == 3)
  }

  private static func isEmpty(_ device: DeviceUnderTest) async -> Bool {
    let (delivered, pending, badge) = (await device.device.delivered, await device.device.pending, await device.device.badge)
    return delivered.isEmpty && pending.isEmpty && badge == 0
  }

  @Test(arguments: ["bob", nil] as [Name?]) func `another person finds nothing of the former one`(_ next: Name?)
    async throws
  {
    try await Self.with { device, cluster, path in
      let ada = device("ada")
      try await ada.device.start()
      try await Self.fill(ada, cluster)
      await ada.close()
      // Another process has asked for something meanwhile.
      let center = try await UserNotificationCenter.shared(in: path, application: "com.example.shop")
      try await center.add(Self.request("command", Self.hour))
      await center.close()
      let bob = device(next)
      try await bob.device.start()
      #expect(await Self.isEmpty(bob))
      for identifier: Name in ["near", "shop"] { #expect(try await !bob.device.fire(identifier)) }
      try await bob.device.userNotificationCenter.add(Self.request("own", Self.hour))
      try await bob.device.userNotificationCenter.setBadgeCount(1)
      await bob.close()
      // What the person has added stays with the person.
      let again = device(next)
      try await again.device.start()
      #expect(await again.device.pending.map(\.identifier) == ["own"])
      #expect(await again.device.badge == 1)
      await again.close()
      let back = device("ada")
      try await back.device.start()
      #expect(await back.device.pending.map(\.identifier) == (next == nil ? ["own"] : []))
      await back.close()
    }
  }

  @Test func `a sign-out removes the person's notifications at once, and what comes after it is neither shown nor acknowledged`()
    async throws
  {
    try await Self.with { device, cluster, _ in
      let ada = device("ada")
      try await ada.device.start()
      try await Self.fill(ada, cluster)
      try await ada.device.expand("order")
      await cluster.expect("ack")
      try await ada.device.unregister()
      #expect(await Self.isEmpty(ada))
      #expect(await ada.device.panel == nil)
      await eventually("it is told: \(ada.story)") { ada.story.last == "removed tea order" }
      #expect(try await !ada.device.fire("near"))
      let request = try #require(await cluster.expect("unregister").first?["request"])
      // The program's own notifications of later are nobody's.
      try await ada.device.userNotificationCenter.add(Self.request("mine", Self.hour))
      let acknowledged = await cluster.frames("ack").count
      await cluster.send(notify(3, id: "three", revision: "3"), ["type": "accepted", "request": request])
      await eventually("it has signed out") { ada.story.last == "unregistered" }
      #expect(!ada.story.contains("shown three 3") && ada.story.count { $0 == "unregistered" } == 1)
      #expect(await cluster.frames("ack").count == acknowledged)
      await ada.close()
      let next = device("bob")
      try await next.device.start()
      #expect(await next.device.delivered.isEmpty)
      #expect(await next.device.pending.map(\.identifier) == ["mine"])
      await next.close()
    }
  }

  @Test func `a device that the cluster signs out keeps nothing of its person`() async throws {
    try await Self.with { device, cluster, _ in
      let ada = device("ada")
      try await ada.device.start()
      try await Self.fill(ada, cluster)
      await cluster.close(CloseCode.unregistered.rawValue)
      await eventually("it has signed out") { ada.story.contains("unregistered") }
      #expect(await Self.isEmpty(ada))
      await ada.close()
    }
  }

  @Test func `a device that was nobody's keeps its notifications when somebody signs in`() async throws {
    try await Self.with { device, _, _ in
      let nobody = device(nil)
      try await nobody.device.start()
      try await nobody.device.userNotificationCenter.add(Self.request("tea"))
      await nobody.close()
      let ada = device("ada")
      try await ada.device.start()
      #expect(await ada.device.delivered.map(\.identifier) == ["tea"])
      await ada.close()
    }
  }

  @Test func `what a former person was shown is not shown again`() throws {
    var store = NotificationStore()
    _ = store.take(try notifyFrame(notify(1, id: "one", "order", revision: "1", aps: ["alert": "Order", "badge": 3])), now: 0)
    _ = store.take(try notifyFrame(notify(2, id: "two", "near", revision: "2", trigger: Self.place)), now: 0)
    #expect(store.forgetPerson().map(\.identifier) == ["order"])
    #expect(store.delivered.isEmpty && store.pending.isEmpty && store.badge == 0)
    // What was taken is known for the device's life, so that nothing is shown twice.
    #expect(store.take(try notifyFrame(notify(3, id: "one", "order", revision: "1")), now: 0) == .dropped(.known))
  }
}

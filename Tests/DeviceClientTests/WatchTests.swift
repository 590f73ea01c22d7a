import EventLoop
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// A phone and its watch, with real databases, a scripted cluster, and a channel that loses and repeats messages.
@Suite(.timeLimit(.minutes(10))) struct WatchTests {
  /// The channel of the program. Its messages overtake each other, since each is a task of its own.
  final class Channel: Sendable {
    struct State {
      var phone: Device?
      var watch: Device?
      /// How many of a hundred messages are lost, and how many come twice.
      var (lost, repeated) = (0, 0)
      var random = SeededRandom(seed: 7)
    }

    let state = Mutex(State())

    func end(of side: WatchConnectivity.Side) -> WatchConnectivity {
      WatchConnectivity(side) { data in
        let (other, copies) = self.state.withLock { state -> (Device?, Int) in
          let isLost = Int.random(in: 0..<100, using: &state.random) < state.lost
          let isRepeated = Int.random(in: 0..<100, using: &state.random) < state.repeated
          return (side == .phone ? state.watch : state.phone, isLost ? 0 : isRepeated ? 2 : 1)
        }
        for _ in 0..<copies { Task { await other?.didReceiveMessageData(data) } }
      }
    }
  }

  /// An application that notes the responses.
  private final class Application: UserNotificationCenterDelegate {
    func userNotificationCenter(
      _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
    ) -> PresentationOptions { .all }

    let responses = Mutex<[NotificationResponse]>([])
    var actions: [String] { responses.withLock { $0.map { "\($0.notification.identifier) \($0.actionIdentifier)" } } }

    func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
      responses.withLock { $0.append(response) }
    }
  }

  private struct Pair {
    let channel = Channel()
    let phoneProgram = Application()
    let watchProgram = Application()
    let folder: String
    let url: String
    let cluster: ScriptedCluster

    func startPhone(_ change: (inout DeviceConfiguration) -> Void = { _ in }) async throws -> DeviceUnderTest {
      let phone = DeviceUnderTest(url) {
        ($0.stateFile, $0.state, $0.delegate) = (folder + "/phone", .locked, phoneProgram)
        $0.watchConnectivity = channel.end(of: .phone)
        // No machine stands still for so long.
        $0.watchConnectivity?.leaseMilliseconds = hangMilliseconds
        change(&$0)
      }
      channel.state.withLock { $0.phone = phone.device }
      try await phone.device.start()
      return phone
    }

    func startWatch() async throws -> DeviceUnderTest {
      let watch = DeviceUnderTest(url) {
        ($0.stateFile, $0.delegate, $0.hello.categories) = (folder + "/watch", watchProgram, nil)
        $0.watchConnectivity = channel.end(of: .watch)
      }
      channel.state.withLock { $0.watch = watch.device }
      try await watch.device.start()
      return watch
    }

    func send(_ number: Int) async {
      await cluster.send(notify(Int64(number), id: "id-\(number)", "n\(number)", revision: "\(number)", category: "reply"))
    }
  }

  private static func with(_ body: (Pair) async throws -> Void) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in try await body(Pair(folder: folder.path, url: url, cluster: cluster)) }
    }
  }

  private static func forwarded(_ phone: DeviceUnderTest) -> [Name] {
    phone.events.compactMap { if case .forwarded(let notification) = $0 { notification.identifier } else { nil } }
  }

  // MARK: What is shown where

  @Test func `what comes to a locked phone is shown on its watch only, with what the phone's extensions have made of it`() async throws {
    try await Self.with { pair in
      let (watch, phone) = (try await pair.startWatch(), try await pair.startPhone())
      await pair.cluster.expect("hello")
      await pair.send(1)
      await watch.expect("shown n1 1")
      await eventually("the phone is told") { Self.forwarded(phone) == ["n1"] }
      #expect(phone.story.isEmpty)
      #expect(await phone.device.delivered.map(\.identifier) == ["n1"])
      let shown = try #require(await watch.device.delivered.first)
      #expect(shown.content.body == "1" && shown.frame.category?.actions.map(\.identifier) == ["reply", "like"])
      // An update is another showing, and takes the place of the first on the watch.
      await pair.cluster.send(notify(2, id: "id-2", "n1", revision: "2"))
      await eventually("the newer is shown: \(watch.story)") { watch.story.last?.hasSuffix("n1 2") == true }
      #expect(await watch.device.delivered.map(\.frame.revision) == ["2"])
      // What the cluster removes goes from both.
      await pair.cluster.send(["type": "remove", "delivery": 3, "identifiers": ["n1"], "revision": "3"])
      await eventually("it is removed") { await watch.device.delivered.isEmpty }
      #expect(await pair.cluster.count == 1)
      await phone.close()
      await watch.close()
    }
  }

  @Test func `a phone shows by itself what its watch does not claim, and what comes while it is unlocked`() async throws {
    try await Self.with { pair in
      let phone = try await pair.startPhone { $0.watchConnectivity?.leaseMilliseconds = 200 }
      await pair.cluster.expect("hello")
      await pair.send(1)
      await phone.expect("shown n1 1")
      // Nobody waits for the end of a lease who can see the phone.
      await phone.close()
      let again = try await pair.startPhone { $0.watchConnectivity?.leaseMilliseconds = 3_600_000 }
      await pair.cluster.expect("hello", of: 1)
      await pair.cluster.send(notify(2, id: "id-2", "n2", revision: "2"), to: 1)
      await eventually("it is in the list") { await again.device.delivered.count == 2 }
      #expect(again.story.isEmpty)
      await again.device.setState(.background)
      await again.expect("shown n2 2")
      let watch = try await pair.startWatch()
      await pair.cluster.send(notify(3, id: "id-3", "n3", revision: "3"), to: 1)
      await again.expect("shown n2 2", "shown n3 3")
      #expect(watch.story.isEmpty && Self.forwarded(again).isEmpty)
      await again.close()
      await watch.close()
    }
  }

  @Test func `over a channel that loses and repeats, and with a watch that is started again, each is shown on one of them`() async throws {
    try await Self.with { pair in
      pair.channel.state.withLock { ($0.lost, $0.repeated) = (50, 30) }
      var watch = try await pair.startWatch()
      let phone = try await pair.startPhone { $0.watchConnectivity?.leaseMilliseconds = 1_500 }
      await pair.cluster.expect("hello")
      var stories: [String] = []
      for number in 1...30 {
        await pair.send(number)
        guard number % 10 == 0 else { continue }
        await eventually("some of these have come") { phone.story.count + Self.forwarded(phone).count > number - 10 }
        await watch.close()
        stories += watch.story
        watch = try await pair.startWatch()
      }
      pair.channel.state.withLock { ($0.lost, $0.repeated) = (0, 0) }
      await eventually("all have come: \(phone.story) \(Self.forwarded(phone))") { phone.story.count + Self.forwarded(phone).count == 30 }
      stories += watch.story
      let here = Set(phone.story.map { $0.split(separator: " ")[1] })
      let there = Set(stories.map { $0.split(separator: " ")[1] })
      #expect(here.isDisjoint(with: there) && here.count == phone.story.count && there.count == stories.count, "\(here) \(there)")
      await phone.close()
      await watch.close()
    }
  }

  @Test func `a watch shows its own requests, which stay there, and gets nothing from the cluster`() async throws {
    try await Self.with { pair in
      let (watch, phone) = (try await pair.startWatch(), try await pair.startPhone())
      await pair.cluster.expect("hello")
      let content = NotificationContent(title: "Laps", categoryIdentifier: "reply")
      try await watch.device.userNotificationCenter.setNotificationCategories([DeviceUnderTest.category])
      try await watch.device.userNotificationCenter.add(NotificationRequest(identifier: "laps", content: content))
      await watch.expect("shown laps local")
      try await watch.device.respond(to: "laps", action: "like")
      await eventually("its program has it") { pair.watchProgram.actions == ["laps like"] }
      #expect(phone.story.isEmpty && pair.phoneProgram.actions.isEmpty)
      await #expect(throws: DeviceError.self) { try await watch.device.registerForRemoteNotifications() }
      await watch.device.reconnect()
      await phone.close()
      await watch.close()
      #expect(await pair.cluster.count == 1)
    }
  }

  // MARK: Actions

  @Test func `an action on the watch reaches the cluster and the phone's program once, whatever the channel loses`() async throws {
    try await Self.with { pair in
      let (first, phone) = (try await pair.startWatch(), try await pair.startPhone())
      await pair.cluster.expect("hello")
      for number in 1...2 { await pair.send(number) }
      await eventually("they are shown: \(first.story)") { first.story.count == 2 }
      pair.channel.state.withLock { $0.lost = 100 }
      try await first.device.respond(to: "n1", action: "reply", userText: "thanks")
      // The watch keeps it over its end.
      await first.close()
      let watch = try await pair.startWatch()
      #expect(await watch.device.waitingResponses == 1)
      try await watch.device.respond(to: "n2", action: "like")
      pair.channel.state.withLock { ($0.lost, $0.repeated) = (40, 60) }
      await eventually("the phone has them") { await watch.device.waitingResponses == 0 }
      let frames = await pair.cluster.expect("response", count: 2)
      #expect(Set(frames.compactMap { $0["action"]?.stringValue }) == ["reply", "like"] && frames.count == 2)
      #expect(Set(frames.compactMap { $0["receipt"]?.stringValue }) == ["receipt-id-1", "receipt-id-2"])
      await eventually("the program has them") { Set(pair.phoneProgram.actions) == ["n1 reply", "n2 like"] }
      #expect(pair.phoneProgram.actions.count == 2 && pair.watchProgram.actions.isEmpty)
      #expect(await phone.device.delivered.isEmpty)
      await phone.close()
      await watch.close()
    }
  }

  @Test func `an action on the phone takes the notification off the watch, and a local one of the phone is answered on the watch`()
    async throws
  {
    try await Self.with { pair in
      let (watch, phone) = (try await pair.startWatch(), try await pair.startPhone())
      await pair.cluster.expect("hello")
      await pair.send(1)
      await watch.expect("shown n1 1")
      await eventually("the phone is told") { Self.forwarded(phone) == ["n1"] }
      try await phone.device.respond(to: "n1", action: "like")
      await eventually("it is gone") { await watch.device.delivered.isEmpty }
      let content = NotificationContent(title: "Tea", categoryIdentifier: "reply")
      try await phone.device.userNotificationCenter.add(NotificationRequest(identifier: "tea", content: content))
      await watch.expect("shown n1 1", "shown tea local")
      try await watch.device.respond(to: "tea", action: "like")
      await eventually("the phone's program has it") { pair.phoneProgram.actions == ["n1 like", "tea like"] }
      #expect(await pair.cluster.expect("response").count == 1)
      await eventually("the phone has removed its own: \(phone.story)") { phone.story == ["removed tea"] }
      await phone.close()
      await watch.close()
    }
  }

  @Test func `a response on the watch closes the notification's panel on the phone, and no other one`() async throws {
    try await Self.with { pair in
      let (watch, phone) = (try await pair.startWatch(), try await pair.startPhone())
      await pair.cluster.expect("hello")
      for number in 1...2 { await pair.send(number) }
      await eventually("they are shown: \(watch.story)") { watch.story.count == 2 }
      await phone.device.setState(.background)
      try await phone.device.expand("n1")
      try await watch.device.respond(to: "n2", action: "like")
      await eventually("the phone has it") { await watch.device.waitingResponses == 0 }
      #expect(await phone.device.panel?.identifier == "n1")
      try await watch.device.respond(to: "n1", action: "like")
      await eventually("it is closed") { await phone.device.panel == nil }
      #expect(phone.events.contains { if case .panelClosed(let panel) = $0 { panel.identifier == "n1" } else { false } })
      #expect(phone.story == ["removed n2", "removed n1"])
      await phone.close()
      await watch.close()
    }
  }

  @Test func `what the person takes off the watch's list leaves the phone's, and the phone's program is told`() async throws {
    try await Self.with { pair in
      let (watch, phone) = (try await pair.startWatch(), try await pair.startPhone())
      await pair.cluster.expect("hello")
      for number in 1...3 { await pair.send(number) }
      try await watch.device.userNotificationCenter.add(
        NotificationRequest(identifier: "laps", content: NotificationContent(title: "Laps")))
      await eventually("they are shown: \(watch.story)") { watch.story.count == 4 }
      await eventually("the phone is told") { Self.forwarded(phone).count == 3 }
      await phone.device.setState(.background)
      try await phone.device.expand("n1")
      await watch.device.remove(["n1"])
      await eventually("it has left the phone") { phone.story == ["removed n1"] }
      #expect(await phone.device.panel == nil)
      // A newer one of the identifier stays: the person of the watch has not seen it.
      await pair.cluster.send(notify(4, id: "id-4", "n2", revision: "4"))
      await eventually("it is shown on the phone") { phone.story.last == "updated n2 4" }
      await watch.device.removeAll()
      await eventually("the other one has left") { phone.story.last == "removed n3" }
      #expect(await phone.device.delivered.map(\.id) == ["id-4"] && phone.story == ["removed n1", "updated n2 4", "removed n3"])
      await phone.close()
      await watch.close()
    }
  }
}

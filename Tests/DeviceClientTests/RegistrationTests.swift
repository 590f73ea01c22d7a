import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// What the person and the program decide once: authorization, categories, token.
@Suite(.timeLimit(.minutes(10))) struct RegistrationTests {
  private static func with(
    _ body: (_ path: String, _ cluster: ScriptedCluster, _ url: String) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in try await body(folder.path + "/state", cluster, url) }
    }
  }

  /// A device that makes its own token.
  private static func unregistered(_ url: String, _ path: String, _ change: (inout DeviceConfiguration) -> Void = { _ in })
    -> DeviceUnderTest
  {
    DeviceUnderTest(url) {
      $0 = DeviceConfiguration(urls: [url], application: "com.example.shop")
      $0.hello.authorization = Authorization(status: .authorized)
      $0.connectMilliseconds = hangMilliseconds
      $0.stateFile = path
      change(&$0)
    }
  }

  @Test func `the person is asked once in the device's life, and each hello has the answer and what was changed since`() async throws {
    try await Self.with { path, cluster, url in
      let asked = Atomic(0)
      func device() -> DeviceUnderTest {
        DeviceUnderTest(url) {
          $0.stateFile = path
          $0.hello.authorization = nil
          $0.authorizationPrompt = { _ in
            asked.add(1, ordering: .relaxed)
            return true
          }
        }
      }
      let first = device()
      try await first.device.start()
      #expect(await cluster.expect("hello").first?["authorization"] == ["status": "notDetermined"])
      #expect(try await first.device.userNotificationCenter.requestAuthorization(options: [.alert, .sound]))
      await first.close()
      let second = device()
      try await second.device.start()
      let told = try #require(await cluster.expect("hello", of: 1).first?["authorization"]?.members)
      #expect(Set(told.filter { $0.value == true }.map(\.key)) == ["alert", "lockScreen", "notificationCenter", "sound"])
      #expect(try await second.device.userNotificationCenter.requestAuthorization(options: [.alert]))
      try await second.device.setAuthorization(Authorization(status: .authorized, options: [.sound: false], previews: .never))
      await second.close()
      let third = device()
      try await third.device.start()
      let kept: JSONValue = ["status": "authorized", "sound": false, "previews": "never"]
      #expect(await cluster.expect("hello", of: 2).first?["authorization"] == kept)
      try await third.device.userNotificationCenter.add(
        NotificationRequest(identifier: "tea", content: NotificationContent(title: "Tea", sound: "default")))
      #expect(await third.device.delivered.first?.presentation.contains(.sound) == false)
      await third.close()
      #expect(asked.load(ordering: .relaxed) == 1)
    }
  }

  @Test func `two requests for authorization at once ask the person once`() async throws {
    try await Self.with { _, _, url in
      let asked = Atomic(0)
      let answers = AsyncStream.makeStream(of: Bool.self)
      let device = DeviceUnderTest(url) {
        $0.hello.authorization = Authorization(status: .notDetermined)
        $0.authorizationPrompt = { _ in
          asked.add(1, ordering: .relaxed)
          return await answers.stream.first { _ in true } ?? false
        }
      }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      async let first = center.requestAuthorization(options: [.alert])
      async let second = center.requestAuthorization(options: [.alert])
      await eventually("the person is asked") { asked.load(ordering: .relaxed) > 0 }
      answers.continuation.yield(true)
      answers.continuation.finish()
      let granted = try await [first, second]
      #expect(granted == [true, true] && asked.load(ordering: .relaxed) == 1)
      await device.close()
    }
  }

  @Test func `categories outlive the program, until it registers others`() async throws {
    try await Self.with { path, cluster, url in
      let shop = NotificationCategory(identifier: "shop", actions: [NotificationAction(identifier: "buy", title: "Buy")])
      for (session, (configured, told)) in zip(
        0..., [(nil, nil), (nil, "shop"), (DeviceUnderTest.category, "reply")] as [(NotificationCategory?, Name?)])
      {
        let device = DeviceUnderTest(url) {
          $0.stateFile = path
          $0.hello.categories = configured.map { [$0] }
        }
        try await device.device.start()
        let hello = try #require(await cluster.expect("hello", of: session).first)
        #expect(hello["categories"]?.elements?.compactMap { $0["identifier"]?.nameValue } ?? [] == [told].compactMap { $0 })
        if session == 0 { try await device.device.userNotificationCenter.setNotificationCategories([shop]) }
        await device.close()
      }
    }
  }

  @Test func `a device makes its token, connects when the program registers it, and from then on at each start`() async throws {
    try await Self.with { path, cluster, url in
      let first = Self.unregistered(url, path)
      try await first.device.start()
      // Local notifications need no registration.
      try await first.device.userNotificationCenter.add(
        NotificationRequest(identifier: "tea", content: NotificationContent(title: "Tea")))
      await first.expect("shown tea local")
      #expect(await cluster.count == 0)
      #expect(await !first.device.isRegisteredForRemoteNotifications)
      let token = try await first.device.registerForRemoteNotifications()
      #expect(try await first.device.registerForRemoteNotifications() == token)
      #expect(await cluster.expect("hello").map { $0["device"]?.stringValue } == [token.text])
      await first.close()
      let second = Self.unregistered(url, path)
      try await second.device.start()
      #expect(await cluster.expect("hello", of: 1).map { $0["device"]?.stringValue } == [token.text])
      try await second.device.unregister()
      let request = try #require(await cluster.expect("unregister", of: 1).first?["request"])
      await cluster.send(["type": "accepted", "request": request], to: 1)
      await eventually("it has signed out") { second.story.last == "unregistered" }
      await second.close()
      let third = Self.unregistered(url, path)
      try await third.device.start()
      #expect(await !third.device.isRegisteredForRemoteNotifications)
      #expect(try await third.device.registerForRemoteNotifications() == token)
      #expect(await cluster.count == 3)
      await third.close()
    }
  }

  @Test func `the program is told why its registration failed`() async throws {
    try await Self.with { path, cluster, url in
      await cluster.answer(with: nil)
      let device = Self.unregistered(url, path)
      try await device.device.start()
      async let failure = #expect(throws: DeviceError.self) { try await device.device.registerForRemoteNotifications() }
      await cluster.expect("hello")
      await cluster.close(CloseCode.unauthorized.rawValue)
      #expect(await failure?.code == .refused)
      await cluster.answer(with: ScriptedCluster.welcome())
      try await device.device.registerForRemoteNotifications()
      await device.close()
    }
  }

  @Test func `a token belongs to one environment`() async throws {
    try await Self.with { path, cluster, url in
      let first = Self.unregistered(url, path) { $0.hello.environment = .development }
      try await first.device.start()
      let token = try await first.device.registerForRemoteNotifications()
      await first.close()
      let second = Self.unregistered(url, path) { $0.hello.environment = .production }
      try await second.device.start()
      let error = await #expect(throws: DeviceError.self) { try await second.device.registerForRemoteNotifications() }
      #expect(error?.code == .configuration && error?.description.contains("development") == true)
      await second.close()
      #expect(await cluster.count == 1)
      let third = Self.unregistered(url, path) { $0.hello.environment = .development }
      try await third.device.start()
      #expect(try await third.device.registerForRemoteNotifications() == token)
      await third.close()
    }
  }

  @Test func `the person goes from a notification to the settings of a program that has some`() async throws {
    try await Self.with { _, _, url in
      let delegate = SettingsDelegate()
      let device = DeviceUnderTest(url) {
        $0.hello.authorization = Authorization(status: .notDetermined)
        $0.authorizationPrompt = { _ in true }
        $0.delegate = delegate
      }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      try await center.requestAuthorization(options: [.alert])
      let none = await #expect(throws: DeviceError.self) { try await center.openSettings() }
      #expect(none?.code == .noSettings)
      try await device.device.setAuthorization(
        Authorization(status: .authorized, options: [.providesAppNotificationSettings: true]))
      try await center.add(NotificationRequest(identifier: "tea", content: NotificationContent(title: "Tea")))
      try await center.openSettings(for: "tea")
      try await center.openSettings()
      let missing = await #expect(throws: DeviceError.self) { try await center.openSettings(for: "other") }
      #expect(missing?.code == .noSuchNotification)
      #expect(delegate.opened == ["tea", nil])
      await device.close()
    }
  }

  @Test(arguments: ["tvOS", "linux"]) func `a platform that shows badges only shows no more of a local request`(_ platform: String)
    async throws
  {
    try await Self.with { _, _, url in
      let device = DeviceUnderTest(url) { $0.hello.platform = platform }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      try await center.add(NotificationRequest(identifier: "count", content: NotificationContent(title: "New", badge: 3)))
      try await center.add(NotificationRequest(identifier: "tea", content: NotificationContent(title: "Tea", sound: "default")))
      let isTelevision = platform == "tvOS"
      await device.expect("shown count local", isTelevision ? "dropped tea filtered" : "shown tea local")
      #expect(await device.device.badge == 3)
      #expect(await center.supportsContentExtensions == !isTelevision)
      #expect(await device.device.delivered.count == (isTelevision ? 0 : 2))
      await device.close()
    }
  }
}

/// Notes from which notifications the person came.
private final class SettingsDelegate: UserNotificationCenterDelegate {
  func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions { .all }

  private let noted = Mutex<[Name?]>([])
  var opened: [Name?] { noted.withLock { $0 } }

  func userNotificationCenter(_ center: UserNotificationCenter, openSettingsFor notification: DeliveredNotification?) {
    noted.withLock { $0.append(notification?.identifier) }
  }
}

import EventLoop
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// What the program registers, against the rules by which the cluster reads it.
@Suite(.timeLimit(.minutes(10))) struct FrameRulesTests {
  private static func with(
    _ body: (_ path: String, _ cluster: ScriptedCluster, _ url: String) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in try await body(folder.path + "/state", cluster, url) }
    }
  }

  private static func error(_ body: () async throws -> Void) async -> DeviceError? {
    do { try await body() } catch { return error as? DeviceError }
    return nil
  }

  private static func text(_ bytes: Int) -> String { String(repeating: "x", count: bytes) }

  private static func action(_ identifier: Name = "like", title: String = "Like", input: NotificationAction.TextInput? = nil)
    -> NotificationCategory
  {
    NotificationCategory(identifier: "shop", actions: [NotificationAction(identifier: identifier, title: title, textInput: input)])
  }

  /// Categories that break one rule each, with the member that does.
  private static let broken: [(categories: [NotificationCategory], field: String)] = [
    ([NotificationCategory(identifier: "")], "categories[0].identifier"),
    ([NotificationCategory(identifier: Name(text(129)))], "categories[0].identifier"),
    ([NotificationCategory(identifier: "a\nb")], "categories[0].identifier"),
    ([NotificationCategory(identifier: "a"), NotificationCategory(identifier: "a")], "categories[1].identifier"),
    ((0..<101).map { NotificationCategory(identifier: "c\($0)") }, "categories"),
    (
      [NotificationCategory(identifier: "a", actions: (0..<11).map { NotificationAction(identifier: "a\($0)", title: "A") })],
      "categories[0].actions"
    ),
    (
      [NotificationCategory(identifier: "a", actions: (0..<2).map { _ in NotificationAction(identifier: "a", title: "A") })],
      "categories[0].actions[1].identifier"
    ),
    ([action("")], "categories[0].actions[0].identifier"), ([action(Name(text(129)))], "categories[0].actions[0].identifier"),
    ([action(NotificationAction.defaultIdentifier)], "categories[0].actions[0].identifier"),
    ([action(title: "")], "categories[0].actions[0].title"), ([action(title: text(257))], "categories[0].actions[0].title"),
    ([action(title: "a\u{0}")], "categories[0].actions[0].title"),
    ([action(input: .init(buttonTitle: text(257)))], "categories[0].actions[0].textInput.buttonTitle"),
    ([action(input: .init(placeholder: text(257)))], "categories[0].actions[0].textInput.placeholder"),
    ([NotificationCategory(identifier: "a", intentIdentifiers: [""])], "categories[0].intentIdentifiers"),
    ([NotificationCategory(identifier: "a", intentIdentifiers: (0..<33).map { "i\($0)" })], "categories[0].intentIdentifiers"),
    ([NotificationCategory(identifier: "a", hiddenPreviewsBodyPlaceholder: "")], "categories[0].hiddenPreviewsBodyPlaceholder"),
    ([NotificationCategory(identifier: "a", hiddenPreviewsBodyPlaceholder: text(257))], "categories[0].hiddenPreviewsBodyPlaceholder"),
  ]

  /// Valid categories that are longer than a frame may be.
  private static let long = (0..<100).map { number in
    NotificationCategory(
      identifier: Name("c\(number)"),
      actions: (0..<10).map { NotificationAction(identifier: Name("a\($0)"), title: text(256)) })
  }

  @Test func `categories that break a rule are refused when the program registers them, and nothing is changed`() async throws {
    try await Self.with { path, cluster, url in
      let device = DeviceUnderTest(url) { $0.stateFile = path }
      try await device.device.start()
      await cluster.expect("hello")
      let shared = try await UserNotificationCenter.shared(in: path, application: "com.example.shop")
      for (categories, field) in Self.broken {
        for error in [
          await Self.error { try await device.device.setCategories(categories) },
          await Self.error { try await device.device.userNotificationCenter.setNotificationCategories(categories) },
          await Self.error { try await shared.setNotificationCategories(categories) },
        ] {
          #expect(
            error?.code == .badRequest && error?.description.contains("\(field): ") == true, "\(field): \(error?.description ?? "nothing")")
        }
      }
      for error in [
        await Self.error { try await device.device.setCategories(Self.long) },
        await Self.error { try await shared.setNotificationCategories(Self.long) },
      ] {
        #expect(error?.code == .badRequest && error?.description.contains("bytes") == true)
      }
      #expect(await device.device.categories == [DeviceUnderTest.category])
      #expect(try await shared.notificationCategories() == [DeviceUnderTest.category])
      let valid = [NotificationCategory(identifier: Name(Self.text(128)), intentIdentifiers: (0..<32).map { "i\($0)" })]
      try await shared.setNotificationCategories(valid)
      let told = await cluster.expect("categories")
      #expect(told.count == 1 && told.first?["categories"]?[0]?["identifier"]?.stringValue == Self.text(128))
      await shared.close()
      await device.close()
    }
  }

  @Test func `a locale and a time zone that break a rule are refused, and the former ones stay`() async throws {
    try await Self.with { _, cluster, url in
      let device = DeviceUnderTest(url) { ($0.hello.locale, $0.hello.timeZone) = ("de_AT", "Europe/Vienna") }
      try await device.device.start()
      await cluster.expect("hello")
      for text in ["", Self.text(65), "a\u{1}"] {
        for (locale, zone, field) in [(text, nil, "locale"), (nil, text, "timeZone"), ("en_GB", text, "timeZone")]
          as [(String?, String?, String)]
        {
          let error = await Self.error { try await device.device.setLocale(locale, timeZone: zone) }
          #expect(error?.code == .badRequest && error?.description.contains("\(field): ") == true, "\(error?.description ?? "nothing")")
        }
      }
      await cluster.cut()
      let hello = try #require(await cluster.expect("hello", of: 1).first)
      #expect(hello["locale"] == "de_AT" && hello["timeZone"] == "Europe/Vienna")
      #expect(await cluster.frames("settings").isEmpty)
      await device.close()
    }
  }

  @Test func `a hello that breaks a rule does not start, and its state file is not made`() async throws {
    let changes: [(field: String, change: @Sendable (inout Hello) -> Void)] = [
      ("application", { $0.application = "" }), ("application", { $0.application = "a b" }),
      ("application", { $0.application = Name(Self.text(256)) }), ("user", { $0.user = "" }),
      ("user", { $0.user = Name(Self.text(5_000)) }),
      ("platform", { $0.platform = Self.text(65) }), ("locale", { $0.locale = "" }), ("timeZone", { $0.timeZone = "\u{7f}" }),
      ("credential", { $0.credential = Self.text(8_193) }),
      ("categories[0].identifier", { $0.categories = [NotificationCategory(identifier: "")] }),
    ]
    for (field, change) in changes {
      try await Self.with { path, cluster, url in
        let device = DeviceUnderTest(url) {
          $0.stateFile = path
          change(&$0.hello)
        }
        let error = await Self.error { try await device.device.start() }
        #expect(error?.code == .configuration && error?.description.contains("\(field): ") == true, "\(error?.description ?? "nothing")")
        #expect(error?.description.contains("xxxx") == false, "a value is told, which may be a secret")
        await #expect(throws: DeviceError.self) { _ = try await UserNotificationCenter.shared(in: path, application: "com.example.shop") }
        #expect(await cluster.count == 0)
        await device.close()
      }
    }
  }

  @Test func `a credential that breaks a rule is not sent, and the program is asked for the next one`() async throws {
    try await Self.with { _, cluster, url in
      let credentials = Mutex(["", Self.text(8_193), "good"])
      let device = DeviceUnderTest(url) {
        $0.credential = { credentials.withLock { $0.count > 1 ? $0.removeFirst() : $0.first } }
      }
      try await device.device.start()
      await eventually("connected") { device.events.contains { if case .connected = $0 { true } else { false } } }
      let reasons = device.events.compactMap { if case .unreachable(let reason, _?) = $0 { reason } else { nil } }
      #expect(reasons.count == 2 && reasons.allSatisfy { $0.contains("credential: ") && !$0.contains("xxxx") })
      var hellos: [JSONValue?] = []
      for session in 0..<(await cluster.count) { hellos += await cluster.frames("hello", of: session).map { $0["credential"] } }
      #expect(hellos == ["good"])
      await device.close()
    }
  }

  @Test func `the largest frame is what the cluster says in its welcome`() async throws {
    try await Self.with { path, cluster, url in
      var welcome = ScriptedCluster.welcome()
      welcome.set("limits", ["frameBytes": 1_000_000])
      await cluster.answer(with: welcome)
      let device = DeviceUnderTest(url) { $0.stateFile = path }
      try await device.device.start()
      await eventually("connected") { device.events.contains { if case .connected = $0 { true } else { false } } }
      try await device.device.setCategories(Self.long)
      #expect(await cluster.expect("categories").first?["categories"]?.elements?.count == 100)
      await device.close()
    }
  }

  @Test func `categories leave room for the largest credential that may follow`() async throws {
    try await Self.with { path, cluster, url in
      let credential = Mutex(Self.text(10))
      let device = DeviceUnderTest(url) { ($0.stateFile, $0.credential) = (path, { credential.withLock { $0 } }) }
      try await device.device.start()
      await cluster.expect("hello")
      let many = (0..<200).map { number in
        NotificationCategory(
          identifier: Name("category \(number)"),
          actions: (0..<10).map { NotificationAction(identifier: Name("a\($0)"), title: Self.text(40)) })
      }
      var count = 0
      while count < many.count, await Self.error({ try await device.device.setCategories(Array(many.prefix(count + 1))) }) == nil {
        count += 1
      }
      #expect(count > 0 && count < many.count)
      credential.withLock { $0 = Self.text(FrameLimits.credentialBytes) }
      await cluster.cut()
      let hello = try #require(await cluster.expect("hello", of: 1).first)
      #expect(hello.text.utf8.count <= FrameRules.frameBytes && hello["categories"]?.elements?.count == count)
      await device.close()
    }
  }
}

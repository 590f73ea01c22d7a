import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// Expanded notifications of a real device: its database, a scripted cluster, and a content extension that does what the test says.
@Suite(.timeLimit(.minutes(10))) struct PanelTests {
  /// A device with a content extension, its delegate, and what the extension was told.
  private final class Parts {
    let under: DeviceUnderTest
    let story = ExtensionStory()
    let delegate = ToldDelegate()
    let cluster: ScriptedCluster
    let (path, url): (String, String)
    private var isClosed = false

    init(
      _ path: String, _ cluster: ScriptedCluster, _ url: String, state: ApplicationState = .foreground,
      _ change: (inout ContentExtensionDeclaration) -> Void
    ) async throws {
      (self.path, self.url, self.cluster) = (path, url, cluster)
      let (story, delegate) = (story, delegate)
      var declaration = ContentExtensionDeclaration(categories: ["reply"]) { ToldExtension(story) }
      declaration.allowsInteraction = true
      change(&declaration)
      under = DeviceUnderTest(url) { [declaration] in
        ($0.stateFile, $0.state, $0.attachmentMilliseconds) = (path, state, 3_600_000)
        $0.contentExtensions = [declaration]
        $0.delegate = delegate
      }
      try await under.device.start()
    }

    var device: Device { under.device }

    /// Closes the device, unless the test has.
    func close() async {
      if !isClosed { await under.close() }
      isClosed = true
    }
  }

  /// Runs a device that has shown the notification `one` of the category `reply`, by the cluster.
  private static func with(
    _ change: @escaping @Sendable (inout ContentExtensionDeclaration) -> Void = { _ in }, _ body: (Parts) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        let parts = try await Parts(folder.path + "/state", cluster, url, change)
        await cluster.expect("hello")
        await cluster.send(chat(1, "one"))
        await eventually("it is shown") { parts.under.story.contains("shown one 1") }
        try await body(parts)
        await parts.close()
      }
    }
  }

  private static func chat(_ delivery: Int64, _ id: String, _ identifier: String? = nil) -> JSONValue {
    let aps: JSONValue = ["alert": ["title": "Chat", "body": .string(id)], "category": "reply", "thread-id": "chat"]
    return notify(delivery, id: id, identifier, revision: "\(delivery)", aps: aps)
  }

  @Test func `a panel has what its extension draws, and again for newer ones of the thread`() async throws {
    try await Self.with { parts in
      let panel = try await parts.device.expand("one")
      #expect(panel.lines == ["one"] && panel.actions.map(\.identifier) == ["reply", "like"] && panel.title == "com.example.shop")
      await parts.cluster.send(Self.chat(2, "two"))
      await parts.cluster.send(Self.chat(3, "three", "one"))
      await eventually("both are drawn") { await parts.device.panel?.lines == ["one", "two", "three"] }
      #expect(await parts.device.panel?.notification.id == "three")
      await eventually("the change is told") { parts.under.panels.last?.lines == ["one", "two", "three"] }
      await parts.device.collapse()
      #expect(await parts.device.panel == nil)
      #expect(await parts.device.delivered.map(\.identifier) == ["one", "two"])
    }
  }

  @Test func `only a forwarded response reaches the cluster and the application`() async throws {
    try await Self.with { parts in
      parts.story.answer("like", with: .doNotDismiss)
      try await parts.device.expand("one")
      let kept = try await parts.device.respond(to: "one", action: "like")
      await eventually("it is kept") { await parts.device.panel?.lines.last == "like" }
      #expect(await parts.device.delivered.map(\.identifier) == ["one"])
      parts.story.answer("like", with: .dismissAndForwardAction)
      await eventually("the extension has answered") { (try? await parts.device.respond(to: "one", action: "like")) != nil }
      let frames = await parts.cluster.expect("response")
      #expect(frames.count == 1 && frames[0]["response"]?.stringValue != kept && frames[0]["dynamic"] == nil)
      #expect(frames[0]["unanswered"] == nil)
      await eventually("the application has it") { parts.delegate.responses.count == 1 }
      #expect(parts.delegate.responses[0].isUnanswered == false)
      #expect(await parts.device.panel == nil)
      #expect(await parts.device.delivered.isEmpty)
    }
  }

  @Test func `a response that the extension dismisses takes the notification off the list, and goes nowhere`() async throws {
    try await Self.with { parts in
      parts.story.answer("like", with: .dismiss)
      try await parts.device.expand("one")
      try await parts.device.respond(to: "one", action: "like")
      await eventually("the panel is closed") { await parts.device.panel == nil }
      #expect(await parts.device.delivered.isEmpty)
      await parts.close()
      // The database has no response either.
      let again = try await Parts(parts.path, parts.cluster, parts.url) { _ in }
      await parts.cluster.expect("hello", of: 1)
      await parts.cluster.send(Self.chat(9, "nine"), to: 1)
      await eventually("it runs") { again.under.story.contains("shown nine 9") }
      try await again.device.open("nine")
      #expect(await parts.cluster.expect("response", of: 1).map { $0["identifier"] } == ["nine"])
      #expect(parts.delegate.responses.isEmpty)
      await again.close()
    }
  }

  @Test func `a response without an answer is forwarded at the deadline, and marked`() async throws {
    try await Self.with({ $0.answerMilliseconds = 50 }) { parts in
      parts.story.answer("like", with: nil)
      try await parts.device.expand("one")
      let id = try await parts.device.respond(to: "one", action: "like")
      let frames = await parts.cluster.expect("response")
      #expect(frames.map { $0["response"]?.stringValue } == [id] && frames[0]["unanswered"] == true)
      await eventually("the application has it") { parts.delegate.responses.map(\.id) == [id] }
      #expect(parts.delegate.responses[0].isUnanswered)
      await eventually("its task is canceled") { parts.story.told.contains("canceled like") }
      #expect(await parts.device.panel == nil)
    }
  }

  @Test func `a panel that closes forwards the response that its extension has`() async throws {
    for way in 0..<4 {
      try await Self.with { parts in
        parts.story.answer("like", with: nil)
        await parts.cluster.send(Self.chat(2, "two"))
        await eventually("it is shown") { parts.under.story.contains("shown two 2") }
        try await parts.device.expand("one")
        let id = try await parts.device.respond(to: "one", action: "like")
        await eventually("it is asked") { parts.story.told.contains("asked like") }
        await #expect { try await parts.device.respond(to: "one", action: "like") } throws: { ($0 as? DeviceError)?.code == .panelBusy }
        await #expect { try await parts.device.open("one") } throws: { ($0 as? DeviceError)?.code == .panelBusy }
        await #expect { try await parts.device.dismiss("one") } throws: { ($0 as? DeviceError)?.code == .panelBusy }
        switch way {
        case 0: await parts.device.collapse()
        case 1: try await parts.device.expand("two")
        case 2: await parts.cluster.send(["type": "remove", "delivery": 3, "identifiers": ["one"], "revision": "3"])
        default: await parts.device.remove(["one"])
        }
        #expect(await parts.cluster.expect("response").map { $0["response"]?.stringValue } == [id], "way \(way)")
        await eventually("the application has it") { parts.delegate.responses.map(\.isUnanswered) == [true] }
        #expect(await parts.device.panel?.identifier == (way == 1 ? "two" : nil))
        #expect(await parts.device.delivered.map(\.identifier) == ["two"])
      }
    }
  }

  @Test func `a response that the extension has at the end of the program is forwarded at the next start, without the extension`()
    async throws
  {
    try await Self.with { parts in
      parts.story.answer("like", with: nil)
      try await parts.device.expand("one")
      let id = try await parts.device.respond(to: "one", action: "like")
      await eventually("it is asked") { parts.story.told.contains("asked like") }
      await parts.close()
      #expect(await parts.cluster.frames("response").isEmpty && parts.delegate.responses.isEmpty)
      for session in 1...2 {
        let again = try await Parts(parts.path, parts.cluster, parts.url) { _ in }
        // The cluster gets it until it has answered, the application once.
        #expect(await parts.cluster.expect("response", of: session).map { $0["response"]?.stringValue } == [id])
        await eventually("the application has it") { again.delegate.responses.count == (session == 1 ? 1 : 0) }
        #expect(again.delegate.responses.allSatisfy { $0.isUnanswered && $0.id == id && $0.notification.id == "one" })
        #expect(again.story.told.isEmpty)
        #expect(await again.device.delivered.isEmpty)
        await again.close()
      }
    }
  }

  /// The action is one that the extension has added, so only the stored response knows that it needs the unlocked screen.
  @Test(arguments: [ContentExtensionResponseOption.dismissAndForwardAction, nil])
  func `a response that needs the unlocked screen waits for it after the extension has had it, and over a restart`(
    _ answer: ContentExtensionResponseOption?
  ) async throws {
    try await Self.with { parts in
      parts.story.answer("more", with: answer)
      await parts.device.setState(.locked)
      try await parts.device.expand("one")
      try await parts.device.tap("actions")
      let id = try await parts.device.respond(to: "one", action: "more")
      await eventually("it is asked") { parts.story.told.contains("asked more") }
      if answer != nil {
        await eventually("it is forwarded") { await parts.device.panel == nil }
        #expect(await parts.device.delivered.isEmpty)
      }
      await parts.close()
      #expect(await parts.cluster.frames("response").isEmpty && parts.delegate.responses.isEmpty)

      let again = try await Parts(parts.path, parts.cluster, parts.url, state: .locked) { _ in }
      await parts.cluster.expect("hello", of: 1)
      await parts.cluster.send(Self.chat(2, "two"), to: 1)
      await eventually("it is shown") { again.under.story.contains("shown two 2") }
      #expect(await again.device.delivered.map(\.identifier) == ["two"])
      let sent = try await again.device.respond(to: "two", action: "like")
      #expect(await parts.cluster.expect("response", of: 1).map { $0["response"]?.stringValue } == [sent])
      await eventually("only the other is told") { again.delegate.responses.map(\.id) == [sent] }
      await again.device.setState(.background)
      #expect(await parts.cluster.expect("response", of: 1, count: 2).map { $0["response"]?.stringValue } == [sent, id])
      await eventually("it is told") { again.delegate.responses.map(\.id) == [sent, id] }
      #expect(again.delegate.responses.map(\.isUnanswered) == [false, answer == nil])
      #expect(again.story.told.isEmpty)
      #expect(await again.device.state == .background)
      await again.close()
    }
  }

  @Test func `nothing is expanded behind a locked screen that hides previews`() async throws {
    try await Self.with { parts in
      var authorization = Authorization(status: .authorized)
      authorization.previews = .whenAuthenticated
      try await parts.device.setAuthorization(authorization)
      try await parts.device.expand("one")
      await parts.device.setState(.locked)
      #expect(await parts.device.panel == nil && parts.under.closings == 1)
      await #expect { try await parts.device.expand("one") } throws: { ($0 as? DeviceError)?.code == .locked }
      await parts.device.setState(.foreground)
      try await parts.device.expand("one")
      #expect(parts.story.told == ["drawn one", "drawn one"])
    }
  }

  @Test func `a forwarded response that opens the program brings it to the foreground, and one that is handled does not`() async throws {
    try await Self.with({ $0.takesDefaultAction = true }) { parts in
      await parts.device.setState(.background)
      parts.story.answer(NotificationAction.defaultIdentifier, with: .doNotDismiss)
      try await parts.device.expand("one")
      try await parts.device.open("one")
      await eventually("it is handled") { await parts.device.panel?.lines.last?.text == NotificationAction.defaultIdentifier.text }
      #expect(await parts.device.state == .background)
      parts.story.answer(NotificationAction.defaultIdentifier, with: .dismissAndForwardAction)
      await eventually("the extension has answered") { (try? await parts.device.open("one")) != nil }
      await eventually("it is in the foreground") { await parts.device.state == .foreground }
    }
  }

  @Test func `a newer notification that came while the extension had a response stays in the list`() async throws {
    try await Self.with { parts in
      parts.story.answer("like", with: nil)
      try await parts.device.expand("one")
      try await parts.device.respond(to: "one", action: "like")
      await parts.cluster.send(Self.chat(2, "newer", "one"))
      await eventually("it is shown") { parts.under.story.contains("updated one 2") }
      await parts.device.collapse()
      let frame = await parts.cluster.expect("response").first
      #expect(frame?["receipt"] == "receipt-one")
      #expect(await parts.device.delivered.map(\.id) == ["newer"])
    }
  }

  @Test func `the next occurrence of a repeating notification stays in the list as well`() async throws {
    try await Self.with { parts in
      parts.story.answer("like", with: nil)
      var frame = Self.chat(2, "shop")
      frame.set("trigger", ["type": "location", "region": ["identifier": "shop"], "repeats": true])
      await parts.cluster.send(frame)
      await eventually("it waits for its place") { (try? await parts.device.fire("shop")) == true }
      await eventually("it is shown") { await parts.device.delivered.count == 2 }
      try await parts.device.expand("shop")
      try await parts.device.respond(to: "shop", action: "like")
      let first = try #require(await parts.device.delivered.first?.takenAt)
      await eventually("it comes again, at another time") {
        _ = try? await parts.device.fire("shop")
        return await parts.device.delivered.first.map { $0.takenAt > first } ?? false
      }
      await parts.device.collapse()
      await parts.cluster.expect("response")
      #expect(await parts.device.delivered.map(\.identifier) == ["shop", "one"])
    }
  }

  @Test func `the extension replaces the actions, and a response with one of them is dynamic`() async throws {
    try await Self.with { parts in
      parts.story.answer("more", with: .dismissAndForwardAction)
      try await parts.device.expand("one")
      await #expect { try await parts.device.respond(to: "one", action: "more") } throws: { ($0 as? DeviceError)?.code == .noSuchAction }
      try await parts.device.tap("actions")
      await eventually("it is told") { parts.under.panels.last?.actions.map(\.identifier) == ["more"] }
      await #expect { try await parts.device.respond(to: "one", action: "like") } throws: { ($0 as? DeviceError)?.code == .noSuchAction }
      try await parts.device.respond(to: "one", action: "more")
      let frame = await parts.cluster.expect("response").first
      #expect(frame?["dynamic"] == true && frame?["action"] == "more")
    }
  }

  @Test func `controls, the text field, media and the default action are the extension's`() async throws {
    try await Self.with { parts in
      try await parts.device.expand("one")
      try await parts.device.tap("field", text: "hello")
      #expect(await parts.device.panel?.lines.last == "field hello")
      #expect(await parts.device.panel?.firstResponder == "field")
      await #expect { try await parts.device.tap("none") } throws: { ($0 as? DeviceError)?.code == .noSuchControl }
      try await parts.device.tapMediaButton()
      #expect(await parts.device.panel?.mediaButton?.isPlaying == true)
      try await parts.device.tapMediaButton()
      #expect(await parts.device.panel?.mediaButton?.isPlaying == false)
      try await parts.device.tap("open")
      #expect(await parts.cluster.expect("response").first?["action"]?.stringValue == NotificationAction.defaultIdentifier.text)
      await eventually("the panel is closed") { await parts.device.panel == nil }
      await eventually("that is told") { parts.under.closings == 1 }
      await #expect { try await parts.device.tap("open") } throws: { ($0 as? DeviceError)?.code == .noPanel }
    }
  }

  @Test func `an extension closes its panel without a response, and the notification stays`() async throws {
    try await Self.with { parts in
      try await parts.device.expand("one")
      try await parts.device.tap("close")
      #expect(await parts.device.panel == nil)
      await eventually("that is told") { parts.under.closings == 1 }
      #expect(await parts.device.delivered.map(\.identifier) == ["one"])
      #expect(await parts.device.waitingResponses == 0)
    }
  }

  @Test func `the default action and the dismissal pass an extension that does not take them`() async throws {
    for takes in [false, true] {
      try await Self.with({ ($0.takesDefaultAction, $0.takesDismissAction) = (takes, takes) }) { parts in
        parts.story.answer(NotificationAction.defaultIdentifier, with: .doNotDismiss)
        try await parts.device.expand("one")
        try await parts.device.open("one")
        if takes {
          await eventually("the extension has it") { parts.story.told.contains("asked \(NotificationAction.defaultIdentifier)") }
          parts.story.answer(NotificationAction.dismissIdentifier, with: .dismissAndForwardAction)
          await eventually("it has answered") { (try? await parts.device.dismiss("one")) != nil }
        }
        let action = await parts.cluster.expect("response").first?["action"]?.nameValue
        #expect(action == (takes ? NotificationAction.dismissIdentifier : NotificationAction.defaultIdentifier))
        #expect(await parts.cluster.frames("response").count == 1)
      }
    }
  }

  @Test func `the actions of a published category are the notification's, expanded or not`() async throws {
    try await Self.with { parts in
      let published: JSONValue = ["identifier": "published", "actions": [["identifier": "buy", "title": "Buy"]]]
      for (delivery, id) in [(2, "two"), (3, "three")] as [(Int64, String)] {
        var frame = notify(delivery, id: id, revision: "\(delivery)", category: "published")
        frame.set("category", published)
        await parts.cluster.send(frame)
      }
      await eventually("both are shown") { parts.under.story.contains("shown three 3") }
      await #expect { try await parts.device.respond(to: "two", action: "sell") } throws: { ($0 as? DeviceError)?.code == .noSuchAction }
      try await parts.device.respond(to: "two", action: "buy")
      #expect(try await parts.device.expand("three").actions.map(\.identifier) == ["buy"])
      try await parts.device.respond(to: "three", action: "buy")
      let frames = await parts.cluster.expect("response", count: 2)
      #expect(frames.map { $0["identifier"] } == ["two", "three"] && frames.allSatisfy { $0["dynamic"] == nil })
    }
  }

  @Test func `a local notification has panels, and its responses stay on the device`() async throws {
    try await Self.with { parts in
      parts.story.answer("like", with: .dismissAndForwardAction)
      let content = NotificationContent(title: "Tea", categoryIdentifier: "reply")
      try await parts.device.userNotificationCenter.add(NotificationRequest(identifier: "tea", content: content))
      await eventually("it is shown") { parts.under.story.contains("shown tea local") }
      try await parts.device.expand("tea")
      try await parts.device.respond(to: "tea", action: "like")
      await eventually("the application has it") { parts.delegate.responses.map(\.actionIdentifier) == ["like"] }
      #expect(await parts.device.waitingResponses == 0)
    }
  }

  @Test func `a notification without an extension has a panel with its content and the category's actions`() async throws {
    try await Self.with({ $0.categories = ["other"] }) { parts in
      let panel = try await parts.device.expand("one")
      #expect(panel.showsDefaultContent && panel.lines.isEmpty && panel.actions.count == 2)
      #expect(panel.description.contains("│ Chat") && panel.description.contains("<Reply …>  <Like>"))
      let id = try await parts.device.respond(to: "one", action: "like")
      #expect(await parts.cluster.expect("response").map { $0["response"]?.stringValue } == [id])
      await #expect { try await parts.device.expand("none") } throws: { ($0 as? DeviceError)?.code == .noSuchNotification }
    }
  }

  @Test func `a panel has a place for each picture`() async throws {
    try await Self.with({ ($0.categories, $0.hidesDefaultContent) = (["photos"], true) }) { parts in
      let photo = Data("GIF89a".utf8) + Data(repeating: 0, count: 94)
      let song = Data("ID3".utf8) + Data(repeating: 0, count: 97)
      var sources: [AttachmentSource] = []
      for (identifier, content) in [("photo", photo), ("song", song)] {
        let path = "\(parts.path)-\(identifier)"
        try content.write(to: URL(fileURLWithPath: path))
        sources.append(AttachmentSource(identifier: Name(identifier), path: path))
      }
      let center = parts.device.userNotificationCenter
      for category in ["other", "photos"] as [Name] {
        parts.story.draws(["photo", "none"])
        let content = NotificationContent(title: "Party", categoryIdentifier: category)
        for source in sources where !FileManager.default.fileExists(atPath: source.path) {
          try (source.identifier == "photo" ? photo : song).write(to: URL(fileURLWithPath: source.path))
        }
        try await center.add(NotificationRequest(identifier: category, content: content, attachments: sources))
        await eventually("it is shown") { parts.under.story.contains("shown \(category) local") }
        let text = try await parts.device.expand(category).description
        #expect(text.contains("│ photo ") && text.contains("│ image/gif ") && text.contains("│ 100 bytes "))
        // The default content has all attachments, an extension the pictures that it names.
        #expect(text.contains("audio/mpeg") == (category == "other"))
      }
    }
  }

  @Test(arguments: [true, false]) func `an extension opens the files of its notification, which stay until it or the panel is done`(
    _ stops: Bool
  ) async throws {
    try await Self.with { parts in
      let (path, photo) = (parts.path + "-photo", AttachmentHistory.contents[0])
      try photo.write(toFile: path, atomically: false, encoding: .utf8)
      let center = parts.device.userNotificationCenter
      var request = NotificationRequest(
        identifier: "tea", content: NotificationContent(title: "Tea", categoryIdentifier: "reply"),
        attachments: [AttachmentSource(identifier: "photo", path: path)])
      try await center.add(request)
      try await parts.device.expand("tea")
      for _ in 1...2 { try await parts.device.tap("read") }
      #expect(parts.story.told.suffix(2) == ["read \(photo)", "read \(photo)"])
      // A newer one without the file takes its place.
      request.attachments = []
      try await center.add(request)
      try await parts.device.tap("stop")
      var files: [String] { (try? FileManager.default.contentsOfDirectory(atPath: parts.path + "-attachments")) ?? [] }
      await eventually("nothing uses the store") { await parts.device.attachmentTasks == 0 }
      #expect(files == [AttachmentStoreTests.Photo(photo).hash])
      if stops { try await parts.device.tap("stop") } else { await parts.device.collapse() }
      await eventually("the file is gone") { files.isEmpty }
    }
  }

  @Test(arguments: [NotificationAction.defaultIdentifier, "like"])
  func `an extension that opens the application itself and forwards makes one response of one action`(_ action: Name) async throws {
    try await Self.with({ $0.takesDefaultAction = true }) { parts in
      await parts.cluster.send(Self.chat(2, "two"))
      await eventually("it is shown") { parts.under.story.contains("shown two 2") }
      parts.story.answer(action, with: .dismissAndForwardAction)
      parts.story.openItself()
      try await parts.device.expand("one")
      let id = try await parts.device.respond(to: "one", action: action)
      await eventually("the panel is closed") { await parts.device.panel == nil }
      // What is forwarded is durable a moment later.
      await parts.cluster.expect("response")
      let last = try await parts.device.respond(to: "two", action: "like")
      let frames = await parts.cluster.expect("response", count: 2)
      #expect(frames.map { $0["action"]?.nameValue } == [NotificationAction.defaultIdentifier, "like"])
      #expect(frames.count == 2 && frames.last?["response"]?.stringValue == last)
      #expect((frames.first?["response"]?.stringValue == id) == (action == NotificationAction.defaultIdentifier))
      #expect(frames.first?["unanswered"] == nil)
      await eventually("the application has both") { parts.delegate.responses.map(\.id).last == last }
      #expect(parts.delegate.responses.map(\.isUnanswered) == [false, false])
      #expect(await parts.device.delivered.isEmpty)
    }
  }

  @Test func `a panel as text marks what destroys something`() throws {
    let actions = [
      NotificationAction(identifier: "keep", title: "Keep"),
      NotificationAction(identifier: "delete", title: "Delete", options: [.destructive]),
      NotificationAction(identifier: "burn", title: "Burn", options: [.destructive], textInput: .init()),
    ]
    let request = NotificationRequest(identifier: "one", content: NotificationContent(title: "Order"))
    let notification = DeliveredNotification(
      try request.frame(id: "1"), takenAt: 1, isLocal: true, ServiceExtensions(chain: nil, locale: nil))
    let panel = Panel(notification: notification, title: "Shop", actions: actions)
    #expect(panel.description.contains("│ <Keep>  <! Delete>  <! Burn …> "))
  }

  @Test func `no text of a panel controls the terminal`() async throws {
    try await Self.with { parts in
      await parts.cluster.send(Self.chat(2, "\u{1B}[2J\u{202E}\n\u{7}"))
      await eventually("it is refused or shown") { !parts.under.events.isEmpty }
      let content = NotificationContent(title: "\u{1B}[2J", body: "a\u{7}\nb\u{202E}", categoryIdentifier: "reply")
      try await parts.device.userNotificationCenter.add(NotificationRequest(identifier: "tea", content: content))
      await eventually("it is shown") { parts.under.story.contains("shown tea local") }
      let text = try await parts.device.expand("tea").description
      #expect(!text.contains("\u{1B}") && !text.contains("\u{7}") && !text.contains("\u{202E}"))
      #expect(text.contains("│ a ") && text.contains("│ b "))
    }
  }
}

extension DeviceUnderTest {
  /// The panels that were told.
  fileprivate var panels: [Panel] { events.compactMap { if case .panel(let panel) = $0 { panel } else { nil } } }
  /// How many panels were closed.
  fileprivate var closings: Int { events.count { if case .panelClosed = $0 { true } else { false } } }
}

/// What an extension is to answer, and what it was told.
private final class ExtensionStory: Sendable {
  private struct State {
    var told: [String] = []
    var answers: [Name: ContentExtensionResponseOption?] = [:]
    var pictures: [Name] = []
    var opensItself = false
  }

  private let state = Mutex(State())

  /// Whether the extension performs the default action at each response.
  var opensItself: Bool { state.withLock { $0.opensItself } }

  func openItself() { state.withLock { $0.opensItself = true } }

  var told: [String] { state.withLock { $0.told } }

  var pictures: [Name] { state.withLock { $0.pictures } }

  /// The attachments that the extension draws from now on.
  func draws(_ pictures: [Name]) { state.withLock { $0.pictures = pictures } }

  func note(_ what: String) { state.withLock { $0.told.append(what) } }

  /// Nil: it never answers.
  func answer(_ action: Name, with option: ContentExtensionResponseOption?) { state.withLock { $0.answers[action] = .some(option) } }

  func answer(to action: Name) -> ContentExtensionResponseOption? { state.withLock { $0.answers[action] ?? .dismissAndForwardAction } }
}

/// An extension that answers as the test says.
private final class ToldExtension: ContentExtension {
  private let story: ExtensionStory
  /// The notification whose file was opened.
  private var read: DeliveredNotification?

  init(_ story: ExtensionStory) { self.story = story }

  func didReceive(_ notification: DeliveredNotification, in context: ContentExtensionContext) {
    story.note("drawn \(notification.id)")
    context.lines.append(PanelLine(notification.id))
    context.pictures = story.pictures
    context.controls = [
      PanelControl(identifier: "field", title: "Say", kind: .textField(placeholder: "…", buttonTitle: "Send")),
      PanelControl(identifier: "actions", title: "Actions"), PanelControl(identifier: "open", title: "Open"),
      PanelControl(identifier: "close", title: "Close"), PanelControl(identifier: "read", title: "Read"),
      PanelControl(identifier: "stop", title: "Stop"),
    ]
    context.mediaPlayPauseButtonType = .default
  }

  func didReceive(_ response: NotificationResponse, in context: ContentExtensionContext) async -> ContentExtensionResponseOption {
    story.note("asked \(response.actionIdentifier)")
    if story.opensItself { try? context.performNotificationDefaultAction() }
    if let option = story.answer(to: response.actionIdentifier) {
      context.lines.append(PanelLine(response.actionIdentifier.text))
      return option
    }
    await Latch().waitUnlessCancelled()
    story.note("canceled \(response.actionIdentifier)")
    return .doNotDismiss
  }

  func didTap(_ control: Name, text: String?, in context: ContentExtensionContext) {
    switch control {
    case "actions":
      context.notificationActions = [NotificationAction(identifier: "more", title: "More", options: [.authenticationRequired])]
    case "close": context.dismissNotificationContentExtension()
    case "open": try? context.performNotificationDefaultAction()
    case "read":
      read = context.panel.notification
      let file = context.startAccessing("photo", of: context.panel.notification)
      story.note("read \(file.flatMap { try? String(contentsOfFile: $0.path, encoding: .utf8) } ?? "nothing")")
    case "stop": if let read { context.stopAccessing("photo", of: read) }
    default: context.lines.append("\(control) \(text ?? "")")
    }
  }

  func mediaPlay(in context: ContentExtensionContext) { context.mediaPlayingStarted() }
  func mediaPause(in context: ContentExtensionContext) { context.mediaPlayingPaused() }
}

/// A delegate that notes the responses.
private final class ToldDelegate: UserNotificationCenterDelegate {
  func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions { .all }

  private let state = Mutex<[NotificationResponse]>([])

  var responses: [NotificationResponse] { state.withLock { $0 } }

  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    state.withLock { $0.append(response) }
  }
}

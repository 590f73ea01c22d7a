import Notifications
import TestSupport
import Testing

@testable import DeviceClient

/// What a panel's state decides, and random histories of it against a plain list of what became of each response.
@Suite struct PanelStateTests {
  private static let category = NotificationCategory(
    identifier: "chat",
    actions: [
      NotificationAction(identifier: "like", title: "Like"), NotificationAction(identifier: "reply", title: "Reply", textInput: .init()),
    ])

  private static func notification(
    _ id: String, _ identifier: Name = "one", category: Name? = "chat", thread: Name? = "t"
  ) throws -> DeliveredNotification {
    let request = NotificationRequest(
      identifier: identifier,
      content: NotificationContent(title: "Order", threadIdentifier: thread, categoryIdentifier: category))
    return DeliveredNotification(
      try request.frame(id: id), takenAt: 1, isLocal: true, ServiceExtensions(chain: nil, locale: nil))
  }

  private static func state(_ change: (inout ContentExtensionDeclaration) -> Void = { _ in }) throws -> PanelState {
    var declaration = ContentExtensionDeclaration(categories: ["chat", "talk"]) { SilentExtension() }
    change(&declaration)
    return PanelState(try notification("1"), category: category, declaration: declaration, application: "com.example.shop")
  }

  private static func response(_ id: String, _ action: Name = "like") -> ResponseFrame {
    ResponseFrame(response: id, receipt: "receipt", identifier: "one", action: action)
  }

  @Test func `a panel as text has the colors of its lines on a terminal only, and none of foreign text`() throws {
    let request = NotificationRequest(identifier: "a", content: NotificationContent(title: "\u{1B}[31mTea"))
    let notification = DeliveredNotification(
      try request.frame(id: "1"), takenAt: 1, isLocal: true, ServiceExtensions(chain: nil, locale: nil))
    let declaration = ContentExtensionDeclaration(categories: []) { preconditionFailure("none is made") }
    var state = PanelState(notification, category: nil, declaration: declaration, application: "shop")
    state.change { $0.lines = [PanelLine("Going!\u{1B}[2J", .green), "so \(7)"] }
    let colored = state.panel.text(isColored: true)
    #expect(colored.contains("│ \u{1B}[32mGoing! [2J\u{1B}[0m ") && colored.contains("│ so 7 "))
    #expect(colored.count { $0 == "\u{1B}" } == 2)
    #expect(!state.panel.description.contains("\u{1B}"))
    let plain = colored.replacing("\u{1B}[32m", with: "").replacing("\u{1B}[0m", with: "")
    #expect(plain == state.panel.description)
  }

  @Test func `a response is stored before the extension gets it, and its answer decides`() throws {
    for option in ContentExtensionResponseOption.allCases {
      var state = try Self.state()
      #expect(state.begin() == [.draw(state.panel.notification)])
      #expect(try state.respond(Self.response("a")))
      #expect(state.answered("a", option).isEmpty, "it is not stored yet")
      #expect(state.stored("b").isEmpty)
      #expect(state.stored("a") == [.ask(Self.response("a"))])
      #expect(throws: DeviceError.self) { try state.respond(Self.response("b")) }
      #expect(state.answered("b", option).isEmpty)
      let expected: [PanelState.Action] =
        switch option {
        case .doNotDismiss: [.end("a", .kept)]
        case .dismiss: [.end("a", .dismissed), .close]
        case .dismissAndForwardAction: [.end("a", .forwarded), .close]
        }
      #expect(state.answered("a", option) == expected)
      #expect(state.answered("a", option).isEmpty && state.deadlinePassed("a").isEmpty)
    }
  }

  @Test func `an extension takes the default action and the dismissal only where it declares that`() throws {
    for action in [NotificationAction.defaultIdentifier, NotificationAction.dismissIdentifier] {
      var state = try Self.state()
      #expect(try !state.respond(Self.response("a", action)))
      var other = try Self.state {
        $0.takesDefaultAction = true
        $0.takesDismissAction = true
      }
      #expect(try other.respond(Self.response("a", action)))
    }
    var none = PanelState(try Self.notification("1"), category: Self.category, declaration: nil, application: "a")
    #expect(none.begin().isEmpty)
    #expect(try !none.respond(Self.response("a")))
  }

  @Test func `the extension draws newer notifications of the thread and its categories, and the panel stays with its own`() throws {
    var state = try Self.state()
    for (notification, isDrawn) in [
      (try Self.notification("2", "two"), true), (try Self.notification("3", "two", category: "talk"), true),
      (try Self.notification("4", "two", thread: "u"), false), (try Self.notification("5", "two", category: "other"), false),
      (try Self.notification("6", "two", category: nil), false), (try Self.notification("7", "one", thread: nil), true),
      (try Self.notification("8", "two", thread: nil), false),
    ] {
      #expect(state.received(notification) == (isDrawn ? [.draw(notification)] : []), "\(notification.id)")
    }
    #expect(state.panel.notification.id == "7")
    let (other, late) = (try Self.notification("9", category: "talk"), try Self.notification("10"))
    #expect(state.received(other) == [.close], "it is another category's now")
    #expect(state.received(late).isEmpty)
    #expect(state.close().isEmpty)
  }

  @Test func `an action that is not the category's is dynamic, and one that the extension took away is refused`() throws {
    var state = try Self.state()
    #expect(try state.judge("like", nil) == false)
    #expect(try state.judge("reply", "yes") == false)
    state.change {
      $0.actions = [
        NotificationAction(identifier: "like", title: "Like", textInput: .init()), NotificationAction(identifier: "more", title: "More"),
      ]
    }
    #expect(try state.judge("like", "very much") == true, "the category has it without a text")
    #expect(try state.judge("more", nil) == true)
    #expect(try state.judge(NotificationAction.defaultIdentifier, nil) == false)
    for (action, text, code) in [
      ("reply", "yes", DeviceError.Code.noSuchAction), ("like", nil, .wrongText), ("more", "text", .wrongText),
      ("like", String(repeating: "x", count: 5_000), .wrongText),
    ] as [(Name, String?, DeviceError.Code)] {
      #expect { try state.judge(action, text) } throws: { ($0 as? DeviceError)?.code == code }
    }
  }

  @Test func `an action that no response can name is not shown, and at most ten are`() throws {
    var state = try Self.state()
    state.change {
      $0.actions =
        [NotificationAction.defaultIdentifier, NotificationAction.dismissIdentifier, "", "a\nb", Name(String(repeating: "x", count: 129))]
        .map { NotificationAction(identifier: $0, title: "Bad") }
        + (0..<12).map { NotificationAction(identifier: Name("\($0)"), title: "Good") }
    }
    #expect(state.panel.actions.map(\.identifier) == (0..<10).map { Name("\($0)") })
  }

  @Test func `what is not declared is not drawn`() throws {
    let change: (inout Panel) -> Void = {
      $0.title = "Chat"
      $0.controls = [PanelControl(identifier: "go", title: "Go")]
      $0.preferredSize = PanelSize(width: .nan, height: 1)
    }
    var plain = try Self.state { $0.initialContentSizeRatio = -1 }
    plain.change(change)
    #expect(plain.panel.title == "com.example.shop" && plain.panel.controls.isEmpty && plain.panel.showsDefaultContent)
    #expect(plain.panel.initialSizeRatio == nil && plain.panel.preferredSize == nil)
    #expect(throws: DeviceError.self) { try plain.tap("go", text: nil) }
    var full = try Self.state {
      ($0.overridesTitle, $0.allowsInteraction, $0.hidesDefaultContent, $0.initialContentSizeRatio) = (true, true, true, 0.5)
    }
    full.change(change)
    #expect(full.panel.title == "Chat" && full.panel.controls.count == 1 && !full.panel.showsDefaultContent)
    #expect(full.panel.initialSizeRatio == 0.5)
    #expect(try full.tap("go", text: nil) == [.tap("go", text: nil)])
  }

  @Test func `one text field takes what is typed, and gives its text by its own button`() throws {
    var state = try Self.state { $0.allowsInteraction = true }
    let field = PanelControl.Kind.textField(placeholder: "Say", buttonTitle: "Send")
    state.change {
      $0.controls = [
        PanelControl(identifier: "a", title: "A", kind: field), PanelControl(identifier: "b", title: "B", kind: field),
        PanelControl(identifier: "go", title: "Go"),
      ]
      $0.firstResponder = "go"
    }
    #expect(state.panel.firstResponder == nil, "a button takes no text")
    #expect(try state.tap("a", text: nil) == [])
    #expect(state.panel.firstResponder == "a")
    #expect(try state.tap("b", text: "hello") == [.tap("b", text: "hello")])
    #expect(state.panel.firstResponder == "b")
    #expect(throws: DeviceError.self) { try state.tap("go", text: "hello") }
    #expect(throws: DeviceError.self) { try state.tap("b", text: String(repeating: "x", count: 5_000)) }
    state.change { $0.controls.removeAll { $0.identifier == "b" } }
    #expect(state.panel.firstResponder == nil)
  }

  @Test func `the media button plays, and pauses what plays`() throws {
    var state = try Self.state()
    #expect(throws: DeviceError.self) { try state.tapMediaButton() }
    state.change { $0.mediaButton = MediaButton(.overlay) }
    #expect(try state.tapMediaButton() == [.play(true)])
    state.change { $0.mediaButton?.isPlaying = true }
    #expect(try state.tapMediaButton() == [.play(false)])
  }

  @Test(arguments: 0..<(isComplete ? 50 : 10)) func `in every history each stored response is handled or forwarded, once`(seed: UInt64)
    throws
  {
    var random = SeededRandom(seed: seed)
    var state = try Self.state { $0.takesDefaultAction = seed % 2 == 0 }
    var history = NaiveHistory()
    for step in 0..<200 {
      // An older response now and then: a late answer of the extension.
      let known = history.responses.randomElement(using: &random) ?? "none"
      let id = Int.random(in: 0...2, using: &random) == 0 ? known : history.responses.last ?? "none"
      let actions: [PanelState.Action]
      var failed: String?
      switch Int.random(in: 0...9, using: &random) {
      case 0...2:
        let response = Self.response("\(step)", step % 5 == 0 ? NotificationAction.defaultIdentifier : "like")
        if (try? state.respond(response)) == true { history.hold(response) }
        actions = []
      case 3, 4:
        let fails = Int.random(in: 0...5, using: &random) == 0
        if fails, case .storing(let frame) = state.phase, frame.response == id { failed = id }
        actions = state.stored(id, failed: fails)
      case 5, 6: actions = state.answered(id, ContentExtensionResponseOption.allCases.randomElement(using: &random) ?? .dismiss)
      case 7: actions = Int.random(in: 0...3, using: &random) == 0 ? state.deadlinePassed(id) : []
      case 8: actions = try state.received(Self.notification("\(step)", step % 2 == 0 ? "one" : "two"))
      default: actions = Int.random(in: 0...20, using: &random) == 0 ? state.close() : []
      }
      history.note(actions, failed: failed)
      #expect(history.problem == nil, "seed \(seed), step \(step): \(history.problem ?? "")")
    }
    history.note(state.close())
    #expect(history.problem == nil && history.unfinished.isEmpty && history.isClosed, "seed \(seed): \(history.unfinished)")
  }
}

/// A plain list of what was asked for, and the first thing in it that must not be.
private struct NaiveHistory {
  private(set) var responses: [String] = []
  private(set) var problem: String?
  private(set) var isClosed = false
  private var asked: [String] = []
  private var ended: [String] = []

  var unfinished: [String] { responses.filter { !ended.contains($0) } }

  mutating func hold(_ response: ResponseFrame) {
    if isClosed { problem = "\(response.response) is stored after the end" }
    if !unfinished.isEmpty { problem = "\(response.response) is stored while the extension has \(unfinished)" }
    responses.append(response.response)
  }

  /// - Parameter failed: one that could not be stored, which the person was told.
  mutating func note(_ actions: [PanelState.Action], failed: String? = nil) {
    if isClosed, !actions.isEmpty { problem = "\(actions) after the end" }
    for action in actions {
      switch action {
      case .ask(let response):
        if responses.last != response.response || asked.contains(response.response) { problem = "\(response.response) is asked for again" }
        asked.append(response.response)
      case .end(let response, let end):
        if !responses.contains(response) || ended.contains(response) { problem = "\(response) ends twice" }
        if !asked.contains(response), end != .unanswered { problem = "\(response) was not asked for, and ends as \(end)" }
        ended.append(response)
      case .close: isClosed = true
      default: break
      }
    }
    if let failed { ended.append(failed) }
  }
}

/// An extension that does nothing.
private final class SilentExtension: ContentExtension {
  func didReceive(_ notification: DeliveredNotification, in context: ContentExtensionContext) {}
}

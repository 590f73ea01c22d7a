internal import Notifications

/// What decides about an expanded notification: events in, actions out. A value without a clock.
///
/// One response at a time is with the extension. Whatever ends the panel forwards it, so each response that was stored is either handled by
/// the extension or forwarded, exactly once.
struct PanelState {
  /// Where the panel is.
  enum Phase: Equatable {
    /// It is drawn, and the person may act.
    case open
    /// A response for the extension is on its way to the disk.
    case storing(ResponseFrame)
    /// The extension has a response, and has not answered.
    case answering(ResponseFrame)
    /// It is not drawn any more.
    case closed
  }

  /// What the device has to do, in this order.
  enum Action: Equatable {
    /// Give the extension a notification to draw.
    case draw(DeliveredNotification)
    /// Give the extension a stored response, until its deadline.
    case ask(ResponseFrame)
    /// End what the extension has of a stored response.
    case end(String, HeldEnd)
    /// Tell the extension that its control was tapped.
    case tap(Name, text: String?)
    /// Tell the extension to play or to pause.
    case play(Bool)
    /// Take the panel away.
    case close
  }

  private(set) var phase = Phase.open
  private(set) var panel: Panel
  /// The extension's declaration; nil if the category has none.
  let declaration: ContentExtensionDeclaration?
  /// The category's actions, which the cluster knows; nil if the device knows no such category.
  private let category: NotificationCategory?

  /// Opens a panel.
  ///
  /// - Parameter application: the title, unless the extension has one.
  init(
    _ notification: DeliveredNotification, category: NotificationCategory?, declaration: ContentExtensionDeclaration?, application: Name
  ) {
    (self.declaration, self.category) = (declaration, category)
    panel = Panel(notification: notification, title: application.text, actions: category?.actions ?? [])
    panel.showsDefaultContent = declaration?.hidesDefaultContent != true
    panel.initialSizeRatio = declaration?.initialContentSizeRatio.flatMap { $0.isFinite && $0 > 0 ? $0 : nil }
  }

  private var isOpen: Bool { phase != .closed }

  // MARK: Notifications

  /// The panel is there.
  func begin() -> [Action] { declaration == nil ? [] : [.draw(panel.notification)] }

  /// A notification was shown.
  mutating func received(_ notification: DeliveredNotification) -> [Action] {
    guard isOpen else { return [] }
    let content = notification.content
    if notification.identifier == panel.identifier {
      // Its actions and its extension are another category's.
      guard content.categoryIdentifier == panel.notification.content.categoryIdentifier else { return close() }
      panel.notification = notification
    } else {
      let thread = panel.notification.content.threadIdentifier
      guard thread != nil, thread == content.threadIdentifier else { return [] }
      guard let category = content.categoryIdentifier, declaration?.categories.contains(category) == true else { return [] }
    }
    return declaration == nil ? [] : [.draw(notification)]
  }

  // MARK: Responses

  /// Whether the extension takes an action of the panel.
  func takes(_ action: Name) -> Bool {
    guard let declaration else { return false }
    return switch action {
    case NotificationAction.defaultIdentifier: declaration.takesDefaultAction
    case NotificationAction.dismissIdentifier: declaration.takesDismissAction
    default: true
    }
  }

  /// Whether an action is none of the category: the extension has added it, or has made a text input of it or the reverse.
  func isDynamic(_ action: NotificationAction) -> Bool {
    category?.actions.contains { $0.identifier == action.identifier && ($0.textInput == nil) == (action.textInput == nil) } != true
  }

  /// The person has responded. Throws while the extension has not answered for the last response.
  ///
  /// - Returns: whether the extension takes the response, which is stored before anything else happens to it; else it is passed on.
  mutating func respond(_ response: ResponseFrame) throws(DeviceError) -> Bool {
    guard isOpen else { throw DeviceError(.noPanel, "the panel is closed") }
    // Also what the extension does not take: one notification gets one response.
    guard case .open = phase else {
      throw DeviceError(.panelBusy, "the content extension still handles the last response: try again when it has answered")
    }
    guard takes(response.action) else { return false }
    phase = .storing(response)
    return true
  }

  /// The response is stored, or nil that it cannot be.
  mutating func stored(_ response: String, failed: Bool = false) -> [Action] {
    guard case .storing(let frame) = phase, Name(frame.response) == Name(response) else { return [] }
    phase = failed ? .open : .answering(frame)
    return failed ? [] : [.ask(frame)]
  }

  /// The extension has answered.
  mutating func answered(_ response: String, _ option: ContentExtensionResponseOption) -> [Action] {
    guard case .answering(let frame) = phase, Name(frame.response) == Name(response) else { return [] }
    switch option {
    case .doNotDismiss:
      phase = .open
      return [.end(response, .kept)]
    case .dismiss: return close(.dismissed)
    case .dismissAndForwardAction: return close(.forwarded)
    }
  }

  /// The extension has not answered in time.
  mutating func deadlinePassed(_ response: String) -> [Action] {
    guard case .answering(let frame) = phase, Name(frame.response) == Name(response) else { return [] }
    return close()
  }

  /// The panel closes; the response that the extension has is forwarded, unless it has answered.
  mutating func close(_ end: HeldEnd = .unanswered) -> [Action] {
    defer { phase = .closed }
    switch phase {
    case .open: return [.close]
    case .storing(let frame), .answering(let frame): return [.end(frame.response, end), .close]
    case .closed: return []
    }
  }

  /// What becomes of the response that the extension has when it opens the application itself.
  ///
  /// One action of the person makes one response: the default action is forwarded, and another one gives way to it.
  var endByDefaultAction: HeldEnd {
    switch phase {
    case .storing(let frame), .answering(let frame): frame.action == NotificationAction.defaultIdentifier ? .forwarded : .dismissed
    case .open, .closed: .dismissed
    }
  }

  // MARK: Controls

  /// The person has tapped a control, or has typed a text into one and tapped its button.
  mutating func tap(_ control: Name, text: String?) throws(DeviceError) -> [Action] {
    guard isOpen, let found = panel.controls.first(where: { $0.identifier == control }) else {
      throw DeviceError(.noSuchControl, "the panel has no control '\(control)'")
    }
    guard found.isTextField else {
      guard text == nil else { throw DeviceError(.wrongText, "the control '\(control)' takes no text") }
      return [.tap(control, text: nil)]
    }
    panel.firstResponder = control
    guard let text else { return [] }
    guard text.utf8.count <= Registration.userTextBytes else {
      throw DeviceError(.wrongText, "the text has more than \(Registration.userTextBytes) bytes")
    }
    return [.tap(control, text: text)]
  }

  /// The person has tapped the media button.
  func tapMediaButton() throws(DeviceError) -> [Action] {
    guard isOpen, let button = panel.mediaButton else { throw DeviceError(.noSuchControl, "the panel has no media button") }
    return [.play(!button.isPlaying)]
  }

  // MARK: The extension's content

  /// Changes what the extension draws, by what it has declared.
  mutating func change(_ body: (inout Panel) -> Void) {
    guard isOpen else { return }
    var changed = panel
    body(&changed)
    (panel.pictures, panel.lines) = (changed.pictures, changed.lines)
    panel.preferredSize = changed.preferredSize.flatMap { $0.width.isFinite && $0.height.isFinite ? $0 : nil }
    panel.mediaButton = changed.mediaButton
    panel.actions = Array(changed.actions.filter { $0.isResponse }.prefix(NotificationCategory.maximumActions))
    if declaration?.overridesTitle == true { panel.title = changed.title }
    if declaration?.allowsInteraction == true { panel.controls = changed.controls }
    let field = changed.firstResponder.flatMap { name in panel.controls.first { $0.identifier == name && $0.isTextField } }
    panel.firstResponder = field?.identifier
  }
}

extension NotificationAction {
  /// Whether the protocol allows a response with this action.
  fileprivate var isResponse: Bool {
    guard identifier != Self.defaultIdentifier, identifier != Self.dismissIdentifier else { return false }
    let response = ResponseFrame(response: "r", receipt: "r", identifier: "i", action: identifier)
    return (try? FrameRules.check(response)) != nil
  }
}

/// How the time of a stored response with a content extension ends.
enum HeldEnd: Sendable, Equatable {
  /// The extension has handled it, and the notification stays.
  case kept
  /// The extension has handled it, and the notification leaves the list.
  case dismissed
  /// The extension has forwarded it.
  case forwarded
  /// It is forwarded because the extension has not answered.
  case unanswered
}

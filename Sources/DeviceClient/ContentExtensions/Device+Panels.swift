internal import EventLoop
public import Notifications

/// The panel of the device: its state, its extension, and the deadline of the response that the extension has.
final class OpenPanel {
  let context: ContentExtensionContext
  let contentExtension: (any ContentExtension)?
  let deadline: Timer
  /// The extension's work on a response.
  var answering: Task<Void, Never>?
  /// The notification that the extension's response is to. A newer one may have taken its place in the panel.
  var responded: DeliveredNotification?
  /// The panel as it was told last; nil until `expand` has returned it.
  var drawn: Panel?
  var isDrawingScheduled = false

  init(_ context: ContentExtensionContext, _ contentExtension: (any ContentExtension)?, _ deadline: Timer) {
    (self.context, self.contentExtension, self.deadline) = (context, contentExtension, deadline)
  }
}

/// Expanded notifications, and what the person does in them.
extension Device {
  /// The notification that is expanded, as it is to be drawn at this moment; nil without one.
  public var panel: Panel? { openPanel?.context.panel }

  // MARK: Actions of the person

  /// Expands a delivered notification: opens its panel in place of another one.
  ///
  /// The first declared content extension with its category draws in it. The event `panel` tells each change, and `panelClosed` its end.
  /// While it is open, `respond`, `open` and `dismiss` for its notification go to the extension, if that takes the action.
  /// - Returns: the panel as the extension has drawn it so far.
  @discardableResult
  public func expand(_ identifier: Name) throws(DeviceError) -> Panel {
    let (connection, notification) = try delivered(identifier)
    if let openPanel, openPanel.context.panel.identifier == identifier { return openPanel.context.panel }
    guard !hidesBehindScreen(notification) else {
      throw DeviceError(.locked, "the person hides previews behind the locked screen: unlock it, and expand the notification then")
    }
    collapse()
    let category = notification.content.categoryIdentifier
    let declaration = category.flatMap { name in configuration.contentExtensions.first { $0.categories.contains(name) } }
    let state = PanelState(
      notification, category: connection.category(of: notification), declaration: declaration, application: connection.hello.application)
    panelNumber += 1
    let context = ContentExtensionContext(state, number: panelNumber, self)
    let open = OpenPanel(context, declaration?.make(), Timer(on: loop))
    openPanel = open
    perform(context.state.begin(), open)
    open.drawn = context.panel
    return context.panel
  }

  /// Closes the panel without a response; its notification stays in the list.
  public func collapse() { if let openPanel { closePanel(openPanel.context.number) } }

  /// Taps a control that the extension draws. A text field then takes what is typed; with a text, that is typed and handed over.
  public func tap(_ control: Name, text: String? = nil) throws(DeviceError) {
    let open = try expanded()
    perform(try open.context.state.tap(control, text: text), open)
    panelChanged(open.context.number)
  }

  /// Taps the button that plays and pauses media.
  public func tapMediaButton() throws(DeviceError) {
    let open = try expanded()
    perform(try open.context.state.tapMediaButton(), open)
  }

  /// Opens a file for the extension of this panel; nil if the panel is closed, or the file is not there.
  func openFile(_ media: Media, panel number: Int) -> String? {
    openPanel?.context.number == number ? attachments?.open(media) : nil
  }

  private func expanded() throws(DeviceError) -> OpenPanel {
    guard let openPanel else { throw DeviceError(.noPanel, "no notification is expanded") }
    return openPanel
  }

  // MARK: Responses

  /// Responds to the expanded notification; returns when the response is stored, or nil if another notification is meant.
  func respondInPanel(_ identifier: Name, _ action: Name, _ userText: String?) async throws(DeviceError) -> String? {
    guard let open = openPanel, open.context.panel.identifier == identifier else { return nil }
    let notification = open.context.panel.notification
    let response = ResponseFrame(
      response: Self.uniqueID(), receipt: notification.frame.receipt, identifier: identifier, action: action, userText: userText,
      at: try running().now, isDynamic: try open.context.state.judge(action, userText))
    if try open.context.state.respond(response) { try await hold(response, open) } else { try await pass(response, open) }
    return response.response
  }

  private func hold(_ response: ResponseFrame, _ open: OpenPanel) async throws(DeviceError) {
    let (connection, notification) = (try running(), open.context.panel.notification)
    let options = open.context.panel.actions.first { $0.identifier == response.action }?.options ?? []
    open.responded = notification
    do throws(DeviceError) {
      try await stored { (body) throws(DeviceError) in try connection.memory.hold(response, to: notification, options, body) }
    } catch {
      perform(open.context.state.stored(response.response, failed: true), open)
      throw error
    }
    perform(open.context.state.stored(response.response), open)
  }

  private func pass(_ response: ResponseFrame, _ open: OpenPanel) async throws(DeviceError) {
    let (connection, notification) = (try running(), open.context.panel.notification)
    try await stored { (body) throws(DeviceError) in
      try connection.respond(response, to: notification, body)
      closePanel(open.context.number)
    }
  }

  /// Opens the application past the extension, which asks for that, in place of the response that it has.
  func performDefaultAction(panel number: Int) throws(DeviceError) {
    guard let open = openPanel, open.context.number == number else { throw DeviceError(.noPanel, "the panel is closed") }
    let (connection, notification) = (try running(), open.context.panel.notification)
    let end = open.context.state.endByDefaultAction
    if end != .forwarded {
      let response = ResponseFrame(
        response: Self.uniqueID(), receipt: notification.frame.receipt, identifier: notification.identifier,
        action: NotificationAction.defaultIdentifier, at: connection.now)
      try connection.respond(response, to: notification) { _ in }
    }
    perform(open.context.state.close(end), open)
  }

  /// Gives the extension a response and waits for its answer.
  private func ask(_ response: NotificationResponse, panel number: Int) async {
    guard let open = openPanel, open.context.number == number, let contentExtension = open.contentExtension else { return }
    let option = await contentExtension.didReceive(response, in: open.context)
    guard openPanel === open else { return }
    perform(open.context.state.answered(response.id, option), open)
  }

  // MARK: The panel's state

  /// Does what the state of a panel asks for.
  private func perform(_ actions: [PanelState.Action], _ open: OpenPanel) {
    let context = open.context
    for action in actions {
      switch action {
      case .draw(let notification): open.contentExtension?.didReceive(notification, in: context)
      case .tap(let control, let text): open.contentExtension?.didTap(control, text: text, in: context)
      case .play(true): open.contentExtension?.mediaPlay(in: context)
      case .play(false): open.contentExtension?.mediaPause(in: context)
      case .ask(let frame):
        let response = NotificationResponse(
          id: frame.response, notification: open.responded ?? context.panel.notification, actionIdentifier: frame.action,
          userText: frame.userText,
          isUnanswered: false)
        open.deadline.handler = { [weak self] in self?.assumeIsolated { $0.deadlinePassed(frame.response) } }
        open.deadline.start(after: max(context.state.declaration?.answerMilliseconds ?? 0, 0))
        let number = context.number
        open.answering = Task(executorPreference: loop) { await self.ask(response, panel: number) }
      case .end(let response, let end):
        open.deadline.stop()
        open.answering?.cancel()
        connection?.end(response, end)
      case .close: leave(open)
      }
    }
  }

  private func deadlinePassed(_ response: String) {
    guard let open = openPanel else { return }
    perform(open.context.state.deadlinePassed(response), open)
  }

  /// An event of the device may be one for the panel.
  func noticed(_ event: DeviceEvent) {
    guard let open = openPanel else { return }
    switch event {
    case .shown(let notification), .updated(let notification):
      perform(open.context.state.received(notification), open)
      panelChanged(open.context.number)
    case .removed(_, let notifications): closePanel(of: notifications.map(\.identifier))
    default: break
    }
  }

  /// Closes the panel if it is of one of these notifications, which have left the list.
  func closePanel(of identifiers: [Name]) {
    guard let open = openPanel, identifiers.contains(open.context.panel.identifier) else { return }
    closePanel(open.context.number)
  }

  /// Closes this panel if it is still there.
  func closePanel(_ number: Int) {
    guard let open = openPanel, open.context.number == number else { return }
    perform(open.context.state.close(), open)
  }

  private func leave(_ open: OpenPanel) {
    draw(open)
    open.deadline.close()
    openPanel = nil
    open.context.closeFiles()
    tell(.panelClosed(open.context.panel))
  }

  /// Drops the panel at the device's end. The database has the response that the extension has not answered.
  func dropPanel() {
    openPanel?.deadline.close()
    openPanel?.answering?.cancel()
    openPanel?.context.closeFiles()
    openPanel = nil
  }

  // MARK: Drawing

  /// Tells the panel at the end of the turn, so that several changes are one event.
  func panelChanged(_ number: Int) {
    guard let open = openPanel, open.context.number == number, open.drawn != nil, !open.isDrawingScheduled else { return }
    open.isDrawingScheduled = true
    Task(executorPreference: loop) { await self.drawLater(number) }
  }

  private func drawLater(_ number: Int) async {
    guard let open = openPanel, open.context.number == number else { return }
    draw(open)
  }

  private func draw(_ open: OpenPanel) {
    open.isDrawingScheduled = false
    guard open.context.panel != open.drawn else { return }
    open.drawn = open.context.panel
    tell(.panel(open.context.panel))
  }
}

extension PanelState {
  /// Checks an action of the person by what the panel offers; returns whether it is one that the extension has added.
  func judge(_ action: Name, _ userText: String?) throws(DeviceError) -> Bool {
    try Device.judge(action, userText, NotificationCategory(identifier: "", actions: panel.actions), of: "its panel")
    return panel.actions.first { $0.identifier == action }.map { isDynamic($0) } ?? false
  }
}

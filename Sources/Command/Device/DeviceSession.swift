import DeviceClient
import EventLoop
import Glibc
import JSON
import Notifications
import Worker

/// One run of `carillon device`: the device, its events, and the instructions.
actor DeviceSession: LoopActor {
  /// The settings of the run.
  struct Behaviour {
    var isJSON = false
    /// Whether a person is at the terminal, who can be asked.
    var canAsk = false
    var connectTimeout: Duration?
  }

  nonisolated let loop: EventLoop

  private let configuration: DeviceConfiguration
  private let behaviour: Behaviour
  private let output = DeviceOutput()
  private var device: Device?
  private var text = DeviceText()
  private var categories: [NotificationCategory]
  private var hasConnected = false
  private var ending: Result<ExitCode, Failure>?
  private var whenEnded: CheckedContinuation<Void, Never>?
  private var watches: [SignalWatch] = []
  private var connectTimer: Timer?
  private var lastTrouble = ""
  /// Takes the person's answer whether notifications are wanted.
  private var question: CheckedContinuation<Bool, Never>?

  init(_ configuration: DeviceConfiguration, _ behaviour: Behaviour, on loop: EventLoop) {
    self.configuration = configuration
    self.behaviour = behaviour
    self.loop = loop
    categories = configuration.hello.categories ?? []
  }

  /// Runs until a signal, a command or the end of the input ends it, then leaves in order.
  ///
  /// - Parameter started: called when the device can execute instructions.
  func run(_ started: @Sendable () -> Void) async throws -> ExitCode {
    var configuration = configuration
    configuration.delegate = LocalResponses(output, isJSON: behaviour.isJSON)
    if behaviour.canAsk { configuration.authorizationPrompt = { [weak self] _ in await self?.ask() ?? false } }
    let device = Device(configuration, on: loop) { [weak self] event in self?.assumeIsolated { $0.received(event) } }
    self.device = device
    for signal in [SIGINT, SIGTERM] { watches.append(try SignalWatch(on: loop, signal: signal) { [weak self] in self?.stop() }) }
    do throws(DeviceError) { try await device.start() } catch {
      release()
      throw Self.failure(error)
    }
    await showWhatIsListed(device)
    if behaviour.canAsk, await device.authorization?.status == .notDetermined {
      let center = device.userNotificationCenter
      Task(executorPreference: loop) { try await center.requestAuthorization(options: [.alert, .sound, .badge]) }
    }
    started()
    if let timeout = behaviour.connectTimeout {
      connectTimer = Timer(on: loop) { [weak self] in self?.connectTimedOut(timeout) }
      connectTimer?.start(after: timeout.wholeMilliseconds)
    }
    await withCheckedContinuation { continuation in
      // Checked here, since other tasks may run between a check and an await.
      if ending == nil { whenEnded = continuation } else { continuation.resume() }
    }
    await device.close()
    // Nobody has decided: a device that is closed stores nothing.
    question?.resume(returning: false)
    release()
    let lost = await lostOutput()
    guard lost > 0 else { return try ending?.get() ?? .done }
    // Standard error may have the same reader.
    if case .failure(let failure) = ending { StandardError.lineIfRead("\(failure)") }
    StandardError.lineIfRead("nobody reads standard output: \(TerminalText.count(lost, "byte")) of it are lost")
    return .dependencyMissing
  }

  /// Gives the reader two seconds for the last lines; returns how many bytes it does not get.
  private func lostOutput() async -> Int {
    let patience = Timer(on: loop) { [output] in output.stopWaiting() }
    patience.start(after: 2_000)
    await output.waitForReader(bytes: 0)
    patience.close()
    return output.lost
  }

  private var urls: String { configuration.urls.joined(separator: ", ") }

  private static func failure(_ error: DeviceError) -> Failure {
    Failure(error.isRetriable ? .dependencyMissing : .wrongUsage, error.description)
  }

  private func release() {
    for watch in watches { watch.close() }
    watches = []
    connectTimer?.close()
    connectTimer = nil
  }

  /// Ends the run at the end of the input.
  func inputEnded() { end(.success(.done)) }

  private nonisolated func stop() { assumeIsolated { $0.end(.success(.done)) } }

  private nonisolated func connectTimedOut(_ timeout: Duration) {
    assumeIsolated { session in
      guard !session.hasConnected else { return }
      let trouble = session.lastTrouble.isEmpty ? "" : ": \(session.lastTrouble)"
      session.end(
        .failure(
          Failure(
            .dependencyMissing,
            "\(session.urls) has not welcomed the device within \(TerminalText.duration(Int64(timeout.wholeMilliseconds)))\(trouble)")))
    }
  }

  private func end(_ result: Result<ExitCode, Failure>) {
    if ending == nil { ending = result }
    whenEnded?.resume()
    whenEnded = nil
  }

  // MARK: Events

  private func received(_ event: DeviceEvent) {
    switch event {
    case .connected: hasConnected = true
    case .unreachable(let reason, let wait):
      lastTrouble = reason
      if wait == nil { end(.failure(Failure(.wrongUsage, reason))) }
    case .closed(let code, let reason, nil) where !hasConnected && ending == nil:
      // A cluster that refuses this hello will refuse it again.
      let isMissing = code == CloseCode.unauthorized.rawValue && configuration.hello.credential == nil
      let remedy = isMissing ? "; give --credential-file or --credential" : ""
      end(.failure(Failure(.wrongUsage, "the cluster does not take the device (close code \(code)): \(reason)\(remedy)")))
    case .closed(_, let reason, _): lastTrouble = reason
    case .unregistered: end(.success(.done))
    case .failed(let error): end(.failure(Self.failure(error)))
    default: break
    }
    if behaviour.isJSON {
      output.json(json(event).text)
    } else {
      showText(event)
    }
    if output.isFull { end(.success(.dependencyMissing)) }
  }

  /// What may be drawn of a notification at this moment. The device runs on this loop, too.
  private func preview(_ notification: DeliveredNotification) -> NotificationPreview? {
    device?.assumeIsolated { $0.preview(of: notification) }
  }

  private func json(_ event: DeviceEvent) -> JSONValue {
    var json = event.json
    switch event {
    case .shown(let notification), .updated(let notification):
      if let preview = preview(notification), preview.isHidden { json.set("preview", preview.object) }
    default: break
    }
    return json
  }

  private func show(_ notification: DeliveredNotification, mark: String) {
    output.line(text.notification(notification, mark: mark, categories: categories, preview: preview(notification)))
  }

  private func shown(_ notification: DeliveredNotification, mark: String) {
    output.line(text.shown(notification, mark: mark, categories: categories, preview: preview(notification)))
  }

  private func showText(_ event: DeviceEvent) {
    switch event {
    case .shown(let notification): shown(notification, mark: "")
    case .updated(let notification): shown(notification, mark: "(replaced)")
    case .panel(let panel): output.line(panel.text(isColored: text.isStyled))
    case .closed where ending != nil: break
    default: if let line = text.event(event) { output.line("-- \(line)") }
    }
  }

  private func showWhatIsListed(_ device: Device) async {
    guard !behaviour.isJSON else { return }
    output.line("-- \(DeviceText.plain(configuration.hello.application)) at \(urls); type help for what can be typed")
    for notification in await device.delivered.reversed() { show(notification, mark: "") }
  }

  // MARK: Instructions

  /// Asks the person whether notifications are wanted; returns the answer when it is typed.
  private func ask() async -> Bool {
    output.line("-- \(DeviceText.plain(configuration.hello.application)) would like to show notifications: type allow or deny")
    return await withCheckedContinuation { question = $0 }
  }

  /// Executes a line of standard input.
  func perform(line: String) async {
    await output.waitForReader(bytes: DeviceOutput.instructionBytes)
    guard ending == nil else { return }
    do throws(InstructionError) {
      if behaviour.isJSON {
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: line) } catch { throw InstructionError(description: "\(error)") }
        await perform(try DeviceInstruction(json: value), command: value["command"]?.stringValue ?? "")
      } else if let instruction = try DeviceInstruction(typed: line) {
        await perform(instruction, command: "")
      }
    } catch {
      show("error", ["message": error.description], "!! \(DeviceText.plain(error.description))")
    }
  }

  private func perform(_ instruction: DeviceInstruction, command: String) async {
    guard let device else { return }
    do {
      let done = try await act(instruction, device)
      // What is done outlives the program.
      if done != nil { try await device.flush() }
      if behaviour.isJSON, let done {
        output.json(DeviceEvent.event("done", ["command": command]).appending(contentsOf: .object(present: done)).text)
      }
    } catch {
      let code = (error as? DeviceError)?.code.rawValue
      show(
        "error", ["command": command, "code": code, "message": "\(error)"],
        "!! \(DeviceText.plain("\(error)"))")
    }
    text.keep(await device.delivered)
  }

  /// Executes an instruction. Answers the result for a script; nil if it was reported already.
  private func act(_ instruction: DeviceInstruction, _ device: Device) async throws -> JSONValue.Members? {
    switch instruction {
    case .list: await list(device)
    case .add(let request):
      try await device.userNotificationCenter.add(request)
      return ["identifier": request.identifier]
    case .pending: await listPending(device)
    case .cancel(let identifiers):
      let center = device.userNotificationCenter
      if identifiers.isEmpty {
        await center.removeAllPendingNotificationRequests()
      } else {
        await center.removePendingNotificationRequests(withIdentifiers: identifiers)
      }
      return [:]
    case .open(let reference): return sent(try await device.open(try identifier(reference)))
    case .act(let reference, let action, let userText):
      return sent(try await device.respond(to: try identifier(reference), action: action, userText: userText))
    case .reply(let reference, let userText): return sent(try await reply(try identifier(reference), userText, device))
    case .dismiss(let reference):
      let response = try await device.dismiss(try identifier(reference))
      if response == nil, !behaviour.isJSON { output.line("-- dismissed; its category does not ask to be told") }
      return sent(response)
    case .expand(let reference):
      let panel = try await device.expand(try identifier(reference))
      if !behaviour.isJSON { output.line(panel.text(isColored: text.isStyled)) }
      return panel.members
    case .collapse:
      await device.collapse()
      return [:]
    case .tap(let control, let text):
      try await device.tap(control, text: text)
      return [:]
    case .media:
      try await device.tapMediaButton()
      return [:]
    case .remove(let references):
      let identifiers = try references.map { try identifier($0) }
      return removed(await device.remove(identifiers))
    case .removeAll: return removed(await device.removeAll())
    case .fire(let reference):
      let identifier = try identifier(reference)
      guard try await device.fire(identifier) else { throw InstructionError(description: "no notification '\(identifier)' waits") }
      return ["identifier": identifier]
    case .links(let reference):
      return ["requests": try await device.renewLinks(of: try identifier(reference))]
    case .settings(let settings): return ["requests": try await change(settings, device)]
    case .showSettings: await showSettings(device)
    case .quiet(let hours): return ["requests": [try await device.setQuietHours(hours)]]
    case .state(let state):
      if let state { await device.setState(state) }
      let present = await device.state.rawValue
      if !behaviour.isJSON { output.line("-- the program is in the state \(present)") }
      return ["state": present]
    case .openSettings(let reference):
      try await device.openSettings(for: try reference.map { try identifier($0) })
      return [:]
    case .categories(let new):
      let request = try await device.setCategories(new)
      categories = new
      return ["requests": [request]]
    case .answer(let isAllowed):
      guard let question else { throw InstructionError(description: "nothing is asked at the moment: change it by settings status") }
      self.question = nil
      question.resume(returning: isAllowed)
    case .unregister: return ["requests": [try await device.unregister()]]
    case .connect:
      await device.reconnect()
      return [:]
    case .help: output.line(DeviceText.help)
    case .quit: end(.success(.done))
    }
    return nil
  }

  private func identifier(_ reference: DeviceInstruction.Reference) throws -> Name {
    switch reference {
    case .identifier(let identifier): return identifier
    case .number(let number):
      guard let identifier = text.identifier(number) else {
        throw InstructionError(description: "no notification has the number \(number)")
      }
      return identifier
    }
  }

  /// Takes the first action of the notification's category that takes text.
  private func reply(_ identifier: Name, _ userText: String, _ device: Device) async throws -> String {
    let category = await device.delivered.first { $0.identifier == identifier }?.content.categoryIdentifier
    let known = await device.categories.first { $0.identifier == category }
    if let known, !known.actions.contains(where: { $0.textInput != nil }) {
      throw InstructionError(description: "its category '\(known.identifier)' has no action that takes text")
    }
    // Without a notification or a category the device reports the error.
    let action = known?.actions.first { $0.textInput != nil }?.identifier ?? "reply"
    return try await device.respond(to: identifier, action: action, userText: userText)
  }

  private func change(_ settings: [DeviceInstruction.Setting], _ device: Device) async throws -> [String] {
    var requests: [String] = []
    for setting in settings {
      var authorization = await device.authorization ?? Authorization(status: .authorized)
      switch setting {
      case .authorization(let new): authorization = new
      case .status(let status): authorization.status = status
      case .option(let option, let isAllowed): authorization.options[option] = isAllowed
      case .previews(let previews): authorization.previews = previews
      case .locale(let locale, let timeZone):
        requests.append(try await device.setLocale(locale, timeZone: timeZone))
        continue
      }
      requests.append(try await device.setAuthorization(authorization))
    }
    return requests
  }

  // MARK: Results

  private func sent(_ response: String?) -> JSONValue.Members { ["response": response] }

  private func removed(_ notifications: [DeliveredNotification]) -> JSONValue.Members {
    if !behaviour.isJSON { output.line("-- \(notifications.count) removed from the list") }
    return ["identifiers": notifications.map(\.identifier)]
  }

  private func list(_ device: Device) async {
    let (delivered, pending, badge) = (await device.delivered, await device.pending, await device.badge)
    if behaviour.isJSON {
      func objects(_ notifications: [DeliveredNotification]) -> [JSONValue] { notifications.map { .object(present: $0.members) } }
      output.json(DeviceEvent.event("list", ["delivered": objects(delivered), "pending": objects(pending), "badge": badge]).text)
      return
    }
    for notification in delivered { show(notification, mark: notification.isLocal ? "(local)" : "") }
    for notification in pending { output.line("-- waits: \(DeviceText.plain(notification.identifier))") }
    if delivered.isEmpty { output.line("-- nothing is in the list") }
    if badge > 0 { output.line("-- badge \(badge)") }
  }

  private func listPending(_ device: Device) async {
    let requests = await device.userNotificationCenter.pendingNotificationRequests()
    guard !behaviour.isJSON else {
      let objects = requests.map { request in
        JSONValue.object([
          "identifier": request.identifier, "payload": request.content.payload,
          "trigger": (request.trigger?.json).flatMap { try? JSONValue(parsing: $0) },
        ])
      }
      return output.json(DeviceEvent.event("pending", ["requests": objects]).text)
    }
    for request in requests {
      let text = request.content.title.isEmpty ? request.content.body : request.content.title
      output.line(
        "-- waits: \(DeviceText.plain(request.identifier)), \(DeviceText.plain(text)), \(DeviceText.plain(request.trigger?.json ?? ""))")
    }
    if requests.isEmpty { output.line("-- nothing waits") }
  }

  private func showSettings(_ device: Device) async {
    guard let authorization = await device.authorization else { return }
    let options = Authorization.Option.allCases.compactMap { option in
      authorization.options[option].map { "\(option.rawValue) \($0 ? "on" : "off")" }
    }
    let others = [
      authorization.previews.map { "previews \($0.rawValue)" }, await device.locale.map { "locale \(DeviceText.plain($0))" },
      await device.timeZone.map { "zone \(DeviceText.plain($0))" }, await device.quietHours.map(DeviceText.quiet),
    ]
    output.line("-- " + (["status \(authorization.status.rawValue)"] + options + others.compactMap { $0 }).joined(separator: ", "))
  }

  private func show(_ event: String, _ members: JSONValue.Members, _ line: String) {
    if behaviour.isJSON { output.json(DeviceEvent.event(event, members).text) } else { output.line(line) }
  }
}

/// Tells what the person did with local notifications, which the cluster never hears.
private final class LocalResponses: UserNotificationCenterDelegate {
  private let output: DeviceOutput
  private let isJSON: Bool

  init(_ output: DeviceOutput, isJSON: Bool) { (self.output, self.isJSON) = (output, isJSON) }

  func userNotificationCenter(_ center: UserNotificationCenter, willPresent notification: DeliveredNotification) -> PresentationOptions {
    .all
  }

  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    guard response.notification.isLocal else { return }
    let identifier = response.notification.identifier
    if isJSON {
      output.json(
        DeviceEvent.event(
          "responded",
          [
            "response": response.id, "identifier": identifier, "action": response.actionIdentifier, "userText": response.userText,
          ]
        ).text)
    } else {
      output.line("-- the program has the response to \(DeviceText.plain(identifier)); it stays on the device")
    }
  }
}

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
    let (timer, end) = (Timer(on: loop), loop.milliseconds() + 2_000)
    await withCheckedContinuation { continuation in
      timer.handler = { [loop, output] in
        guard output.isWritten || loop.milliseconds() >= end else { return }
        timer.close()
        continuation.resume()
      }
      timer.start(after: 0, repeating: 10)
    }
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
      output.json(event.json.text)
    } else {
      showText(event)
    }
    if output.isFull { end(.success(.dependencyMissing)) }
  }

  /// What may be drawn of a notification at this moment. The device runs on this loop, too.
  private func preview(_ notification: DeliveredNotification) -> NotificationPreview? {
    device?.assumeIsolated { $0.preview(of: notification) }
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
    await output.waitForReader()
    guard ending == nil, let device else { return }
    var command: String?
    do {
      let read: DeviceInstruction? =
        try behaviour.isJSON ? DeviceInstruction(value: JSONValue(parsing: line)) : DeviceInstruction(typed: line)
      guard let instruction = read else { return }
      command = instruction.command
      let done = try await act(instruction, device)
      // What is done outlives the program.
      if done != nil { try await device.flush() }
      if behaviour.isJSON, let done {
        output.json(DeviceEvent.event("done", ["command": command]).appending(contentsOf: .object(present: done)).text)
      }
    } catch {
      let code = (error as? DeviceError)?.code.rawValue
      show("error", ["command": command, "code": code, "message": "\(error)"], "!! \(DeviceText.plain("\(error)"))")
    }
    text.keep(await device.delivered)
  }

  /// Executes an instruction. Answers the result for a script; nil if it was reported already.
  private func act(_ instruction: DeviceInstruction, _ device: Device) async throws -> JSONValue.Members? {
    let center = device.userNotificationCenter
    switch instruction.command {
    case "list": await list(device)
    case "add":
      let request = try instruction.request()
      try await center.add(request)
      return ["identifier": request.identifier]
    case "cancel":
      if let identifiers = try instruction.identifiers(text.identifier) {
        await center.removePendingNotificationRequests(withIdentifiers: identifiers)
      } else {
        await center.removeAllPendingNotificationRequests()
      }
      return [:]
    case "open": return sent(try await device.open(try identifier(instruction)))
    case "act":
      let (action, userText) = (Name(try instruction.text("action")), instruction.value["userText"]?.stringValue)
      return sent(try await device.respond(to: try identifier(instruction), action: action, userText: userText))
    case "reply": return sent(try await reply(try identifier(instruction), try instruction.text("userText"), device))
    case "dismiss":
      let response = try await device.dismiss(try identifier(instruction))
      if response == nil, !behaviour.isJSON { output.line("-- dismissed; its category does not ask to be told") }
      return sent(response)
    case "remove":
      let identifiers = try instruction.identifiers(text.identifier) ?? [identifier(instruction)]
      return removed(await device.remove(identifiers))
    case "remove-all": return removed(await device.removeAll())
    case "fire":
      let identifier = try identifier(instruction)
      guard try await device.fire(identifier) else { throw InstructionError(description: "no notification '\(identifier)' waits") }
      return ["identifier": identifier]
    case "links": return ["requests": try await device.renewLinks(of: try identifier(instruction))]
    case "settings": return ["requests": try await change(instruction.value, device)]
    case "quiet": return ["requests": [try await device.setQuietHours(try instruction.quietHours())]]
    case "state":
      if let state = instruction.value["state"] {
        guard let state = state.stringValue.flatMap(ApplicationState.init(rawValue:)) else {
          throw InstructionError(description: "state: one of \(ApplicationState.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        await device.setState(state)
      }
      let present = await device.state.rawValue
      if !behaviour.isJSON { output.line("-- the program is in the state \(present)") }
      return ["state": present]
    case "categories":
      let new = try DeviceShapes.categories(instruction.value["categories"] ?? .null)
      let request = try await device.setCategories(new)
      categories = new
      return ["requests": [request]]
    case "unregister": return ["requests": [try await device.unregister()]]
    case "connect":
      await device.reconnect()
      return [:]
    case "quit": end(.success(.done))
    case "help" where !behaviour.isJSON: output.line(DeviceText.help)
    case "show-settings" where !behaviour.isJSON: await showSettings(device)
    case "allow" where !behaviour.isJSON, "deny" where !behaviour.isJSON:
      guard let question else { throw InstructionError(description: "nothing is asked at the moment: change it by settings status") }
      self.question = nil
      question.resume(returning: instruction.command == "allow")
    default:
      throw InstructionError(
        description:
          "command: one of list, add, cancel, open, act, reply, dismiss, remove, remove-all, fire, links, settings, quiet, state, categories, unregister, connect, quit"
      )
    }
    return nil
  }

  private func identifier(_ instruction: DeviceInstruction) throws(InstructionError) -> Name {
    try instruction.identifier(text.identifier)
  }

  /// Takes the first action of the notification's category that takes text.
  private func reply(_ identifier: Name, _ userText: String, _ device: Device) async throws -> String {
    let category = await device.delivered.first { $0.identifier == identifier }?.content.categoryIdentifier
    let known = await device.categories.first { $0.identifier == category }
    // Without a notification, a category or such an action the device reports the error.
    let action = known?.actions.first { $0.textInput != nil }?.identifier ?? "reply"
    return try await device.respond(to: identifier, action: action, userText: userText)
  }

  /// Changes what `settings` names; returns the requests' ids.
  private func change(_ settings: JSONValue, _ device: Device) async throws -> [String] {
    var (authorization, requests) = (settings["authorization"], [String]())
    if let change = settings["change"] {
      let present = await device.authorization ?? Authorization(status: .authorized)
      var changed = try present.jsonBytes.withUnsafeBytes { try JSONValue(parsing: $0) }
      changed.merge(change)
      authorization = changed
    }
    if let authorization { requests.append(try await device.setAuthorization(try DeviceShapes.authorization(authorization))) }
    let (locale, timeZone) = (settings["locale"]?.stringValue, settings["timeZone"]?.stringValue)
    if locale != nil || timeZone != nil { requests.append(try await device.setLocale(locale, timeZone: timeZone)) }
    guard !requests.isEmpty else { throw InstructionError(description: "settings: give authorization, locale or timeZone") }
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
    for notification in pending {
      let text = notification.content.title.isEmpty ? notification.content.body : notification.content.title
      let facts = [notification.identifier.text, text, notification.frame.trigger ?? ""].map { DeviceText.plain($0) }
      output.line("-- waits: \(facts.joined(separator: ", "))")
    }
    if delivered.isEmpty { output.line("-- nothing is in the list") }
    if badge > 0 { output.line("-- badge \(badge)") }
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

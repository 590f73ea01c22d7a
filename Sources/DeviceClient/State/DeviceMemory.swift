internal import Notifications

/// The durable state of a device: notifications and responses. The writer gets each change.
final class DeviceMemory {
  var store: NotificationStore
  var outbox = ResponseOutbox()
  let writer: StateWriter
  /// Passes a stored response to the program's delegate, which answers by `told`.
  var didReceive: ((StoredResponse) -> Void)? {
    didSet {
      guard didReceive != nil else { return }
      for response in untaken { pass(response) }
      untaken = []
    }
  }
  /// The responses of an earlier start that wait for a delegate.
  private var untaken: [StoredResponse] = []
  /// Passes a stored notification to the program's service extension, which answers by `endExtending`.
  var extend: ((DeliveredNotification) -> Void)?
  /// Called when notifications do not wait for the program's service extension any more.
  var extendingEnded: (() -> Void)?
  /// Called when the notifications in the list, or those that wait, change. The change is not durable yet.
  var listsChanged: (() -> Void)?
  /// Takes an event when what it tells is saved.
  var tell: ((DeviceEvent) -> Void)?
  /// Called when the person's quiet hours have changed.
  var hoursChanged: (() -> Void)?
  private var untold: Set<Name> = []
  /// The stored responses that wait for the unlocking, the oldest first.
  private var locked: [StoredResponse] = []
  /// The program's choice of how a notification is presented in the foreground; nil allows all ways.
  var willPresent: ((DeliveredNotification) -> PresentationOptions)? { didSet { store.asksDelegate = willPresent != nil } }
  /// What the person and the program have decided for the device.
  private(set) var registration = StoredRegistration()
  /// What the device has told the cluster of itself, as the database has it for other processes.
  private var hello = StoredRegistration()
  /// On a watch: the notifications of the responses that its phone has not stored, by the responses' ids.
  private(set) var unsettled: [Name: DeliveredNotification] = [:]
  private let isWatch: Bool
  /// The device's own clocks.
  private(set) var clock = ElapsedClock(after: nil)
  /// The responses that a content extension has, by their ids.
  private var held: [Name: StoredResponse] = [:]

  /// - Parameter commit: begins to write a batch of changes; nil if nothing must outlive the device.
  init(_ configuration: DeviceConfiguration, commit: (([StateChange]) -> Void)?) {
    store = NotificationStore(
      authorization: configuration.hello.authorization ?? Authorization(status: .notDetermined), limits: configuration.limits,
      extensions: configuration.extensions, locale: configuration.hello.locale,
      zone: configuration.hello.timeZone.map { Name($0) } ?? "UTC")
    store.hasServiceExtension = configuration.serviceExtension != nil
    if let platform = configuration.hello.platform, PresentationOptions.areBadgesOnly(on: platform) { store.platformWays = .badge }
    writer = StateWriter(commit: commit)
    isWatch = configuration.watchConnectivity?.side == .watch
    // The program's channel may lose a message, and tells nobody.
    if isWatch { outbox = ResponseOutbox(resendMilliseconds: 2_000) }
  }

  /// Takes the state of the database.
  func restore(_ state: StoredState) {
    store.restore(state)
    (registration, hello, clock) = (state.registration, state.hello, state.clock ?? clock)
    store.quietHours = registration.quietHours
    for response in state.responses {
      switch (response.stage, response.isLocked) {
      // `end` is called for it.
      case (.held, _): held[Name(response.frame.response)] = response
      case (_, true): locked.append(response)
      case (_, false): release(response)
      }
    }
  }

  /// Sends and tells the responses that waited for the unlocking; `body` gets them when this is saved.
  func release(_ body: @escaping ([StoredResponse]) -> Void) {
    let released = locked
    guard !released.isEmpty else { return }
    locked = []
    writer.append([.released])
    writer.whenDurable { [weak self] failure in
      guard failure == nil, let self else { return }
      for response in released { release(response) }
      body(released)
    }
  }

  private func release(_ response: StoredResponse) {
    if isWatch, response.isUnsent { unsettled[Name(response.frame.response)] = response.notification }
    if response.isUnsent { outbox.restore(response.sent) }
    if response.isUntold { pass(response) }
  }

  private func pass(_ response: StoredResponse) {
    guard let didReceive else { return untaken.append(response) }
    untold.insert(Name(response.frame.response))
    didReceive(response)
  }

  /// The program has taken a response.
  func told(_ id: String) {
    guard untold.remove(Name(id)) != nil else { return }
    writer.append([.told(id)])
  }

  /// Passes the store's changes to the writer.
  private func save() {
    let changes = store.takeChanges()
    writer.append(changes)
    if let extendingEnded, changes.contains(where: { if case .extended = $0 { true } else { false } }) { extendingEnded() }
    if let listsChanged, changes.contains(where: \.isOfLists) { listsChanged() }
  }

  /// Stores what the person and the program have decided. Quiet hours apply to later notifications.
  func save(_ decided: StoredRegistration) {
    guard decided != registration else { return }
    let areNewHours = decided.quietHours != registration.quietHours
    registration = decided
    writer.append([.registration(decided)])
    store.quietHours = decided.quietHours
    if areNewHours { hoursChanged?() }
  }

  /// Stores what the device tells the cluster of itself, for other processes.
  func publish(_ hello: Hello) {
    var present = StoredRegistration()
    (present.authorization, present.categories, present.zone) = (hello.authorization, hello.categories, store.ownZone)
    guard present != self.hello else { return }
    self.hello = present
    writer.append([.hello(present)])
  }

  // MARK: Frames of the cluster

  /// Takes a notification; `body` gets the acknowledgement when it is saved, with the event unless it waits for a service extension.
  func take(_ frame: NotifyFrame, now: Int64, _ body: @escaping (DeviceEvent?, Acknowledgement) -> Void) {
    let outcome = asked(store.take(frame, now: now))
    let event = event(outcome, frame.identifier, frame)
    let acknowledgement: Acknowledgement =
      switch outcome {
      case .dropped(let reason): .dropped(frame.delivery, reason)
      case .updated: .updated(frame.delivery)
      case .extending where store.notification(frame.identifier) != nil: .updated(frame.delivery)
      case .shown, .silent, .held, .extending, .asking: .taken(frame.delivery)
      }
    // One that repeats another is told after it, too: that one may not be saved yet.
    save(outcome) { body(event, acknowledgement) }
  }

  /// Removes identifiers, or all; `body` gets the event and the acknowledgement when it is saved.
  func remove(_ frame: RemoveFrame, now: Int64, _ body: @escaping (DeviceEvent, Acknowledgement) -> Void) {
    let removal =
      frame.removesAll
      ? store.removeAll(revision: Name(frame.revision), now: now)
      : store.remove(frame.identifiers, revision: Name(frame.revision), isOfPending: frame.isOfPending, now: now)
    let (event, acknowledgement): (DeviceEvent, Acknowledgement) =
      switch removal {
      case .removed(let notifications): (.removed(identifiers: frame.identifiers, notifications), .taken(frame.delivery))
      case .dropped(let reason):
        (.dropped(delivery: frame.delivery, id: nil, identifiers: frame.identifiers, reason), .dropped(frame.delivery, reason))
      }
    save()
    writer.whenDurable { if $0 == nil { body(event, acknowledgement) } }
  }

  /// Takes the cluster's answer to a response; false for an unknown one.
  func settle(_ id: String) -> Bool {
    guard outbox.settle(Name(id)) != nil else { return false }
    unsettled[Name(id)] = nil
    writer.append([.settled(id)])
    return true
  }

  // MARK: Actions of the person and the application

  /// Stores a response, and takes its notification off the list; `body` is called when both are saved, or with the error.
  ///
  /// After that the program gets it, and the cluster until it answers. One to a local notification stays on the device.
  ///
  /// - Parameters:
  ///   - options: those of its action.
  ///   - isLocked: whether it waits for the unlocking first.
  func respond(
    _ frame: ResponseFrame, to notification: DeliveredNotification, _ options: Set<NotificationAction.Option>, isLocked: Bool,
    _ body: @escaping (DeviceError?) -> Void
  ) throws(DeviceError) {
    let response = try response(frame, notification, options, isLocked: isLocked)
    if isLocked { locked.append(response) } else if response.isUnsent { outbox.add(frame, isStored: false) }
    if isWatch, response.isUnsent { unsettled[Name(frame.response)] = response.notification }
    if response.isUnsent || response.isUntold { writer.append([.response(response)]) }
    // A newer one of its identifier, which the person of a watch has not seen, stays.
    if store.notification(frame.identifier)?.isSame(notification) == true { _ = store.clear([frame.identifier]) }
    save()
    writer.whenDurable { [weak self] failure in
      if failure == nil, !isLocked {
        self?.outbox.stored(Name(frame.response))
        if response.isUntold { self?.pass(response) }
      }
      body(failure)
    }
  }

  /// The response as it is stored. Throws if too many wait already.
  private func response(
    _ frame: ResponseFrame, _ notification: DeliveredNotification, _ options: Set<NotificationAction.Option>,
    stage: StoredResponse.Stage = .forwarded, isLocked: Bool = false
  ) throws(DeviceError) -> StoredResponse {
    guard untold.count + locked.count + held.count < Self.maximumUntold else {
      throw DeviceError(
        .tooManyWaiting,
        "\(untold.count) responses wait for the program's delegate, \(locked.count) for the unlocking, and \(held.count) for a content extension, already: try again later"
      )
    }
    if !isLocked, !notification.isLocal, outbox.isFull {
      throw DeviceError(
        .tooManyWaiting, "\(outbox.waiting.count) responses wait for the cluster's answer already: try again when it has come")
    }
    return StoredResponse(
      frame: frame, notification: notification, isUnsent: !notification.isLocal,
      // The phone's program gets what the person does on the watch with the phone's notifications.
      isUntold: didReceive != nil && !(isWatch && !notification.isLocal), stage: stage, isLocked: isLocked, options: options)
  }

  private static let maximumUntold = 1_000

  /// Stores a response for a content extension; `body` is called when it is saved, or with the error. `end` is called once for it.
  func hold(
    _ frame: ResponseFrame, to notification: DeliveredNotification, _ options: Set<NotificationAction.Option>,
    _ body: @escaping (DeviceError?) -> Void
  ) throws(DeviceError) {
    let response = try response(frame, notification, options, stage: .held)
    held[Name(frame.response)] = response
    writer.append([.response(response)])
    writer.whenDurable(body)
  }

  /// Ends what a content extension has of a response; `body` gets one that is forwarded when that is saved.
  ///
  /// One that needs the unlocked screen then waits for the unlocking, if the screen is locked.
  func end(_ id: String, _ end: HeldEnd, _ body: @escaping (StoredResponse) -> Void) {
    guard var response = held.removeValue(forKey: Name(id)) else { return }
    let isForwarded = end == .forwarded || end == .unanswered
    if isForwarded {
      response.stage = end == .unanswered ? .unanswered : .forwarded
      response.isLocked = response.rule(in: store.state).waitsForUnlocking
      if response.isLocked { locked.append(response) }
      writer.append([.forwarded(id, isUnanswered: end == .unanswered, isLocked: response.isLocked)])
    } else {
      writer.append([.withdrawn(id)])
    }
    // A newer one of its identifier, which came meanwhile, stays. An occurrence of a repeating trigger has the same id, and another time.
    let identifier = response.frame.identifier
    if end != .kept, store.notification(identifier)?.isSame(response.notification) == true { _ = store.clear([identifier]) }
    save()
    guard isForwarded, !response.isLocked else { return }
    writer.whenDurable { [weak self, response] failure in
      guard failure == nil else { return }
      self?.release(response)
      body(response)
    }
  }

  /// Removes notifications from the list, and returns those that were in it.
  func clear(_ identifiers: [Name]) -> [DeliveredNotification] {
    defer { save() }
    return store.clear(identifiers)
  }

  /// A waiting notification's location was reached; false if none of this identifier waits.
  func fire(_ identifier: Name, now: Int64, localTime: Int64) throws(DeviceError) -> Bool {
    try writer.checkSpace()
    guard let outcome = store.fire(identifier, now: now, localTime: localTime) else { return false }
    tell(outcome, identifier)
    return true
  }

  /// Removes what belongs to the person who signs out; returns what was in the list.
  func forgetPerson() -> [DeliveredNotification] {
    defer { save() }
    (locked, untold, untaken) = ([], [], [])
    writer.append([.forgotPerson])
    return store.forgetPerson()
  }

  // MARK: Local requests

  /// Adds a local request; `body` is called when it is saved, or with the error.
  func add(_ frame: NotifyFrame, _ body: @escaping (DeviceError?) -> Void) throws(DeviceError) {
    let localTime = clock.now()
    try store.check(frame, localTime: localTime)
    try writer.checkSpace()
    add(frame, localTime: localTime)
    writer.whenDurable(body)
  }

  /// Adds a local request that was checked.
  func add(_ frame: NotifyFrame, localTime: LocalTime) {
    let outcome = asked(store.add(frame, localTime: localTime))
    if case .held = outcome { save() } else { tell(outcome, frame.identifier) }
  }

  /// Shows what is due at this time.
  func takeTime(_ localTime: LocalTime) {
    for (identifier, outcome) in store.takeTime(localTime) { tell(outcome, identifier) }
    save()
  }

  /// Removes requests that wait.
  func removePending(_ identifiers: [Name]) {
    store.removePending(identifiers)
    save()
  }

  /// Sets the number at the application's icon; `body` is called when it is saved, or with the error.
  func setBadge(_ number: Int, _ body: @escaping (DeviceError?) -> Void = { _ in }) throws(DeviceError) {
    try writer.checkSpace()
    store.setBadge(number)
    save()
    writer.whenDurable(body)
  }

  // MARK: Phone and watch

  /// Shows a notification of the phone on its watch; `body` gets the event when it is saved.
  func takeForwarded(_ frame: NotifyFrame, _ showing: NotificationShowing, now: Int64, _ body: @escaping (DeviceEvent) -> Void) {
    let first = store.takeForwarded(frame, showing, now: now)
    let outcome = asked(first)
    switch (first, outcome) {
    case (.asking, .shown), (.asking, .updated): store.note(showing, now: now)
    default: break
    }
    tell(outcome, frame.identifier, body)
  }

  /// Stores the id of a response of the watch, which is taken once.
  func note(_ response: Name, now: Int64) {
    store.note(response, now: now)
    save()
  }

  // MARK: The program's service extension

  /// Stores that the program's service extension is given a notification; `body` is called when it is saved. False if that is not needed.
  func beginExtending(_ notification: DeliveredNotification, _ body: @escaping () -> Void) -> Bool {
    guard store.beginExtending(notification) else { return false }
    save()
    writer.whenDurable { if $0 == nil { body() } }
    return true
  }

  /// Stores that the program's service extension has not finished a notification at the device's end.
  func postponeExtending(_ notification: DeliveredNotification) {
    store.postponeExtending(notification)
    save()
  }

  /// Shows a notification after the program's service extension, as that has changed it; `body` is called when it is saved, or not needed
  /// since a newer one has come.
  func endExtending(_ notification: DeliveredNotification, changed: NotifyFrame?, now: Int64, _ body: @escaping () -> Void = {}) {
    guard let outcome = store.endExtending(notification, changed: changed, now: now) else { return body() }
    tell(outcome, notification.identifier)
    writer.whenDurable { _ in body() }
  }

  /// Asks the program how to present a notification, if the store says so, and returns what becomes of it.
  private func asked(_ outcome: NotificationStore.Outcome) -> NotificationStore.Outcome {
    guard case .asking(let notification) = outcome else { return outcome }
    return store.present(notification, allowing: willPresent?(notification) ?? .all)
  }

  /// Tells the event of an outcome when it is saved.
  private func tell(_ outcome: NotificationStore.Outcome, _ identifier: Name) {
    tell(asked(outcome), identifier) { [weak self] in self?.tell?($0) }
  }

  /// Calls `body` with the event of an outcome when it is saved.
  private func tell(_ outcome: NotificationStore.Outcome, _ identifier: Name, _ body: @escaping (DeviceEvent) -> Void) {
    let event = event(outcome, identifier)
    save(outcome) { if let event { body(event) } }
  }

  /// The event of an outcome; nil for a notification that waits for the program's service extension.
  private func event(_ outcome: NotificationStore.Outcome, _ identifier: Name, _ frame: NotifyFrame? = nil) -> DeviceEvent? {
    switch outcome {
    case .shown(let notification): .shown(notification)
    case .updated(let notification): .updated(notification)
    case .silent(let notification): .silent(notification)
    case .held(let notification): .held(notification)
    case .asking: preconditionFailure("the program was asked")
    case .extending: nil
    case .dropped(let reason): .dropped(delivery: frame?.delivery, id: frame?.id, identifiers: [identifier], reason)
    }
  }

  /// Calls `body` when an outcome is saved, and then gives the program's service extension a notification that waits for it.
  private func save(_ outcome: NotificationStore.Outcome, _ body: @escaping () -> Void) {
    save()
    writer.whenDurable { [weak self] failure in
      guard failure == nil else { return }
      body()
      if case .extending(let notification) = outcome { self?.extend?(notification) }
    }
  }
}

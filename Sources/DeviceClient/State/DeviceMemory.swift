internal import Notifications

/// The durable state of a device: notifications and responses. The writer gets each change. Loop-confined.
final class DeviceMemory {
  var store: NotificationStore
  var outbox = ResponseOutbox()
  let writer: StateWriter
  /// Passes a stored response to the program's delegate, which answers by `told`.
  var didReceive: ((StoredResponse) -> Void)?
  /// Called when a change of the notifications in the list, or of those that wait, is saved.
  var listsChanged: (() -> Void)?
  private var untold: Set<Name> = []
  /// The stored responses that wait for the unlocking, the oldest first.
  private var locked: [StoredResponse] = []
  /// What the person and the program have decided for the device.
  private(set) var registration = StoredRegistration()
  /// The responses that a content extension has, by their ids.
  private var held: [Name: StoredResponse] = [:]

  /// - Parameter commit: begins to write a batch of changes; nil if nothing must outlive the device.
  init(_ configuration: DeviceConfiguration, commit: (([StateChange]) -> Void)?) {
    store = NotificationStore(
      authorization: configuration.hello.authorization ?? Authorization(status: .authorized), limits: configuration.limits,
      extensions: configuration.extensions, locale: configuration.hello.locale,
      zone: configuration.hello.timeZone.map { Name($0) } ?? "UTC")
    if let platform = configuration.hello.platform, PresentationOptions.areBadgesOnly(on: platform) { store.platformWays = .badge }
    writer = StateWriter(commit: commit)
  }

  /// Takes the state of the database.
  func restore(_ state: StoredState) {
    store.restore(state)
    registration = state.registration
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
    if response.isUnsent { outbox.restore(response.frame) }
    if response.isUntold { pass(response) }
  }

  private func pass(_ response: StoredResponse) {
    guard let didReceive else { return }
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
    guard let listsChanged, changes.contains(where: \.isOfLists) else { return }
    writer.whenDurable { if $0 == nil { listsChanged() } }
  }

  /// Stores a decision of the person or the program.
  func decide(_ change: (inout StoredRegistration) -> Void) {
    let former = registration
    change(&registration)
    if registration != former { writer.append([.registration(registration)]) }
  }

  // MARK: Frames of the cluster

  /// Takes a notification; `body` gets the event and the acknowledgement when it is saved.
  func take(_ frame: NotifyFrame, now: Int64, _ body: @escaping (DeviceEvent, Acknowledgement) -> Void) {
    let (event, acknowledgement): (DeviceEvent, Acknowledgement) =
      switch store.take(frame, now: now) {
      case .shown(let notification): (.shown(notification), .taken(frame.delivery))
      case .updated(let notification): (.updated(notification), .updated(frame.delivery))
      case .silent(let notification): (.silent(notification), .taken(frame.delivery))
      case .held(let notification): (.held(notification), .taken(frame.delivery))
      case .dropped(let reason):
        (
          .dropped(delivery: frame.delivery, id: frame.id, identifiers: [frame.identifier], reason), .dropped(frame.delivery, reason)
        )
      }
    save()
    // One that repeats another is told after it, too: that one may not be saved yet.
    writer.whenDurable { if $0 == nil { body(event, acknowledgement) } }
  }

  /// Removes identifiers, or all; `body` gets the event and the acknowledgement when it is saved.
  func remove(_ frame: RemoveFrame, now: Int64, _ body: @escaping (DeviceEvent, Acknowledgement) -> Void) {
    let removal =
      frame.removesAll
      ? store.removeAll(revision: frame.revision, now: now)
      : store.remove(frame.identifiers, revision: frame.revision, isOfPending: frame.isOfPending, now: now)
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
    guard outbox.settle(id) != nil else { return false }
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
    if response.isUnsent || response.isUntold { writer.append([.response(response)]) }
    _ = store.clear([frame.identifier])
    save()
    writer.whenDurable { [weak self] failure in
      if failure == nil, !isLocked {
        self?.outbox.stored(frame.response)
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
      frame: frame,
      notification: .init(
        frame: notification.frame, takenAt: notification.takenAt, presentation: notification.presentation,
        isLocal: notification.isLocal), isUnsent: !notification.isLocal, isUntold: didReceive != nil, stage: stage,
      isLocked: isLocked, options: options)
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
    let (identifier, former) = (response.frame.identifier, response.notification)
    let listed = store.notification(identifier)
    if end != .kept, listed?.id == former.frame.id, listed?.takenAt == former.takenAt { _ = store.clear([identifier]) }
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
  func fire(_ identifier: Name, now: Int64, localTime: Int64, _ body: @escaping (DeviceEvent) -> Void) -> Bool {
    guard let outcome = store.fire(identifier, now: now, localTime: localTime) else { return false }
    tell(outcome, identifier, body)
    return true
  }

  // MARK: Local requests

  /// Adds a local request; `shown` gets the event if it is shown at once, and `body` is called when it is saved, or with the error.
  func add(
    _ frame: NotifyFrame, localTime: Int64, shown: @escaping (DeviceEvent) -> Void, _ body: @escaping (DeviceError?) -> Void
  ) {
    let outcome = store.add(frame, localTime: localTime)
    if case .held = outcome { save() } else { tell(outcome, frame.identifier, shown) }
    writer.whenDurable(body)
  }

  /// Shows what is due at this time; `body` gets the events when they are saved.
  func takeTime(_ localTime: Int64, _ body: @escaping (DeviceEvent) -> Void) {
    for (identifier, outcome) in store.takeTime(localTime) { tell(outcome, identifier, body) }
    save()
  }

  /// Removes requests that wait.
  func removePending(_ identifiers: [Name]) {
    store.removePending(identifiers)
    save()
  }

  /// Sets the number at the application's icon; `body` is called when it is saved, or with the error.
  func setBadge(_ number: Int, _ body: @escaping (DeviceError?) -> Void) {
    store.setBadge(number)
    save()
    writer.whenDurable(body)
  }

  /// Calls `body` with the event of an outcome when it is saved.
  private func tell(_ outcome: NotificationStore.Outcome, _ identifier: Name, _ body: @escaping (DeviceEvent) -> Void) {
    let event: DeviceEvent =
      switch outcome {
      case .shown(let notification): .shown(notification)
      case .updated(let notification): .updated(notification)
      case .silent(let notification): .silent(notification)
      case .held(let notification): .held(notification)
      case .dropped(let reason): .dropped(delivery: nil, id: nil, identifiers: [identifier], reason)
      }
    save()
    writer.whenDurable { if $0 == nil { body(event) } }
  }
}

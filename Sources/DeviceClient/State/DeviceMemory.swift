internal import Notifications

/// The durable state of a device: notifications and responses. The writer gets each change. Loop-confined.
final class DeviceMemory {
  var store: NotificationStore
  var outbox = ResponseOutbox()
  let writer: StateWriter

  /// - Parameter commit: begins to write a batch of changes; nil if nothing must outlive the device.
  init(_ configuration: DeviceConfiguration, commit: (([StateChange]) -> Void)?) {
    store = NotificationStore(
      authorization: configuration.hello.authorization ?? Authorization(status: .authorized), limits: configuration.limits,
      extensions: configuration.extensions, locale: configuration.hello.locale)
    writer = StateWriter(commit: commit)
  }

  /// Takes the state of the database.
  func restore(_ state: StoredState) {
    store.restore(state)
    for response in state.responses { outbox.restore(response) }
  }

  /// Passes the store's changes to the writer.
  private func save() { writer.append(store.takeChanges()) }

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
      ? store.removeAll(revision: frame.revision, now: now) : store.remove(frame.identifiers, revision: frame.revision, now: now)
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
  /// The response is sent after that, until it is answered.
  func respond(_ response: ResponseFrame, _ body: @escaping (DeviceError?) -> Void) throws(DeviceError) {
    guard outbox.add(response, isStored: false) else {
      throw DeviceError(
        .tooManyWaiting, "\(outbox.waiting.count) responses wait for the cluster's answer already: try again when it has come")
    }
    writer.append([.response(response)])
    _ = store.clear([response.identifier])
    save()
    writer.whenDurable { [weak self] failure in
      if failure == nil { self?.outbox.stored(response.response) }
      body(failure)
    }
  }

  /// Removes notifications from the list, and returns those that were in it.
  func clear(_ identifiers: [Name]) -> [DeliveredNotification] {
    defer { save() }
    return store.clear(identifiers)
  }

  /// A waiting notification's location was reached; false if none of this identifier waits.
  func fire(_ identifier: Name, now: Int64, _ body: @escaping (DeviceEvent) -> Void) -> Bool {
    guard let outcome = store.fire(identifier, now: now) else { return false }
    let event: DeviceEvent =
      switch outcome {
      case .shown(let notification): .shown(notification)
      case .updated(let notification): .updated(notification)
      case .silent(let notification), .held(let notification): .silent(notification)
      case .dropped(let reason): .dropped(delivery: nil, id: nil, identifiers: [identifier], reason)
      }
    save()
    writer.whenDurable { if $0 == nil { body(event) } }
    return true
  }
}

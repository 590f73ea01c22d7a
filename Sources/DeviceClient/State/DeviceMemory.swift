internal import JSON
internal import Notifications

/// The durable state of a device: notifications and responses. The writer gets each change. Loop-confined.
final class DeviceMemory {
  private let owner: StateRecord
  var store: NotificationStore
  var outbox = ResponseOutbox()
  private(set) var writer = StateWriter(perform: nil) { [] }

  /// - Parameter perform: starts a job on the disk; nil if nothing must outlive the device.
  init(_ configuration: DeviceConfiguration, perform: ((StateWriter.Job) -> Void)?) {
    owner = .owner(device: configuration.hello.device.text, application: configuration.hello.application)
    store = NotificationStore(
      authorization: configuration.hello.authorization ?? Authorization(status: .authorized), limits: configuration.limits,
      extensions: configuration.extensions, locale: configuration.hello.locale)
    writer = StateWriter(perform: perform) { [weak self] in self?.snapshot() ?? [] }
  }

  /// Takes the records of the state file.
  func restore(_ records: [StateRecord]) throws(DeviceError) {
    for record in records {
      switch record {
      case .owner:
        guard record == owner else {
          throw DeviceError(.stateUnusable, "the state file belongs to another device or application: name another file")
        }
      case .took(let frame, let at): _ = store.take(frame, now: at)
      case .noted(let identifier, let revision, let at): store.restore(revision: revision, of: identifier, at: at)
      case .removed(let identifiers, let revision, let at): _ = store.remove(identifiers, revision: revision, now: at)
      case .removedAll(let revision, let at): _ = store.removeAll(revision: revision, now: at)
      case .floor(let revision): store.restore(floor: revision)
      case .cleared(let identifiers): _ = store.clear(identifiers)
      case .fired(let identifier, let at): _ = store.fire(identifier, now: at)
      case .response(let response): outbox.restore(response)
      case .settled(let id): _ = outbox.settle(id)
      case .id(let id, let at): store.restore(id: id, at: at)
      case .listed(let frame, let at, let isPending): store.restore(frame, at: at, isPending: isPending)
      }
    }
    if records.isEmpty { writer.append(owner) }
  }

  private func snapshot() -> [StateRecord] {
    var records = [owner]
    store.ids.forEach { id, _, at in records.append(.id(id, at: at)) }
    store.revisions.forEach { identifier, revision, at in records.append(.noted(identifier: identifier, revision: revision, at: at)) }
    if let floor = store.floor { records.append(.floor(floor)) }
    records += store.pending.map { .listed($0.frame, at: $0.takenAt, isPending: true) }
    records += store.delivered.reversed().map { .listed($0.frame, at: $0.takenAt, isPending: false) }
    records += outbox.waiting.map { .response($0) }
    return records
  }

  // MARK: Frames of the cluster

  /// Takes a notification; `body` gets the event and the acknowledgement when it is saved.
  func take(_ frame: NotifyFrame, now: Int64, _ body: @escaping (DeviceEvent, Acknowledgement) -> Void) {
    let (event, acknowledgement): (DeviceEvent, Acknowledgement)
    switch store.take(frame, now: now) {
    case .shown(let notification): (event, acknowledgement) = (.shown(notification), .taken(frame.delivery))
    case .updated(let notification): (event, acknowledgement) = (.updated(notification), .updated(frame.delivery))
    case .silent(let notification): (event, acknowledgement) = (.silent(notification), .taken(frame.delivery))
    case .held(let notification): (event, acknowledgement) = (.held(notification), .taken(frame.delivery))
    case .dropped(let reason):
      if reason == .expired { writer.append(.noted(identifier: frame.identifier, revision: frame.revision, at: now)) }
      // The one that it repeats may not be saved yet.
      writer.whenDurable {
        body(
          .dropped(delivery: frame.delivery, id: frame.id, identifiers: [frame.identifier], reason), .dropped(frame.delivery, reason))
      }
      return
    }
    writer.append(.took(frame, at: now))
    writer.whenDurable { body(event, acknowledgement) }
  }

  /// Removes identifiers, or all; `body` gets the event and the acknowledgement when it is saved.
  func remove(_ frame: RemoveFrame, now: Int64, _ body: @escaping (DeviceEvent, Acknowledgement) -> Void) {
    let removal =
      frame.removesAll
      ? store.removeAll(revision: frame.revision, now: now) : store.remove(frame.identifiers, revision: frame.revision, now: now)
    switch removal {
    case .removed(let notifications):
      writer.append(
        frame.removesAll
          ? .removedAll(revision: frame.revision, at: now) : .removed(frame.identifiers, revision: frame.revision, at: now))
      writer.whenDurable { body(.removed(identifiers: frame.identifiers, notifications), .taken(frame.delivery)) }
    case .dropped(let reason):
      writer.whenDurable {
        body(.dropped(delivery: frame.delivery, id: nil, identifiers: frame.identifiers, reason), .dropped(frame.delivery, reason))
      }
    }
  }

  /// Takes the cluster's answer to a response; false for an unknown one.
  func settle(_ id: String) -> Bool {
    guard outbox.settle(id) != nil else { return false }
    writer.append(.settled(id))
    return true
  }

  // MARK: Actions of the person and the application

  /// Stores a response until it is answered.
  func respond(_ response: ResponseFrame) throws(DeviceError) {
    guard outbox.add(response) else {
      throw DeviceError(
        .tooManyWaiting, "\(outbox.waiting.count) responses wait for the cluster's answer already: try again when it has come")
    }
    writer.append(.response(response))
  }

  /// Removes notifications from the list, and returns those that were in it.
  func clear(_ identifiers: [Name]) -> [DeliveredNotification] {
    let cleared = store.clear(identifiers)
    if !cleared.isEmpty { writer.append(.cleared(cleared.map(\.identifier))) }
    return cleared
  }

  /// A waiting notification's location was reached; false if none of this identifier waits.
  func fire(_ identifier: Name, now: Int64, _ body: @escaping (DeviceEvent) -> Void) -> Bool {
    guard let outcome = store.fire(identifier, now: now) else { return false }
    writer.append(.fired(identifier, at: now))
    let event: DeviceEvent =
      switch outcome {
      case .shown(let notification): .shown(notification)
      case .updated(let notification): .updated(notification)
      case .silent(let notification), .held(let notification): .silent(notification)
      case .dropped(let reason): .dropped(delivery: nil, id: nil, identifiers: [identifier], reason)
      }
    writer.whenDurable { body(event) }
    return true
  }
}

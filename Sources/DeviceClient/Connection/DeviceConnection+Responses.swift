internal import Notifications

/// What the person and the program do with a notification. Each response is durable before it is sent.
extension DeviceConnection {
  /// Stores a response, and calls `body` when it is durable, or with the error. It is sent after that, until the cluster has answered.
  func respond(
    _ response: ResponseFrame, to notification: DeliveredNotification, _ body: @escaping (DeviceError?) -> Void
  ) throws(DeviceError) {
    let options = category(of: notification)?.actions.first { $0.identifier == response.action }?.options ?? []
    let rule = ActionRule(response.action, options, in: memory.store.state)
    try memory.respond(response, to: notification, options, isLocked: rule.waitsForUnlocking) { [weak self] failure in
      body(failure)
      guard let self, failure == nil else { return }
      if rule.opensProgram, !rule.waitsForUnlocking { activate(response.identifier) }
      sendResponses()
    }
  }

  /// Ends what a content extension has of a response.
  func end(_ response: String, _ end: HeldEnd) {
    memory.end(response, end) { [weak self] response in
      guard let self else { return }
      if response.rule(in: memory.store.state).opensProgram { activate(response.frame.identifier) }
      sendResponses()
    }
  }

  /// Takes a response of the watch, once; `body` is called when it is saved, or with the error.
  func takeFromWatch(
    _ response: ResponseFrame, to notification: DeliveredNotification, _ body: @escaping (DeviceError?) -> Void
  ) throws(DeviceError) {
    guard !memory.store.hasTaken(Name(response.response)) else { return memory.writer.whenDurable(body) }
    try memory.writer.checkSpace()
    try respond(response, to: notification) { _ in }
    memory.note(Name(response.response), now: now)
    memory.writer.whenDurable(body)
  }

  /// Sets what the program and the screen are doing. The unlocking sends and tells the responses that waited for it.
  func setState(_ state: ApplicationState) {
    memory.store.state = state
    guard state != .locked else { return }
    memory.release { [weak self] released in
      guard let self else { return }
      for response in released { if response.rule(in: state).opensProgram { activate(response.frame.identifier) } }
      sendResponses()
    }
  }

  /// Brings the program to the foreground, because of an action of the person on a notification.
  private func activate(_ identifier: Name) {
    // The screen may have been locked while the response was written to the disk.
    guard memory.store.state == .background else { return }
    memory.store.state = .foreground
    memory.tell?(.activated(identifier))
  }

  /// The category of a notification, by the registration of now.
  func category(of notification: DeliveredNotification) -> NotificationCategory? { hello.category(of: notification) }
}

extension Hello {
  /// The category of a notification: what the device has registered, else what the application has published.
  func category(of notification: DeliveredNotification) -> NotificationCategory? {
    let identifier = notification.content.categoryIdentifier
    return categories?.first { $0.identifier == identifier } ?? notification.frame.category
  }
}

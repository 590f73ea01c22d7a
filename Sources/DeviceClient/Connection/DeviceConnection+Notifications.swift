internal import EventLoop
internal import Notifications

/// The notifications in the list, those that wait, and the icon's number. The state file has each change at the end of the turn.
extension DeviceConnection {
  /// Adds a local request; `body` is called when it is saved, or with the error.
  func add(_ frame: NotifyFrame, _ body: @escaping (DeviceError?) -> Void) throws(DeviceError) {
    let now = localTime
    try memory.store.check(frame, localTime: now)
    try memory.writer.checkSpace()
    memory.add(frame, localTime: now, shown: { [weak self] in self?.tell?($0) }, body)
    scheduleTurn()
  }

  /// Removes requests that wait.
  func removePending(_ identifiers: [Name]) {
    memory.removePending(identifiers)
    scheduleTurn()
  }

  /// A waiting notification's location was reached; false if none of this identifier waits.
  func fire(_ identifier: Name) throws(DeviceError) -> Bool {
    try memory.writer.checkSpace()
    scheduleTurn()
    return memory.fire(identifier, now: now, localTime: WallClock.milliseconds()) { [weak self] in self?.tell?($0) }
  }

  /// Removes notifications from the list, and returns those that were in it.
  func clear(_ identifiers: [Name]) -> [DeliveredNotification] {
    scheduleTurn()
    return memory.clear(identifiers)
  }

  /// Sets the number at the application's icon; `body` is called when it is saved, or with the error.
  func setBadge(_ number: Int, _ body: @escaping (DeviceError?) -> Void) throws(DeviceError) {
    try memory.writer.checkSpace()
    memory.setBadge(number, body)
    scheduleTurn()
  }

  /// Stores that the program's service extension is given a notification; `body` is called when it is saved. False if that is not needed.
  func beginExtending(_ notification: DeliveredNotification, _ body: @escaping () -> Void) -> Bool {
    scheduleTurn()
    return memory.beginExtending(notification, body)
  }

  /// Shows a notification after the program's service extension, as that has changed it; `body` is called when it is saved, or not needed.
  func endExtending(_ notification: DeliveredNotification, changed: NotifyFrame?, _ body: @escaping () -> Void = {}) {
    let isNeeded = memory.endExtending(notification, changed: changed, now: now) { [weak self] in self?.tell?($0) }
    scheduleTurn()
    if isNeeded { memory.writer.whenDurable { _ in body() } } else { body() }
  }

  /// Shows a notification of the phone on its watch; `body` gets the event when it is saved.
  func showForwarded(_ frame: NotifyFrame, _ showing: NotificationShowing, _ body: @escaping (DeviceEvent) -> Void) {
    memory.takeForwarded(frame, showing, now: now, body)
    scheduleTurn()
  }
}

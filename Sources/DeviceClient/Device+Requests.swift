internal import EventLoop
internal import Notifications

/// What the notification center asks of the device.
extension Device {
  /// The notifications of the application, for the program.
  public nonisolated var userNotificationCenter: UserNotificationCenter { UserNotificationCenter(self) }

  func requestAuthorization(_ options: [Authorization.Option]) async throws(DeviceError) -> Bool {
    var authorization = self.authorization ?? Authorization(status: .notDetermined)
    if authorization.status == .notDetermined {
      if options.contains(.provisional) {
        authorization.status = .provisional
      } else if let ask = configuration.authorizationPrompt {
        // Two calls at once ask the person once.
        let question = prompt ?? Task(executorPreference: loop) { await ask(options) }
        prompt = question
        let isGranted = await question.value
        prompt = nil
        authorization = self.authorization ?? authorization
        // The person may have changed the settings meanwhile, or another call has taken the answer.
        guard authorization.status == .notDetermined else { return try await requestAuthorization(options) }
        authorization.status = isGranted ? .authorized : .denied
      } else {
        throw DeviceError(.configuration, "the configuration has no authorizationPrompt, so nobody can be asked")
      }
      for option in options { authorization.options[option] = true }
      try setAuthorization(authorization)
    }
    // Another call may have stored the answer.
    try await changesAreStored()
    switch authorization.status {
    case .authorized, .provisional, .ephemeral: return true
    case .denied, .notDetermined: return false
    }
  }

  func setNotificationCategories(_ categories: [NotificationCategory]) async throws(DeviceError) {
    try setCategories(categories)
    try await changesAreStored()
  }

  private func changesAreStored() async throws(DeviceError) {
    let connection = try running()
    try await stored { (body) throws(DeviceError) in connection.whenDurable(body) }
  }

  func add(_ request: NotificationRequest) async throws(DeviceError) {
    let connection = try running()
    let copies = try await copy(request)
    defer { for copy in copies { attachments?.close(copy.media.hash) } }
    let frame = try request.frame(id: Self.uniqueID(), copies)
    try await stored { (body) throws(DeviceError) in try connection.add(frame, body) }
    // The program's files are moved: they go when the request is durable.
    if !copies.isEmpty { await removeFiles(request.attachments.map(\.path)) }
  }

  func setBadge(_ count: Int) async throws(DeviceError) {
    let connection = try running()
    try await stored { (body) throws(DeviceError) in connection.setBadge(count, body) }
  }

  func removePending(_ identifiers: [Name]) { connection?.removePending(identifiers) }

  func removeAllPending() { removePending(pending.map(\.identifier)) }

  /// Begins something that the database must have, and returns when it has it.
  func stored(_ begin: (_ body: @escaping (DeviceError?) -> Void) throws(DeviceError) -> Void) async throws(DeviceError) {
    let failure: DeviceError? = await withCheckedContinuation { continuation in
      do throws(DeviceError) {
        try begin { continuation.resume(returning: $0) }
      } catch {
        continuation.resume(returning: error)
      }
    }
    if let failure { throw failure }
  }
}

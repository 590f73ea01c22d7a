internal import Notifications

/// What the notification center asks of the device.
extension Device {
  /// The notifications of the application, for the program.
  public nonisolated var userNotificationCenter: UserNotificationCenter { UserNotificationCenter(self) }

  func requestAuthorization(_ options: Set<Authorization.Option>) async throws(DeviceError) -> Bool {
    var authorization = self.authorization ?? Authorization(status: .notDetermined)
    let former = authorization.status
    // A provisional grant is nobody's decision.
    if former == .notDetermined || former == .provisional && !options.contains(.provisional) {
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
        guard authorization.status == former else { return try await requestAuthorization(options) }
        authorization.status = isGranted ? .authorized : .denied
      } else {
        throw DeviceError(.configuration, "the configuration has no authorizationPrompt, so nobody can be asked")
      }
      authorization.request(options)
      try setAuthorization(authorization)
    }
    // Another call may have stored the answer.
    _ = try running()
    try await flush()
    switch authorization.status {
    case .authorized, .provisional, .ephemeral: return true
    case .denied, .notDetermined: return false
    }
  }

  func setNotificationCategories(_ categories: [NotificationCategory]) async throws(DeviceError) {
    try setCategories(categories)
    try await flush()
  }

  func add(_ request: NotificationRequest) async throws(DeviceError) {
    let connection = try running()
    // The end of the device waits for the removal of the program's files.
    attachmentTasks += 1
    defer { attachmentTaskEnded() }
    let copies = try await copy(request)
    defer { for copy in copies { attachments?.close(copy.media.hash) } }
    let frame = try request.frame(id: Self.uniqueID(), copies)
    try await stored { (body) throws(DeviceError) in try connection.memory.add(frame, body) }
    // The program's files are moved: they go when the request is durable.
    await removeFiles(zip(request.attachments, copies).map { ($0.path, $1.media.hash) })
  }

  func setBadge(_ count: Int) async throws(DeviceError) {
    let connection = try running()
    try await stored { (body) throws(DeviceError) in try connection.memory.setBadge(count, body) }
  }

  func nextTriggerDate(of identifier: Name) -> Int64? {
    connection.flatMap { $0.memory.store.nextDue(of: identifier, $0.memory.clock.now()) }
  }

  /// Whether the device's platform shows notifications that can be expanded.
  var supportsContentExtensions: Bool {
    !(configuration.hello.platform.map { PresentationOptions.areBadgesOnly(on: $0) } ?? false)
  }

  /// Returns when the state file has all changes so far. Throws if it does not take them, which also ends the device.
  public func flush() async throws(DeviceError) {
    guard let connection else { return }
    try await stored { connection.memory.writer.whenDurable($0) }
  }

  /// Makes a change, and returns when the state file has it, or the device has ended with the event `failed`.
  func settled(_ change: @Sendable (isolated Device) -> Void) async {
    change(self)
    try? await flush()
  }

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

extension Authorization {
  /// Switches on what the program has asked for, and everything else off.
  fileprivate mutating func request(_ requested: Set<Option>) {
    for option in Option.allCases {
      switch option {
      // A way of asking, and a choice that no program can ask for.
      case .provisional, .scheduledDelivery: break
      case .lockScreen, .notificationCenter: options[option] = requested.contains(.alert)
      default: options[option] = requested.contains(option)
      }
    }
  }
}

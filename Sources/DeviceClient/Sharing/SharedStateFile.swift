internal import Calendars
internal import EventLoop
internal import Extensions
internal import Glibc
internal import Notifications
internal import Synchronization

/// The state file of a device that another process runs. SQLite blocks, so it has a thread of its own.
///
/// It returns failures and does not throw them: with Swift 6.3 a caller that passes on an error of an actor stays on the actor's thread.
actor SharedStateFile: LoopActor {
  nonisolated let loop = EventLoop(name: "shared-state")

  private let path: String
  private let application: Name
  private let limits: StateLimits
  private let extensions: ServiceExtensions
  /// The zone of calendar triggers that name none; nil for the device's.
  private let zone: Name?
  private var connection: SQLiteConnection?
  private nonisolated let use = Mutex(Use())

  /// The calls that use the thread. A call of an actor whose thread has ended would never return, so the end waits for them.
  private struct Use {
    var calls = 0
    var closing: Task<Void, Never>?
    var whenIdle: CheckedContinuation<Void, Never>?

    /// Begins a call; false if the file closes.
    mutating func begin() -> Bool {
      guard closing == nil else { return false }
      calls += 1
      return true
    }

    mutating func end() {
      calls -= 1
      guard calls == 0 else { return }
      whenIdle?.resume()
      whenIdle = nil
    }
  }

  init(_ path: String, _ application: Name, _ limits: StateLimits, _ extensions: ExtensionChain?, zone: Name?) {
    (self.path, self.application, self.limits, self.zone) = (path, application, limits, zone)
    self.extensions = ServiceExtensions(chain: extensions, locale: nil)
  }

  // MARK: Opening

  /// Opens the file. Fails if it cannot be used.
  func open() -> Result<Void, DeviceError> {
    Result { () throws(DeviceError) in
      guard access(path, F_OK) == 0 else { throw missing }
      let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(clamping: limits.busyMilliseconds))
      self.connection = connection
      guard try !StateFile.isNew(connection, path) else { throw missing }
      try StateFile.limit(connection, limits)
      try StateFile.prepare(connection)
      guard try StateFile.lists(connection, path, extensions).application == application else {
        throw DeviceError(.stateUnusable, "the state file \(path) belongs to another application: name another file")
      }
    }
  }

  private var missing: DeviceError {
    DeviceError(.stateUnusable, "no device has made the state file \(path) yet: start the device once, or name another file")
  }

  /// Closes the file and its thread, when the calls under way have returned.
  nonisolated func close() async {
    let closing = use.withLock { use in
      let closing = use.closing ?? Task { await self.closeNow() }
      use.closing = closing
      return closing
    }
    await closing.value
  }

  private nonisolated func closeNow() async {
    await withCheckedContinuation { continuation in
      use.withLock { use in
        if use.calls == 0 { continuation.resume() } else { use.whenIdle = continuation }
      }
    }
    await end()
    await loop.close()
  }

  /// Makes a call of the thread, unless the file closes.
  nonisolated func call<Value: Sendable>(
    _ body: () async -> Result<Value, DeviceError>
  ) async -> Result<Value, DeviceError> {
    guard use.withLock({ $0.begin() }) else { return .failure(Self.closed) }
    let result = await body()
    use.withLock { $0.end() }
    return result
  }

  private func end() {
    connection?.close()
    connection = nil
  }

  // MARK: The state

  /// Reads of the state as it is when the device has carried out the commands that wait.
  nonisolated func read<Value: Sendable>(
    _ body: @Sendable (inout NotificationStore, StoredRegistration, LocalTime) -> Value
  ) async -> Result<Value, DeviceError> {
    await call { await readNow(body) }
  }

  /// Stores a command that is made by the present state.
  nonisolated func store(
    _ command: @Sendable (inout NotificationStore, LocalTime) throws(DeviceError) -> StoredCommand
  ) async -> Result<Void, DeviceError> {
    await call { await write(command) }
  }

  private func readNow<Value>(_ body: (inout NotificationStore, StoredRegistration, LocalTime) -> Value) -> Result<Value, DeviceError> {
    Result { () throws(DeviceError) in
      let connection = try opened()
      var state: State?
      try connection.reading { () throws(DeviceError) in state = try self.state(connection) }
      guard var state else { preconditionFailure("a transaction without an error has called its body") }
      return body(&state.store, state.hello, state.now)
    }
  }

  private func write(_ command: @Sendable (inout NotificationStore, LocalTime) throws(DeviceError) -> StoredCommand) -> Result<
    Void, DeviceError
  > {
    Result { () throws(DeviceError) in
      let connection = try opened()
      try connection.transaction { () throws(DeviceError) in
        var state = try self.state(connection)
        try StateFile.add(try command(&state.store, state.now), connection)
      }
    }
  }

  private typealias State = (store: NotificationStore, hello: StoredRegistration, now: LocalTime)

  private func state(_ connection: SQLiteConnection) throws(DeviceError) -> State {
    let state = try StateFile.lists(connection, path, extensions)
    var (store, hello) = (
      NotificationStore(extensions: extensions.chain, zone: zone ?? state.hello.zone ?? DueTimes.defaultZone), state.hello
    )
    store.restore(state)
    for case (_, let command?) in try StateFile.commands(connection) {
      store.expect(command)
      if case .categories(let categories) = command { hello.categories = categories }
    }
    return (store, hello, ElapsedClock(after: state.clock).now())
  }

  private func opened() throws(DeviceError) -> SQLiteConnection {
    guard let connection else { throw Self.closed }
    return connection
  }

  private static var closed: DeviceError { DeviceError(.notRunning, "the shared notification center is closed") }
}

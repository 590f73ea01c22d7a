public import EventLoop
internal import HTTP
internal import Notifications
internal import Synchronization

/// A device: its connection to the cluster, and its notification center.
///
///     let device = Device(DeviceConfiguration(url: "ws://127.0.0.1:8080/v1/device", hello: hello), on: loop) { event in … }
///     try await device.start()
///     …
///     try await device.respond(to: "order-7", action: "reply", userText: "thank you")
///     await device.close()
///
/// It keeps itself connected, and sends the person's actions until the cluster has them. The handler gets events on the loop, in order, and
/// must not block. Any number of devices share a loop, which may be the program's own: a device with a state file has a thread for it, so the
/// disk never stops the loop.
public actor Device: LoopActor {
  /// The loop on which everything of the device runs.
  public nonisolated let loop: EventLoop

  let configuration: DeviceConfiguration
  let tell: @Sendable (DeviceEvent) -> Void
  /// The program's part in notifications.
  nonisolated let delegateInForce: Mutex<(any UserNotificationCenterDelegate)?>
  /// Nil before the start and after the end.
  private(set) var connection: DeviceConnection?
  private var client: WebSocketClient?
  /// The person is being asked for the authorization.
  var prompt: Task<Bool, Never>?
  /// The calls of the delegate that have not returned. Each ends with whether it is late.
  let calls = TimedCalls<Bool>()
  private(set) var database: DeviceDatabase?
  /// Looks for commands of other processes.
  var commandTimer: Timer?
  /// Whether commands are being read.
  var isLooking = false
  /// The place of the last command that was carried out.
  var lastCommand: Int64 = 0
  /// The notification that the person has expanded.
  var openPanel: OpenPanel?
  /// Counts the panels.
  var panelNumber = 0
  /// The notifications that are with the watch, if this is a phone.
  var leases: WatchLeases<DeviceEvent>
  /// The notifications that the watch has claimed, if this is one.
  var claims = WatchClaims()
  var watchTimer: Timer?
  /// When a watch has asked for the person's quiet hours, in the loop's milliseconds.
  var hoursAskedAt: UInt64 = 0
  /// The program's service extension; nil if it has none.
  var serviceExtension: ProgramExtension?
  /// The store of attachments; nil without a state file.
  var attachments: AttachmentFetcher?
  var attachmentDisk: AttachmentDisk?
  /// The tasks that use the store's disk, and the end that waits for them.
  var attachmentTasks = 0
  var whenAttachmentsEnd: CheckedContinuation<Void, Never>?
  /// The beginning, while it is under way.
  private var starting: Task<Result<Void, DeviceError>, Never>?
  /// The end, for all calls of `close`.
  private var closing: Task<Void, Never>?

  /// Describes a device, which does nothing until it is started.
  public init(_ configuration: DeviceConfiguration, on loop: EventLoop, _ tell: @escaping @Sendable (DeviceEvent) -> Void) {
    self.configuration = configuration
    delegateInForce = Mutex(configuration.delegate)
    // The watch takes no offer of a longer lease.
    leases = WatchLeases(
      milliseconds: min(UInt64(clamping: configuration.watchConnectivity?.leaseMilliseconds ?? 0), WatchMessage.longestMilliseconds))
    self.loop = loop
    self.tell = tell
  }

  // MARK: Running

  /// Reads the state file, if there is one, and begins to connect; call it once.
  ///
  /// Throws if the hello breaks a rule of the cluster, or the state file is in use, is another device's, or cannot be used. The file is left
  /// as it is then.
  public func start() async throws(DeviceError) {
    guard connection == nil, starting == nil, closing == nil else { throw DeviceError(.configuration, "the device is started already") }
    let starting = Task(executorPreference: loop) { () -> Result<Void, DeviceError> in
      do throws(DeviceError) { return .success(try await self.startNow()) } catch { return .failure(error) }
    }
    self.starting = starting
    defer { self.starting = nil }
    try await starting.value.get()
  }

  private func startNow() async throws(DeviceError) {
    guard configuration.stateFile?.isEmpty != true else { throw DeviceError(.configuration, "the state file's name is empty") }
    let isWatch = configuration.watchConnectivity?.side == .watch
    guard !configuration.urls.isEmpty || isWatch else {
      throw DeviceError(.configuration, "there is no address: name at least one of the cluster's")
    }
    // Only a welcome says how large a frame may be.
    try FrameRules.check(self.configuration.hello, .configuration, atMost: .max)
    var state = StoredState()
    var configuration = self.configuration
    if let name = configuration.stateFile {
      let database = DeviceDatabase(
        path: name,
        owner: .init(
          token: configuration.hello.device.text, application: configuration.hello.application, person: configuration.hello.user,
          adoptsToken: configuration.makesToken,
          extensions: ServiceExtensions(chain: configuration.extensions, locale: configuration.hello.locale)),
        limits: configuration.stateLimits)
      do throws(DeviceError) {
        state = try await database.open()
        configuration.stateFile = await database.path
      } catch {
        await close(database)
        throw error
      }
      self.database = database
      if configuration.makesToken, let token = state.token { configuration.hello.device = token }
    }
    configuration.hello = state.registration.applied(to: configuration.hello)
    var webSocket = WebSocketConfiguration()
    webSocket.subprotocols = [DeviceProtocol.subprotocol]
    webSocket.maximumMessageBytes = 1 << 20
    let client = WebSocketClient(on: loop, configuration: webSocket, connectMilliseconds: configuration.connectMilliseconds)
    client.authorities = configuration.certificateAuthorities
    self.client = client
    let connection = DeviceConnection(
      configuration, on: loop, commit: database.map { database in { [weak self] changes in self?.commit(changes, database) } },
      connect: { [weak self] in
        guard let self else { return }
        Task(executorPreference: loop) { await self.connect() }
      },
      tell: { [weak self] event in self?.assumeIsolated { $0.attachments?.take(event) ?? $0.pass(event) } })
    self.connection = connection
    takeDelegate()
    connection.restore(state)
    if let path = configuration.stateFile { await startAttachments(path, connection) }
    connection.memory.listsChanged = { [weak self] in self?.assumeIsolated { $0.listsChanged() } }
    startWatch(connection)
    // Nothing may wait after this: what another process has removed while no device ran must not become due meanwhile.
    let commands = await newCommands()
    connection.setState(configuration.state)
    connection.memory.publish(connection.hello)
    startServiceExtension(state, connection)
    carryOut(commands)
    if database != nil { startCommands() }
    // The program has ended while its extension had them. The extension may be the reason, so it does not get them again.
    for response in state.responses where response.stage == .held { connection.end(response.frame.response, .unanswered) }
    connection.takeTime()
    // A token of another environment stays unused until the program hears of it from its registration.
    let isRegistered = state.registration.isRegistered && state.registration.environment == configuration.hello.environment
    if !isWatch, !configuration.makesToken || isRegistered { connection.begin() }
  }

  /// Connects again after a close code that ends automatic reconnection.
  public func reconnect() { if configuration.watchConnectivity?.side != .watch { connection?.begin() } }

  /// Leaves in order, and returns when the connection has ended and everything is on the disk. It cannot be started again.
  public func close() async {
    guard connection != nil || starting != nil || closing != nil else { return }
    let closing = closing ?? Task(executorPreference: loop) { await self.closeNow() }
    self.closing = closing
    await closing.value
  }

  private func closeNow() async {
    if let starting { _ = await starting.value }
    guard let connection else { return }
    dropPanel()
    commandTimer?.close()
    commandTimer = nil
    await closeServiceExtension(connection)
    closeWatch()
    await closeAttachments()
    await withCheckedContinuation { continuation in connection.stop { continuation.resume() } }
    self.connection = nil
    client = nil
    calls.close()
    let database = database
    // No call may reach the database's thread after its end: it would never return.
    self.database = nil
    if let database { await close(database) }
  }

  private func close(_ database: DeviceDatabase) async {
    await database.end()
    await database.loop.close()
  }

  private func connect() async {
    guard let client, let connection else { return }
    do throws(WebSocketClientError) {
      _ = try await client.connect(to: connection.url, handler: connection)
    } catch {
      connection.failed(error)
    }
  }

  /// Writes a batch on the disk's thread, and reports its end to the connection.
  private nonisolated func commit(_ changes: [StateChange], _ database: DeviceDatabase) {
    Task(executorPreference: loop) {
      var failure: DeviceError?
      do throws(DeviceError) { try await database.commit(changes) } catch { failure = error }
      await self.diskFinished(failure)
    }
  }

  private func diskFinished(_ failure: DeviceError?) { connection?.diskFinished(failure) }
}

import EventLoop
import HTTP
import JSON
import Notifications

/// The devices of a load run: connects them at a rate, keeps them connected, and acknowledges what they get.
final class LoadFleet {
  /// Numbers for the report.
  struct Counts: Sendable, Hashable {
    var connected = 0
    var connections = 0
    var responses = 0
    var acceptedResponses = 0
    var unregistered = 0
    /// Devices that the cluster does not want back, such as those that another process has taken over.
    var refused = 0
  }

  private let loop: EventLoop
  private let plan: LoadPlan
  /// The names of the run's present requests.
  var names: LoadNames
  /// Whether devices reconnect as the plan's churn says.
  var churns = false
  private let place: LoadPlace
  let client: WebSocketClient
  private weak var owner: LoadCore?
  private(set) var devices: [LoadDevice] = []
  private(set) var counts = Counts()
  /// Why a device was refused for good, or the last failure to connect.
  private(set) var failure: (text: String, isFinal: Bool)?
  private var timer: Timer?
  private var turnEnd: TurnEnd?
  private var json = JSONWriter(capacity: 1024)
  /// Devices that wait for a connection, in order.
  private var waiting = Queue<Int>()
  /// Devices that reconnect later, with the time in the loop's milliseconds.
  private var later: [(at: UInt64, device: Int)] = []
  private var allowance = 0.0
  private var lastTick: UInt64 = 0
  /// In the order of time.
  private var slowAcknowledgements = Queue<(at: UInt64, device: Int, connection: Int, delivery: UInt64, dropped: DropReason?)>()
  private var unflushed: [LoadDevice] = []
  private var churnDebt = 0.0
  private var churned: UInt64 = 0
  /// The greatest difference of the cluster's clock to this one. A welcome is never older than it was sent, so the greatest is the best.
  private(set) var clockOffset: Int64?
  /// How long this process has stood still, in milliseconds, and until when that excuses late arrivals.
  private var stall: (milliseconds: Int64, until: UInt64) = (0, 0)
  private(set) var isLeaving = false

  private static let tickMilliseconds = 10
  /// A tick that is later by this means that the process stood still. Frames wait in the sockets meanwhile.
  private static let stallMilliseconds: UInt64 = 200

  init(on loop: EventLoop, _ plan: LoadPlan, _ names: LoadNames, _ place: LoadPlace, owner: LoadCore) {
    (self.loop, self.plan, self.names, self.place, self.owner) = (loop, plan, names, place, owner)
    var webSocket = WebSocketConfiguration()
    webSocket.subprotocols = [DeviceProtocol.subprotocol]
    webSocket.maximumMessageBytes = 1 << 20
    client = WebSocketClient(on: loop, configuration: webSocket, connectMilliseconds: 30_000)
    client.authorities = place.authorities
    devices = (0..<plan.devices.count).map { LoadDevice($0, isSlow: plan.isSlow($0), of: self) }
    lastTick = loop.milliseconds()
    timer = Timer(on: loop) { [unowned self] in tick() }
    turnEnd = loop.onTurnEnd { [unowned self] in flush() }
  }

  /// Begins to connect all devices.
  func begin() {
    for device in devices { waiting.append(device.number) }
    timer?.start(after: 0, repeating: Self.tickMilliseconds)
  }

  /// Reconnects the plan's share of the devices at once.
  func storm() {
    for device in devices {
      var lot = LoadLot(plan.seed, 4, UInt64(device.number))
      if lot.share() < plan.devices.storm { device.reconnect() }
    }
  }

  /// Unregisters all devices; each is gone when the cluster has closed its connection.
  func unregister() {
    isLeaving = true
    churns = false
    for device in devices { device.unregister(&json) }
  }

  /// Cuts the connections that are left.
  func close() {
    for device in devices { device.cut() }
    timer?.close()
    turnEnd?.close()
    (timer, turnEnd) = (nil, nil)
    owner = nil
  }

  // MARK: The clock

  private func tick() {
    let now = loop.milliseconds()
    let elapsed = now - min(lastTick, now)
    lastTick = now
    if elapsed > Self.stallMilliseconds { stall = (Int64(elapsed), now + elapsed) }
    later.removeAll { entry in
      guard entry.at <= now else { return false }
      waiting.append(entry.device)
      return true
    }
    // A process that stood still must not connect all at once then.
    allowance = min(allowance + Double(plan.devices.connectRate) * Double(elapsed) / 1000, max(1, Double(plan.devices.connectRate) / 5))
    while allowance >= 1, let device = waiting.popFirst() {
      allowance -= 1
      connect(devices[device])
    }
    churn(elapsed)
    passAcknowledgements(now)
  }

  private func churn(_ elapsed: UInt64) {
    guard churns, plan.devices.churn > 0 else { return }
    churnDebt += plan.devices.churn * Double(plan.devices.count) * Double(elapsed) / 60_000
    while churnDebt >= 1 {
      churnDebt -= 1
      churned += 1
      var lot = LoadLot(plan.seed, 5, churned)
      devices[lot.number(below: devices.count)].reconnect()
    }
  }

  // MARK: Connections

  private func connect(_ device: LoadDevice) {
    guard device.beginConnecting() else { return }
    owner?.deviceNeedsConnection(device.number, to: place.urls[(device.number + device.failedAttempts) % place.urls.count])
  }

  /// A device could not be connected.
  func failed(_ device: Int, _ error: WebSocketClientError) {
    if failure?.isFinal != true { failure = ("\(error)", false) }
    devices[device].failed()
  }

  func hello(of device: Int) -> Hello {
    let (token, user) = (names.token(device), names.user(plan.user(of: device)))
    return Hello(
      device: token, application: names.application, credential: place.credential?(token, names.application, user), user: user,
      platform: "load", authorization: Authorization(status: .authorized, options: [.alert: true, .sound: true, .badge: true]))
  }

  func send(_ hello: Hello, on connection: WebSocketConnection) {
    json.reset()
    hello.write(to: &json)
    Self.send(json, on: connection)
  }

  static func send(_ json: borrowing JSONWriter, on connection: WebSocketConnection) {
    json.withUnsafeBytes { bytes in _ = connection.send(.text(count: bytes.count) { $0.copyMemory(from: bytes) }) }
  }

  func welcomed(_ device: LoadDevice, now: Int64?) {
    counts.connected += 1
    counts.connections += 1
    if let now { clockOffset = max(clockOffset ?? .min, now - loop.wallMilliseconds()) }
    owner?.deviceConnected(device.number)
    if isLeaving { device.unregister(&json) }
  }

  /// A device's connection has ended.
  ///
  /// - Parameter refusal: why the device must not come back; nil if it may, or if it was unregistered.
  func ended(_ device: LoadDevice, wasOpen: Bool, refusal: String?) {
    if wasOpen {
      counts.connected -= 1
      owner?.deviceDisconnected(device.number)
    }
    if let refusal {
      failure = (refusal, true)
      counts.refused += 1
    }
    if case .gone = device.phase, refusal == nil { counts.unregistered += 1 }
  }

  func reconnect(_ device: LoadDevice, after milliseconds: Int) {
    if milliseconds == 0 {
      waiting.append(device.number)
    } else {
      later.append((loop.milliseconds() + UInt64(milliseconds), device.number))
    }
  }

  // MARK: Notifications

  /// A device has received a request's notification; answers why it drops it.
  func received(
    _ request: Int, revision: Revision, expiration: Int64, by device: LoadDevice, frame: () -> ServerFrame?
  ) -> DropReason? {
    let dropped = owner?.deviceReceived(request, device: device.number, revision: revision, isPast: isPast(expiration))
    if dropped == nil { respond(to: request, by: device, frame) }
    return dropped
  }

  private func respond(to request: Int, by device: LoadDevice, _ frame: () -> ServerFrame?) {
    guard plan.devices.responding > 0, plan.opens(request, at: device.number), case .notify(let notification) = frame() else { return }
    counts.responses += 1
    device.respond(
      ResponseFrame(
        response: "\(device.number)-\(request)-\(counts.responses)", receipt: notification.receipt, identifier: notification.identifier,
        action: NotificationAction.defaultIdentifier), &json)
  }

  /// How long a notification may take after the cluster has checked its expiration for the last time.
  private static let underWaySeconds: Int64 = 2

  private func isPast(_ expiration: Int64) -> Bool {
    guard expiration > 0, let clockOffset else { return false }
    let excuse = loop.milliseconds() <= stall.until ? stall.milliseconds : 0
    return (loop.wallMilliseconds() + clockOffset - excuse) / 1000 >= expiration + Self.underWaySeconds
  }

  func accepted() { counts.acceptedResponses += 1 }

  /// Acknowledges a delivery, which a slow device does later.
  func acknowledge(_ delivery: UInt64, dropped: DropReason?, of device: LoadDevice) {
    guard device.isSlow else { return queue(delivery, dropped, device) }
    // All have one delay.
    let time = loop.milliseconds() + UInt64(LoadPlan.slowMilliseconds)
    slowAcknowledgements.append((time, device.number, device.connections, delivery, dropped))
  }

  private func passAcknowledgements(_ now: UInt64) {
    while let entry = slowAcknowledgements.first, entry.at <= now {
      _ = slowAcknowledgements.popFirst()
      if devices[entry.device].connections == entry.connection { queue(entry.delivery, entry.dropped, devices[entry.device]) }
    }
  }

  private func queue(_ delivery: UInt64, _ dropped: DropReason?, _ device: LoadDevice) {
    if device.queue(delivery, dropped: dropped) { unflushed.append(device) }
  }

  /// All deliveries of a turn are acknowledged together.
  private func flush() {
    guard !unflushed.isEmpty else { return }
    for device in unflushed { device.flush(&json) }
    unflushed.removeAll(keepingCapacity: true)
  }
}

import HTTP
import JSON
import Notifications

/// One device of a load run: a connection, and the acknowledgements that are due. Its fleet owns it.
///
/// It keeps no notifications. What it has received is in the run's ledger.
final class LoadDevice: WebSocketHandler {
  enum Phase {
    /// It has no connection. It waits for its turn, or is not wanted yet.
    case away
    case connecting
    /// The hello is sent.
    case greeting(WebSocketConnection)
    case open(WebSocketConnection)
    /// It was unregistered, or the cluster does not want it back.
    case gone
  }

  let number: Int
  let isSlow: Bool
  private(set) var phase = Phase.away
  /// Counts the connections, so that no delivery is acknowledged in a later one.
  private(set) var connections = 0
  private(set) var failedAttempts = 0
  /// Whether the next end of the connection is wanted by this side, so that it reconnects at once.
  private var isLeaving = false
  private var reconnectAfterMilliseconds: Int?
  private var acknowledged: [UInt64] = []
  private var dropped: [(delivery: UInt64, reason: DropReason)] = []
  private unowned let fleet: LoadFleet

  init(_ number: Int, isSlow: Bool, of fleet: LoadFleet) { (self.number, self.isSlow, self.fleet) = (number, isSlow, fleet) }

  var isOpen: Bool { if case .open = phase { true } else { false } }

  // MARK: The connection

  /// Notes that the fleet connects it; false if it must not.
  func beginConnecting() -> Bool {
    guard case .away = phase else { return false }
    phase = .connecting
    return true
  }

  func webSocketOpened(_ connection: WebSocketConnection) {
    guard case .connecting = phase else { return connection.abort() }
    phase = .greeting(connection)
    connections += 1
    acknowledged.removeAll()
    dropped.removeAll()
    fleet.send(fleet.hello(of: number), on: connection)
  }

  /// The attempt to connect has failed.
  func failed() {
    guard case .connecting = phase else { return }
    phase = .away
    failedAttempts += 1
    let wait = Reconnection.backOff(from: 0, to: 30_000).wait(attempt: failedAttempts, told: nil, jitter: .random(in: 0...1))
    fleet.reconnect(self, after: wait ?? 1_000)
  }

  /// Cuts the connection for good.
  func cut() {
    let connection: WebSocketConnection? =
      switch phase {
      case .greeting(let connection), .open(let connection): connection
      case .away, .connecting, .gone: nil
      }
    phase = .gone
    connection?.abort()
  }

  /// Closes the connection and connects again.
  func reconnect() {
    guard case .open(let connection) = phase else { return }
    isLeaving = true
    connection.close(.normal, pending: .sent)
  }

  func webSocketEnded(_ end: WebSocketEnd) {
    let wasOpen = isOpen
    let isReady = isLeaving
    isLeaving = false
    if case .gone = phase { return }
    let code = end.code.rawValue
    let reconnection = isReady ? .backOff(from: 0, to: 0) : CloseCode.reconnection(after: code)
    if wasOpen { failedAttempts = 0 } else { failedAttempts += 1 }
    guard let wait = reconnection.wait(attempt: failedAttempts, told: reconnectAfterMilliseconds, jitter: .random(in: 0...1)) else {
      phase = .gone
      return fleet.ended(self, wasOpen: wasOpen, refusal: code == CloseCode.unregistered.rawValue ? nil : "\(end)")
    }
    phase = .away
    reconnectAfterMilliseconds = nil
    fleet.ended(self, wasOpen: wasOpen, refusal: nil)
    fleet.reconnect(self, after: isReady ? 0 : wait)
  }

  // MARK: Frames

  func webSocketReceived(text: UnsafeRawBufferPointer) {
    guard let frame = LoadFrame(text) else { return }
    switch (frame.type, phase) {
    case (.welcome, .greeting(let connection)):
      phase = .open(connection)
      failedAttempts = 0
      fleet.welcomed(self, now: frame.now)
    case (.notify, .open), (.remove, .open):
      guard let delivery = frame.delivery else { return }
      var dropped: DropReason?
      if let id = frame.id, let revision = frame.revision, frame.type == .notify,
        let request = fleet.names.request(of: id, identifier: { frame.identifier })
      {
        dropped = fleet.received(request, revision: revision, expiration: frame.expiration, by: self) { try? ServerFrame(text) }
      }
      fleet.acknowledge(delivery, dropped: dropped, of: self)
    case (.goaway, _): reconnectAfterMilliseconds = frame.reconnectAfterMilliseconds
    case (.accepted, .open): if frame.isOfResponse { fleet.accepted() }
    default: break
    }
  }

  func webSocketReceived(binary: UnsafeRawBufferPointer) {}

  /// Queues an acknowledgement until the end of the turn; answers whether it is the first of this turn.
  func queue(_ delivery: UInt64, dropped reason: DropReason?) -> Bool {
    if let reason { dropped.append((delivery, reason)) } else { acknowledged.append(delivery) }
    return acknowledged.count + dropped.count == 1
  }

  /// Sends the queued acknowledgements.
  func flush(_ json: inout JSONWriter) {
    defer {
      acknowledged.removeAll(keepingCapacity: true)
      dropped.removeAll(keepingCapacity: true)
    }
    guard case .open(let connection) = phase, acknowledged.count + dropped.count > 0 else { return }
    json.reset()
    AckFrame.write(deliveries: acknowledged, dropped: dropped, to: &json)
    LoadFleet.send(json, on: connection)
  }

  func respond(_ frame: ResponseFrame, _ json: inout JSONWriter) {
    guard case .open(let connection) = phase else { return }
    json.reset()
    frame.write(to: &json)
    LoadFleet.send(json, on: connection)
  }

  /// Signs out; the cluster closes the connection then.
  func unregister(_ json: inout JSONWriter) {
    guard case .open(let connection) = phase else { return }
    json.reset()
    UnregisterFrame(request: "end").write(to: &json)
    LoadFleet.send(json, on: connection)
  }
}

public import EventLoop

/// A fixed port of 127.0.0.1 for an embedded broker, since librdkafka takes any free port.
///
/// It forwards requests to the broker, and responses back. In responses that contain the broker's port it puts its own, so that clients
/// stay here.
public actor EmbeddedBrokerPort: LoopActor {
  /// The actor's loop.
  public nonisolated let loop: EventLoop
  /// Where clients connect.
  public nonisolated let address: SocketAddress
  private let broker: SocketAddress
  private let connections = Connections()
  private var listener: Listener?

  private final class Connections {
    var last = 0
    var relays: [Int: Relay] = [:]
  }

  private static let connectMilliseconds = 5_000

  /// Makes a port for a broker. It does not listen yet.
  ///
  /// - Parameter broker: `HOST:PORT` of an embedded broker, from its `bootstrapServers`.
  public init(_ port: Int, of broker: String, on loop: EventLoop) throws(KafkaError) {
    guard let broker = SocketAddress(broker) else {
      throw KafkaError(.invalidConfiguration, "take port \(port) for an embedded broker", message: "'\(broker)' is no address")
    }
    self.loop = loop
    self.broker = broker
    address = SocketAddress(host: broker.host, port: port)
  }

  /// Accepts connections from now on.
  public func listen() throws(EventLoopError) {
    let (connections, ports) = (connections, (own: UInt16(address.port), broker: UInt16(broker.port)))
    listener = try Listener(on: loop, at: address) { [weak self] client in
      guard let self else { return client.close() }
      connections.last += 1
      let number = connections.last
      let relay = Relay(client, host: address.host, ports) { connections.relays[number] = nil }
      connections.relays[number] = relay
      Task { await self.join(number) }
    }
  }

  private func join(_ number: Int) async {
    do {
      let stream = try await Stream.connect(on: loop, to: broker, timeoutMilliseconds: Self.connectMilliseconds)
      if let relay = connections.relays[number] { relay.join(stream) } else { stream.close() }
    } catch {
      connections.relays[number]?.close()
    }
  }

  /// Stops listening, and closes all connections.
  public func close() {
    listener?.close()
    listener = nil
    for relay in connections.relays.values { relay.close() }
  }
}

/// A client's connection, and its connection to the broker.
private final class Relay {
  private let client: Stream
  private var broker: Stream?
  private var requests = RequestFrames()
  private var responses: ResponseFrames
  private var onEnd: (() -> Void)?

  /// The limit of the bytes that wait for one side. Beyond it the other side is not read.
  private static let maximumPending = 1 << 20
  private static let finishMilliseconds = 2_000

  init(_ client: Stream, host: String, _ ports: (own: UInt16, broker: UInt16), _ onEnd: @escaping () -> Void) {
    self.client = client
    self.onEnd = onEnd
    responses = ResponseFrames(host: host, from: ports.broker, to: ports.own)
    client.handler = Side(self, isClient: true)
  }

  func join(_ stream: Stream) {
    broker = stream
    stream.handler = Side(self, isClient: false)
    stream.startReading()
    client.startReading()
  }

  func close() {
    client.close()
    broker?.close()
  }

  /// One of the two streams' ends.
  private final class Side: StreamHandler {
    private let relay: Relay
    private let isClient: Bool

    init(_ relay: Relay, isClient: Bool) { (self.relay, self.isClient) = (relay, isClient) }

    func streamReceived(_ bytes: UnsafeRawBufferPointer) { relay.received(bytes, fromClient: isClient) }
    func streamDrained() { relay.drained(client: isClient) }
    func streamEnded(_ end: StreamEnd) { relay.ended(client: isClient) }
  }

  private func received(_ bytes: UnsafeRawBufferPointer, fromClient: Bool) {
    guard let source = fromClient ? client : broker, let target = fromClient ? broker : client else { return }
    if fromClient {
      requests.read(bytes) { responses.expect($0) }
      target.write(SharedBytes.make(bytes))
    } else {
      responses.read(bytes) { target.write(SharedBytes.make($0)) }
    }
    if target.pendingBytes > Self.maximumPending { source.stopReading() }
  }

  private func drained(client isClient: Bool) { (isClient ? broker : client)?.startReading() }

  private func ended(client isClient: Bool) {
    (isClient ? broker : client)?.finish(withinMilliseconds: Self.finishMilliseconds)
    onEnd?()
    onEnd = nil
  }
}

/// Finds the requests of one connection whose responses contain the broker's port. It changes no byte.
private struct RequestFrames {
  private var header: [UInt8] = []
  private var left = 0

  /// The length, the kind of request, its version, and its correlation id.
  private static let headerBytes = 12

  /// Reads requests in any pieces, and hands out the correlation ids that it looks for.
  mutating func read(_ bytes: UnsafeRawBufferPointer, _ found: (Int32) -> Void) {
    var rest = bytes[...]
    while !rest.isEmpty {
      guard left == 0 else {
        let skipped = min(left, rest.count)
        rest = rest.dropFirst(skipped)
        left -= skipped
        continue
      }
      let taken = rest.prefix(Self.headerBytes - header.count)
      header += taken
      rest = rest.dropFirst(taken.count)
      guard header.count == Self.headerBytes else { return }
      let kind = Int16(truncatingIfNeeded: bigEndian(header[4..<6]))
      if kind == EmbeddedBroker.Request.metadata.rawValue || kind == EmbeddedBroker.Request.findCoordinator.rawValue {
        found(Int32(truncatingIfNeeded: bigEndian(header[8..<12])))
      }
      left = max(0, bigEndian(header[0..<4]) + 4 - Self.headerBytes)
      header.removeAll(keepingCapacity: true)
    }
  }
}

/// The responses of one connection, with another port in those that contain the broker's.
private struct ResponseFrames {
  private let (found, replacement): ([UInt8], [UInt8])
  private var expected: Set<Int32> = []
  private var header: [UInt8] = []
  private var left = 0
  /// The response to change, until all of it has arrived.
  private var response: [UInt8]?

  /// The length, and the correlation id.
  private static let headerBytes = 8

  /// - Parameters:
  ///   - host: the broker's host in its responses.
  ///   - port: the broker's port in its responses.
  ///   - other: the port to put in its place.
  init(host: String, from port: UInt16, to other: UInt16) {
    func written(_ port: UInt16) -> [UInt8] { Array(host.utf8) + [0, 0, UInt8(port >> 8), UInt8(port & 0xFF)] }
    (found, replacement) = (written(port), written(other))
  }

  /// Notes that the response with this correlation id contains the broker's port.
  mutating func expect(_ correlation: Int32) { expected.insert(correlation) }

  /// Reads responses in any pieces, and hands out the bytes to forward.
  mutating func read(_ bytes: UnsafeRawBufferPointer, _ give: (UnsafeRawBufferPointer) -> Void) {
    var rest = bytes[...]
    while !rest.isEmpty {
      if left > 0 {
        let part = rest.prefix(left)
        rest = rest.dropFirst(part.count)
        left -= part.count
        if response == nil { give(UnsafeRawBufferPointer(rebasing: part)) } else { response? += part }
      } else {
        let taken = rest.prefix(Self.headerBytes - header.count)
        header += taken
        rest = rest.dropFirst(taken.count)
        guard header.count == Self.headerBytes else { return }
        left = max(0, bigEndian(header[0..<4]) + 4 - Self.headerBytes)
        let hasAddress = expected.remove(Int32(truncatingIfNeeded: bigEndian(header[4..<8]))) != nil
        if hasAddress { response = header } else { header.withUnsafeBytes(give) }
        header.removeAll(keepingCapacity: true)
      }
      if left == 0, var complete = response {
        response = nil
        replace(in: &complete)
        complete.withUnsafeBytes(give)
      }
    }
  }

  /// Both ports have the same length, and no name in these responses contains a zero byte.
  private func replace(in response: inout [UInt8]) {
    guard response.count >= found.count else { return }
    for start in 0...(response.count - found.count) where response[start..<start + found.count].elementsEqual(found) {
      response.replaceSubrange(start..<start + found.count, with: replacement)
    }
  }
}

private func bigEndian(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

public import EventLoop

/// A fixed port of 127.0.0.1 for an embedded broker, since librdkafka takes any free port.
///
/// It forwards all bytes. The broker tells clients its own port, where they make their further connections.
public actor EmbeddedBrokerPort: LoopActor {
  /// The actor's loop.
  public nonisolated let loop: EventLoop
  /// Where clients connect.
  public nonisolated let address: SocketAddress
  private let broker: SocketAddress
  private let connections = Connections()
  private var listener: Listener?

  /// The clients whose connection to the broker is not made yet.
  private final class Connections {
    var last = 0
    var clients: [Int: Stream] = [:]
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
    let connections = connections
    listener = try Listener(on: loop, at: address) { [weak self] client in
      guard let self else { return client.close() }
      connections.last += 1
      let number = connections.last
      connections.clients[number] = client
      Task { await self.join(number) }
    }
  }

  private func join(_ number: Int) async {
    let stream = try? await Stream.connect(on: loop, to: broker, timeoutMilliseconds: Self.connectMilliseconds)
    guard let client = connections.clients.removeValue(forKey: number) else { return }
    guard let stream else { return client.close() }
    client.handler = Relay(from: client, to: stream)
    stream.handler = Relay(from: stream, to: client)
    client.startReading()
    stream.startReading()
  }

  /// Stops listening. Connections end with the broker.
  public func close() {
    listener?.close()
    listener = nil
  }
}

/// One direction of a forwarded connection.
private final class Relay: StreamHandler {
  private let source: Stream
  private let target: Stream

  /// The limit of the bytes that wait for the target. Beyond it the source is not read.
  private static let maximumPending = 1 << 20
  private static let finishMilliseconds = 2_000

  init(from source: Stream, to target: Stream) { (self.source, self.target) = (source, target) }

  func streamReceived(_ bytes: UnsafeRawBufferPointer) {
    target.write(.make(bytes))
    if target.pendingBytes > Self.maximumPending { source.stopReading() }
  }

  func streamDrained() { target.startReading() }

  func streamEnded(_ end: StreamEnd) { target.finish(withinMilliseconds: Self.finishMilliseconds) }
}

import Cryptography
import EventLoop
import TestSupport

@testable import HTTP

/// Carries connections without TLS to a server with TLS, so that tests for both need no client of their own.
actor TLSTunnel: LoopActor {
  nonisolated let loop: EventLoop
  private let server: Int
  private let authorities: [UInt8]
  private var context: TLSContext?
  private var listener: Listener?
  private let waiting = Waiting()

  /// The connections that are not carried yet.
  private final class Waiting {
    var last = 0
    var streams: [Int: Stream] = [:]
  }

  init(on loop: EventLoop, to server: Int, _ authorities: [UInt8]) {
    (self.loop, self.server, self.authorities) = (loop, server, authorities)
  }

  /// TLS of a server with this process's certificate.
  static func server(_ pair: TestCertificates.Pair? = nil) async throws -> TLSServerConfiguration {
    let pair = if let pair { pair } else { try await TestCertificates.shared.value.good }
    let identity = try TLSIdentity(certificates: Array(pair.certificate.utf8), key: Array(pair.key.utf8))
    return TLSServerConfiguration(
      InForce(identity), ticketSecrets: InForce(KeyRing([KeyRing.Key([1, 2, 3])])), handshakesPerSecond: 100_000)
  }

  /// What its clients trust.
  static func client() async throws -> [UInt8] { Array(try await TestCertificates.shared.value.authority.utf8) }

  /// Listens; returns its port.
  func listen() throws -> Int {
    context = try TLSContext(authorities: authorities, protocols: ["http/1.1"])
    let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { [weak self, waiting] near in
      guard let self else { return near.close() }
      waiting.last += 1
      let number = waiting.last
      waiting.streams[number] = near
      Task { await self.carry(number) }
    }
    self.listener = listener
    return listener.localAddress.port
  }

  func close() { listener?.close() }

  private func carry(_ number: Int) async {
    let far = try? await Stream.connect(
      on: loop, to: SocketAddress(host: "127.0.0.1", port: server), timeoutMilliseconds: hangMilliseconds)
    guard let near = waiting.streams.removeValue(forKey: number), let far, let context else { return }
    let place = SocketAddress(host: "localhost", port: server)
    far.put(TLSLayer(context.connect(host: place.host, isNumeric: false, port: place.port)))
    (near.handler, far.handler) = (Relay(from: near, to: far), Relay(from: far, to: near))
    near.startReading()
    far.startReading()
  }
}

/// One direction of a tunnel's connection.
private final class Relay: StreamHandler {
  private static let maximumPending = 65_536
  private let (source, sink): (Stream, Stream)

  init(from source: Stream, to sink: Stream) { (self.source, self.sink) = (source, sink) }

  func streamReceived(_ bytes: UnsafeRawBufferPointer) {
    sink.write(.make(bytes))
    if sink.pendingBytes > Self.maximumPending { source.stopReading() }
  }

  func streamDrained() { sink.startReading() }

  func streamEnded(_ end: StreamEnd) {
    if case .failed = end { sink.close() } else { sink.finish(withinMilliseconds: hangMilliseconds) }
  }
}

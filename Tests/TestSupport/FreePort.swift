public import EventLoop

/// A port of 127.0.0.1 that nobody listens at.
///
/// It lies below those that the system gives to connections and to whoever asks for any port, and below those of `Deploy/kafka`, so that
/// nobody takes it meanwhile by chance.
public func freePort(on loop: EventLoop) async throws -> Int {
  while true {
    let port = Int.random(in: 15_000..<20_000)
    do {
      try await loop.run { try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: port)) { $0.close() }.close() }
      return port
    } catch let error as EventLoopError where error.code == .addressInUse {
      continue
    }
  }
}

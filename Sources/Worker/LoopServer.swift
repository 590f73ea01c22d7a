public import EventLoop
public import HTTP

/// An HTTP server with a loop of its own.
public actor LoopServer: LoopActor {
  /// The server's loop is its executor.
  public nonisolated let loop: EventLoop
  private var server: HTTPServer?
  private var pulse: Timer?

  /// Where it listens, with the real port instead of 0.
  public private(set) var address: SocketAddress

  /// Starts the loop and listens.
  ///
  /// - Parameters:
  ///   - eachSecond: called each second on the loop.
  ///   - routes: makes the routes of a server at this address, on the loop.
  /// - Throws: if the address is in use or does not belong to this machine. Then nothing is left running.
  public static func start(
    _ name: String, at address: SocketAddress, _ configuration: HTTPServerConfiguration, eachSecond: (@Sendable () -> Void)? = nil,
    routes: @escaping @Sendable (SocketAddress) -> HTTPRoutes
  ) async throws(EventLoopError) -> LoopServer {
    let server = LoopServer(EventLoop(name: name), address)
    do {
      try await server.listen(configuration, eachSecond, routes)
    } catch {
      await server.close(withinMilliseconds: 0)
      throw error
    }
    return server
  }

  private init(_ loop: EventLoop, _ address: SocketAddress) { (self.loop, self.address) = (loop, address) }

  private func listen(
    _ configuration: HTTPServerConfiguration, _ eachSecond: (@Sendable () -> Void)?, _ routes: @Sendable (SocketAddress) -> HTTPRoutes
  ) throws(EventLoopError) {
    let server = try HTTPServer(on: loop, at: address, configuration: configuration, routes: routes(address))
    (self.server, address) = (server, server.localAddress)
    pulse = eachSecond.map { Timer(on: loop, $0) }
    pulse?.start(after: 1000, repeating: 1000)
  }

  /// Answers open requests, then ends the server and its loop. Nothing of the server may be called afterwards.
  public nonisolated func close(withinMilliseconds milliseconds: Int = 1000) async {
    await stop(withinMilliseconds: milliseconds)
    // Not in a method of the actor, which could not continue after its loop has ended.
    await loop.close()
  }

  private func stop(withinMilliseconds milliseconds: Int) async {
    pulse?.close()
    let server = server
    (self.server, pulse) = (nil, nil)
    await server?.close(withinMilliseconds: milliseconds)
  }
}

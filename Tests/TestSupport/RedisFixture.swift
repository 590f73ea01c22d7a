import EventLoop
public import Redis

/// Starts a Redis of the caller's own, lends it, and removes it: nothing is shared between tests.
///
/// `server.address` is where it listens; `server.kill()` and `server.launch()` are a crash and a restart at the same address.
public func withRedis<T>(
  listening: PrivateServer.Listening = .unixSocket, settings: [String] = [], _ body: (_ server: PrivateServer) async throws -> T
) async throws -> T {
  let loop = EventLoop(name: "redis-fixture")
  let server: PrivateServer
  do {
    server = try await Task(executorPreference: loop) {
      try await PrivateServer.start(on: loop, listening: listening, settings: settings, deadlineMilliseconds: hangMilliseconds)
    }.value
  } catch {
    await loop.close()
    throw error
  }
  do {
    let result = try await body(server)
    await server.stop()
    await loop.close()
    return result
  } catch {
    await server.stop()
    await loop.close()
    throw error
  }
}

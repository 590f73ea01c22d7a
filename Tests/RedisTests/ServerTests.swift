import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Redis

@Suite struct ServerTests {
  @Test(arguments: [[], ["--requirepass", "right"]]) func anotherServerAtThePortIsNotTakenForOurs(settings: [String]) async throws {
    try await withRedis(listening: .port(nil), settings: settings) { server in
      let port = try #require("\(server.address)".split(separator: ":").last.flatMap { Int($0) })
      let loop = EventLoop(name: "second")
      let error = await #expect(throws: RedisError.self) {
        try await Task(executorPreference: loop) {
          try await PrivateServer.start(
            on: loop, listening: .port(port), hasPassword: !settings.isEmpty, deadlineMilliseconds: hangMilliseconds
          ).stop()
        }.value
      }
      #expect(error?.code == .serverFailed && error?.message.contains("Address already in use") == true, "\(error?.message ?? "")")
      await loop.close()
    }
  }

  @Test func aServerThatCannotStartSaysWhy() async throws {
    let error = await #expect(throws: RedisError.self) { try await withRedis(settings: ["--no-such-setting", "1"]) { _ in } }
    #expect(error?.code == .serverFailed)
    #expect(error?.message.contains("no-such-setting") == true, "\(error?.message ?? "")")
  }

  @Test func nothingIsLeftOfAStoppedServer() async throws {
    let (pid, path) = try await withRedis { server in
      guard case .unix(let path) = server.address.endpoint, let pid = await server.pid else { throw RedisError(.serverFailed, "no server") }
      #expect(access(path, F_OK) == 0)
      #expect(kill(pid, 0) == 0)
      return (pid, path)
    }
    #expect(kill(pid, 0) != 0)
    #expect(access(path, F_OK) != 0)
    #expect(access(path.replacing("/redis.sock", with: ""), F_OK) != 0)
  }
}

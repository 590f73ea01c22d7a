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

  /// Makes a folder, or takes the one there is, and says that it has not been touched for long.
  private func age(_ path: String) throws {
    mkdir(path, 0o700)
    let long = [timespec(tv_sec: time(nil) - 3600, tv_nsec: 0), timespec(tv_sec: time(nil) - 3600, tv_nsec: 0)]
    // Another test's server may have removed it meanwhile.
    try #require(utimensat(AT_FDCWD, path, long, 0) == 0 || errno == ENOENT)
  }

  @Test func whatAKilledProcessLeftOfItsServerIsRemovedByTheNextAndWhatIsUsedIsNot() async throws {
    try await withRedis { server in
      guard case .unix(let path) = server.address.endpoint else { throw RedisError(.serverFailed, "no socket") }
      let used = path.replacing("/redis.sock", with: "")
      let (left, others, young) = ("\(used)L", "\(used)L/appendonlydir", "\(used)Y")
      let foreign = used.replacing("carillon-redis-", with: "carillon-other-")
      for path in [used, left, foreign] { try age(path) }
      mkdir(others, 0o700)
      try age(left)
      mkdir(young, 0o700)
      defer { for path in [young, foreign] { rmdir(path) } }
      try await withRedis { _ in }
      // Another test's server may be at it.
      await eventually("a folder that nobody locks goes") { access(left, F_OK) != 0 }
      for path in [used, young, foreign] { #expect(access(path, F_OK) == 0, "\(path) stays") }
    }
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

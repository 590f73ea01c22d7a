import EventLoop
import Foundation
import JSON
import Redis
import TestSupport
import Testing

@testable import Command

/// `carillon up`: everything in one process, found by the tools, and nothing left behind.
@Suite struct UpTests {
  private func isAlive(_ pid: Int32) -> Bool { kill(pid, 0) == 0 }

  /// The process ids of a process' children.
  private func children(of pid: Int32) throws -> [Int32] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { Int32($0) }.filter { candidate in
      guard let stat = try? String(contentsOfFile: "/proc/\(candidate)/stat", encoding: .utf8),
        let fields = stat.split(separator: ")").last?.split(separator: " "), fields.count > 1
      else { return false }
      return Int32(fields[1]) == pid && fields[0] != "Z"
    }
  }

  /// Its Redis takes nobody without the password, which is in the answer and in a file of the user's own, and no process list shows.
  private func expectAPassword(_ places: JSONValue, _ carillon: CarillonCommand, _ redis: Int32) async throws {
    let text = try #require(places["redis"]?.stringValue)
    let address = try RedisAddress(text)
    let password = try #require(address.password)
    #expect(password.count >= 32)
    let commandLine = try String(contentsOfFile: "/proc/\(redis)/cmdline", encoding: .utf8)
    #expect(commandLine.contains("redis-server") && !commandLine.contains(password))
    let file = carillon.folder.appendingPathComponent("carillon/up.json")
    #expect(try JSONValue(parsing: String(contentsOf: file, encoding: .utf8))["redis"]?.stringValue == text)
    #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)

    let port = try #require(text.split(separator: ":").last.flatMap { Int($0) })
    #expect(address.endpoint == .tcp(host: "127.0.0.1", port: port))
    let stranger = try RawSocket(port: port)
    try stranger.send("GET x\r\n")
    #expect(try stranger.read(through: "\r\n").hasPrefix("-NOAUTH"))
    try stranger.send("AUTH \(password)\r\n")
    #expect(try stranger.read(through: "\r\n") == "+OK\r\n")
  }

  @Test(arguments: isComplete ? [SIGTERM, SIGINT] : [SIGTERM]) func itIsFoundByTheToolsAndLeavesNothingBehind(signal: Int32) async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(
        ["up", "--json", "--listen", "localhost:0", "--admin", "127.0.0.1:0", "--kafka-port", "0", "--redis-port", "0"])
      let places = try JSONValue(parsing: try await up.firstLine())
      for name in ["kafka", "redis", "devices", "metrics"] { #expect(places[name]?.stringValue != nil, "no '\(name)' in \(places.text)") }
      #expect(!up.errorsSoFar.contains("WARNING"), "a healthy start said: \(up.errorsSoFar)")
      let redis = try #require(try children(of: up.pid).first)
      try await expectAPassword(places, carillon, redis)

      let published = try await carillon.run(["publish", "--target", "user:ada", "--app", "com.example", "--body", "x"])
      #expect(published.status == 0, "it said: \(published.errors)")
      let id = try #require(published.lines.first)
      let events = try await carillon.run(["events", "--from", "beginning", "--id", id, "--limit", "2", "--json"])
      #expect(
        try events.lines.compactMap { try JSONValue(parsing: $0)["ce_type"]?.stringValue } == [
          "carillon.addressed.v1", "carillon.unregistered.v1",
        ])

      let second = try await carillon.run(["up"])
      #expect(second.status == 1)
      #expect(second.output.isEmpty)
      #expect(second.errors.contains("already runs as process \(up.pid)"))
      let kafka = try #require(places["kafka"]?.stringValue)
      #expect(second.errors.contains(kafka))
      let password = try #require(places["redis"]?.stringValue?.firstMatch(of: /:([^:@\/]+)@/)?.1)
      for text in [up.errorsSoFar, second.errors] { #expect(!text.contains(password)) }

      up.signal(signal)
      let result = try await up.result()
      #expect(result.status == 0, "it said: \(result.errors)")
      #expect(result.lines.count == 1)
      #expect(!isAlive(redis))
      let left = try FileManager.default.contentsOfDirectory(atPath: carillon.folder.appendingPathComponent("carillon").path)
      #expect(left == ["up.lock"])
      #expect(try FileManager.default.contentsOfDirectory(atPath: carillon.folder.appendingPathComponent("tmp").path).isEmpty)
      #expect(try await carillon.run(["events"]).errors.contains("start 'carillon up'"))
    }
  }

  @Test(.onlyInAll("RuntimeFolderTests have which folder it is"))
  func `a folder that somebody else has made first keeps nobody from it, and the tools find it all the same`() async throws {
    try await CarillonCommand.with { carillon in
      let home = carillon.folder.appendingPathComponent("home").path
      for name in ["home", "tmp"] {
        try FileManager.default.createDirectory(at: carillon.folder.appendingPathComponent(name), withIntermediateDirectories: true)
      }
      for place in ["carillon", "tmp/carillon-\(getuid())"] {
        try FileManager.default.createSymbolicLink(
          at: carillon.folder.appendingPathComponent(place), withDestinationURL: URL(fileURLWithPath: "/"))
      }
      let flags = CarillonCommand.up
      let publish = ["publish", "--target", "user:ada", "--app", "com.example", "--body", "x"]
      let up = try carillon.start(flags, environment: ["HOME": home])
      _ = try await up.firstLine()
      #expect(try await carillon.run(publish, environment: ["HOME": home]).status == 0)
      #expect(try await carillon.run(["up"], environment: ["HOME": home]).errors.contains("already runs as process \(up.pid)"))

      // Where there is no place at all it runs, and says that the tools need flags.
      let lost = try carillon.start(flags, environment: ["HOME": "/no/where"])
      let places = try JSONValue(parsing: try await lost.firstLine())
      #expect(lost.errorsSoFar.contains("the tools find it only with --kafka and --devices"), "it said: \(lost.errorsSoFar)")
      let kafka = try #require(places["kafka"]?.stringValue)
      #expect(try await carillon.run(publish + ["--kafka", kafka], environment: ["HOME": "/no/where"]).status == 0)
      try await lost.stop()
      try await up.stop()
    }
  }

  @Test(.onlyInAll("UsageTests.aPortThatIsTakenIsToldByItsFlag starts it at a port"))
  func kafkaAndRedisAreAtThePortsThatAreAskedFor() async throws {
    try await CarillonCommand.with { carillon in
      let loop = EventLoop(name: "ports")
      let (kafka, redis) = (try await freePort(on: loop), try await freePort(on: loop))
      await loop.close()
      let flags = CarillonCommand.up
      let up = try carillon.start(flags + ["--kafka-port", "\(kafka)", "--redis-port", "\(redis)"])
      let places = try JSONValue(parsing: try await up.firstLine())
      #expect(places["kafka"]?.stringValue == "127.0.0.1:\(kafka)")
      #expect(places["redis"]?.stringValue?.hasSuffix("@127.0.0.1:\(redis)") == true)
      let given = ["--kafka", "127.0.0.1:\(kafka)"]
      let published = try await carillon.run(["publish", "--target", "user:ada", "--app", "com.example", "--body", "x"] + given)
      #expect(published.status == 0, "it said: \(published.errors)")
      let events = try await carillon.run(["events", "--from", "beginning", "--limit", "2"] + given)
      #expect(events.lines.count == 2, "it said: \(events.errors)")

      for taken in [["--kafka-port", "\(kafka)"], ["--redis-port", "\(redis)"]] {
        let other = try await carillon.run(flags + ["--new"] + taken)
        #expect(other.status == 2 && other.errors.contains("127.0.0.1:\(taken[1]): address already in use"), "it said: \(other.errors)")
      }
      try await up.stop()
    }
  }

  @Test(.onlyInAll("it is whole clusters, and one is in itIsFoundByTheToolsAndLeavesNothingBehind"))
  func severalThatStartAtOnceEachListenSomewhere() async throws {
    try await CarillonCommand.with { carillon in
      let all = try (0..<3).map { _ in try carillon.start(["up", "--json", "--new"]) }
      var (devices, admins) = (Set<String>(), Set<String>())
      for up in all {
        let places = try JSONValue(parsing: try await up.firstLine())
        devices.insert(try #require(places["devices"]?.stringValue))
        admins.insert(try #require(places["admin"]?.stringValue))
      }
      #expect(devices.count == 3 && admins.count == 3)
      for up in all { try await up.stop() }
    }
  }

  @Test func theBannerSaysWhatToTypeNext() {
    let running = RunningCluster(
      kafka: "127.0.0.1:1", redis: "redis://:secret@127.0.0.1:2", devices: "ws://127.0.0.1:3/v1/device",
      page: "http://127.0.0.1:3/device/", admin: "http://127.0.0.1:4",
      requests: "http://127.0.0.1:5/v1/requests")
    let text = UpBanner.text(running, isFound: false, keyFile: nil)
    #expect(text.contains("redis://:***@127.0.0.1:2") && !text.contains("secret"), "it says: \(text)")
    for word in [
      "It keeps nothing", " device --devices ws://127.0.0.1:3", " publish --kafka 127.0.0.1:1 ", " events --kafka ", "kcat", "Ctrl-C",
      "a page   http://127.0.0.1:3/device/\n", "requests http://127.0.0.1:5/v1/requests\n", "\"title\":\"Order\"}' http://127.0.0.1:5/",
    ] {
      #expect(text.contains(word), "no '\(word)' in the banner")
    }
    let found = UpBanner.text(running, isFound: true, keyFile: "cluster.key")
    #expect(!found.contains("--kafka 127") && found.contains("token --key cluster.key ") && !found.contains("secret"), "it says: \(found)")
  }

  @Test(arguments: isComplete ? [50, 200, 800] : [200]) func anEarlySignalLeavesNothingBehindEither(milliseconds: Int) async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      // The signals are taken over before anything is started.
      if milliseconds > 50 { try await up.untilErrors(contain: milliseconds > 200 ? "up: Redis at" : "up: Kafka at") }
      up.signal(SIGTERM)
      let result = try await up.result()
      #expect(result.status == 0 || milliseconds == 50, "it said: \(result.errors)")
      let temporary = carillon.folder.appendingPathComponent("tmp").path
      #expect(try FileManager.default.contentsOfDirectory(atPath: temporary).isEmpty)
    }
  }

  @Test(.onlyInAll("it is many starts, and anEarlySignalLeavesNothingBehindEither has one")) func aSignalAtAnyMomentOfTheStartEndsIt()
    async throws
  {
    try await withThrowingTaskGroup { group in
      for part in 0..<3 {
        group.addTask {
          for microseconds in stride(from: part * 600, to: 60_000, by: 1800) {
            try await CarillonCommand.with { carillon in
              let up = try carillon.start(CarillonCommand.up)
              // About as long: the moment may be any.
              for _ in 0..<microseconds * 10 { _ = getppid() }
              up.signal(SIGTERM)
              let result = try await up.result()
              // Before it takes the signals over they end it as they end any program.
              #expect(
                [0, 128 + SIGTERM].contains(result.status), "after \(microseconds) µs it ended with \(result.status): \(result.errors)")
            }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test(.onlyInAll("it is whole clusters, and one is in itIsFoundByTheToolsAndLeavesNothingBehind"))
  func aFurtherOneRunsBesideTheFirstWhenAskedFor() async throws {
    try await CarillonCommand.with { carillon in
      let flags = CarillonCommand.up
      let first = try carillon.start(flags)
      let firstPlaces = try JSONValue(parsing: try await first.firstLine())
      let second = try carillon.start(flags + ["--new"])
      let secondPlaces = try JSONValue(parsing: try await second.firstLine())
      #expect(firstPlaces["kafka"] != secondPlaces["kafka"])
      try await second.stop()
      // The tools still find the first.
      #expect(try await carillon.run(["publish", "--target", "user:ada", "--app", "com.example", "--body", "x"]).status == 0)
      try await first.stop()
    }
  }
}

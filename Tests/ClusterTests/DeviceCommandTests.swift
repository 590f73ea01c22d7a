import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// `carillon device` as a process, at a real fan-out worker.
  @Suite(.serialized) struct DeviceCommandTests {
    @Test func killedDeviceShowsNothingTwice() async throws {
      try await TestFolder.with { folder in
        try await Self.killedDevice(state: folder.path + "/ada.state")
      }
    }

    private static func killedDevice(state: String) async throws {
      try await ClusterFixture.with(.embedded) { cluster in
        try await cluster.transform()
        let devices = try await cluster.fanOut().devices
        let arguments = [
          "device", "--devices", devices, "--token", String(repeating: "c4", count: 32), "--app", "com.example.shop", "--user", "ada",
          "--state", state, "--json",
        ]
        let publish = [
          "publish", "--kafka", cluster.kafka, "--topic-prefix", cluster.prefix, "--target", "user:ada", "--app", "com.example.shop",
          "--collapse-id", "order-7",
        ]
        // It shows, and the cluster never hears of it.
        let first = try await cluster.tool(arguments + ["--no-ack"])
        try await first.line("is connected") { $0["event"] == "connected" }
        let published = try await cluster.tool(publish + ["--title", "On its way"])
        let exit = try await published.exit()
        #expect(exit == .exited(0))
        let shown = try await first.line("shows it") { $0["event"] == "shown" }
        await first.kill()

        let second = try await cluster.tool(arguments)
        let dropped = try await second.line("gets it again") { $0["event"] == "dropped" }
        #expect(dropped["id"] == shown["id"] && dropped["reason"] == "known")
        let again = try await cluster.tool(publish + ["--title", "At the door"])
        let exitAgain = try await again.exit()
        #expect(exitAgain == .exited(0))
        // The one that was shown before the kill is still in its list.
        let updated = try await second.line("updates it") { $0["event"] == "updated" }
        #expect(updated["title"] == "At the door")
        #expect(!second.lines.contains { $0["event"] == "shown" })
      }
    }

    @Test func aDeviceGoesOnWithItsOtherAddressAndComesBackToTheFirst() async throws {
      try await ClusterFixture.with(.embedded) { cluster in
        try await cluster.transform()
        // One of them comes back where it was: nobody is to take its port meanwhile.
        let port = try await freePort(on: cluster.loop)
        let soon = ["--reconnect", "0s", "--unready-for", "0s"]
        let listening = ["--listen", "127.0.0.1:\(port)"] + soon
        let workers = [try await cluster.fanOut(listening), try await cluster.fanOut(soon)]
        let device = try await cluster.tool([
          "device", "--devices", workers.map(\.devices).joined(separator: ","), "--token", String(repeating: "c7", count: 32), "--app",
          "com.example.shop", "--json",
        ])
        let first = try await device.line("is at the first") { $0["url"]?.stringValue == workers[0].devices }
        await workers[0].signal(SIGTERM)
        try await device.line("is at the second") { $0["url"]?.stringValue == workers[1].devices }
        #expect(try await workers[0].exit() == .exited(0))
        #expect(!device.lines.contains { $0["event"] == "unreachable" })
        // Nobody is left: both are tried again and again, at first without a wait that a person would notice.
        await workers[1].signal(SIGTERM)
        try await device.line("finds nobody") { $0["event"] == "unreachable" }
        let waits = device.lines.filter { $0["event"] == "closed" || $0["event"] == "unreachable" }.prefix(3)
        #expect(waits.allSatisfy { (0...2_000).contains($0["reconnectAfterMs"]?.integerValue ?? -1) }, "\(waits.map(\.text))")
        try await cluster.fanOut(listening)
        try await device.line("is back at the first") {
          $0["url"] == first["url"] && $0["session"] != first["session"]
        }
      }
    }

    @Test func aDeviceComesBackWithAnotherCredentialWhenItsOwnHasExpired() async throws {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("credential-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let (key, file) = (folder.appendingPathComponent("key").path, folder.appendingPathComponent("credential").path)
      let identity = ["--token", String(repeating: "c8", count: 32), "--app", "com.example.shop", "--user", "ada"]
      try await ClusterFixture.with(.embedded) { cluster in
        @Sendable func credential(_ expires: String) async throws -> String {
          let token = try await cluster.tool(["token", "--key", key, "--expires", expires, "--json"] + identity)
          return try await token.line("prints a credential") { $0["credential"] != nil }["credential"]?
            .stringValue
            ?? ""
        }
        #expect(try await cluster.tool(["token", "key", key]).exit() == .exited(0))
        try await cluster.transform()
        let devices = try await cluster.fanOut(["--key-file", key]).devices
        let arguments = ["device", "--devices", devices, "--json"] + identity

        let stranger = try await cluster.tool(arguments)
        #expect(try await stranger.exit() == .exited(2))
        #expect(stranger.text.contains("no credential was given") && stranger.text.contains("--credential-file"), "\(stranger.text)")

        let lasting = try await credential("1h")
        // On a machine that stands still one of some seconds has expired before the device is connected: it ends then.
        var connected: (device: ClusterProcess, line: JSONValue)?
        for lifetime in ["6s", "60s", "300s"] where connected == nil {
          try await credential(lifetime).write(toFile: file, atomically: true, encoding: .utf8)
          let device = try await cluster.tool(arguments + ["--credential-file", file])
          if let line = try? await device.line("is connected", { $0["event"] == "connected" }) {
            connected = (device, line)
          }
        }
        let (device, first) = try #require(connected, "no credential lasted until the device was connected")
        try lasting.write(toFile: file, atomically: true, encoding: .utf8)
        try await device.line("is told to go") {
          $0["event"] == "goaway" && $0["reason"] == "credentialExpired"
        }
        try await device.line("is closed") { $0["event"] == "closed" && $0["code"] == 4018 }
        try await device.line("is back") { $0["event"] == "connected" && $0["session"] != first["session"] }
      }
    }

    /// In the three steps that the article Running describes.
    @Test func aKeyIsReplacedWhileADeviceStaysConnected() async throws {
      try await TestFolder.with { folder in
        let (former, next, file) = (folder.path + "/former", folder.path + "/next", folder.path + "/cluster.key")
        let device = ["--token", String(repeating: "c9", count: 32), "--app", "com.example.shop"]
        try await ClusterFixture.with(.embedded) { cluster in
          func tool(_ arguments: [String]) async throws {
            let exit = try await cluster.tool(arguments).exit()
            #expect(exit == .exited(0))
          }
          for key in [former, next] { try await tool(["token", "key", key]) }
          func put(_ keys: String...) throws {
            let text = try keys.map { try String(contentsOfFile: $0, encoding: .utf8) }.joined()
            try text.write(toFile: file, atomically: true, encoding: .utf8)
          }
          func signed(by key: String, for device: [String]) async throws -> String {
            let token = try await cluster.tool(["token", "--key", key, "--json"] + device)
            let line = try await token.line("prints a credential") { $0["credential"] != nil }
            return try folder.write("credential-\(UUID().uuidString)", line["credential"]?.stringValue ?? "")
          }
          try await cluster.transform()
          try put(former)
          let worker = try await cluster.fanOut(["--key-file", file])
          func isInForce(_ count: Int) async throws {
            try await requireEventually("the worker has read its keys \(count) times") {
              worker.text.split(separator: "\n").count { $0.contains("keys are in force") } == count
            }
          }
          func connect(_ key: String, as device: [String]) async throws -> ClusterProcess {
            let credential = try await signed(by: key, for: device)
            return try await cluster.tool(["device", "--devices", worker.devices, "--json", "--credential-file", credential] + device)
          }
          let first = try await connect(former, as: device)
          try await first.line("is connected") { $0["event"] == "connected" }

          let other = ["--token", String(repeating: "ca", count: 32), "--app", "com.example.shop"]
          try put(former, next)
          try await isInForce(2)
          try await connect(next, as: other).line("is connected") { $0["event"] == "connected" }
          try put(next, former)
          try await isInForce(3)
          try put(next)
          try await isInForce(4)
          let refused = try await connect(former, as: ["--token", String(repeating: "cb", count: 32), "--app", "com.example.shop"])
          let exit = try await refused.exit()
          #expect(exit == .exited(2) && refused.text.contains("not signed with a key of this cluster"), "\(refused.text)")

          try await tool([
            "publish", "--kafka", cluster.kafka, "--topic-prefix", cluster.prefix, "--target", "device:\(device[1])", "--app",
            "com.example.shop", "--title", "Still here",
          ])
          try await first.line("shows it") { $0["event"] == "shown" }
          #expect(first.lines.count { $0["event"] == "connected" } == 1 && !first.lines.contains { $0["event"] == "closed" })
        }
      }
    }

    @Test func tokenThatIsTakenOverStaysAway() async throws {
      try await ClusterFixture.with(.embedded) { cluster in
        try await cluster.transform()
        let devices = try await cluster.fanOut().devices
        let arguments = [
          "device", "--devices", devices, "--token", String(repeating: "c5", count: 32), "--app", "com.example.shop", "--json",
        ]
        let first = try await cluster.tool(arguments)
        try await first.line("is connected") { $0["event"] == "connected" }
        let second = try await cluster.tool(arguments)
        try await second.line("is connected") { $0["event"] == "connected" }
        let closed = try await first.line("is closed") { $0["event"] == "closed" }
        #expect(closed["name"] == "takenOver" && closed["reconnectAfterMs"] == .null)
      }
    }

    @Test func deviceWithoutAClusterEndsWithItsCode() async throws {
      try await ClusterFixture.with(.embedded) { cluster in
        let token = ["--token", String(repeating: "c6", count: 32)]
        let attempts: [(flags: [String], code: Int32)] = [
          (token + ["--devices", "ws://127.0.0.1:1", "--connect-timeout", "500ms"], 3), (token + ["--devices", "http://127.0.0.1:1"], 2),
          (["--token", "abc", "--devices", "ws://127.0.0.1:1"], 2),
          (token + ["--devices", "ws://127.0.0.1:1", "--categories", "/nowhere"], 2),
        ]
        for (flags, code) in attempts {
          let exit = try await cluster.tool(["device", "--app", "com.example.shop"] + flags).exit()
          #expect(exit == .exited(code), "\(flags)")
        }
      }
    }
  }
}

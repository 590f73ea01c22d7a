@testable import DeviceClient
import EventLoop
import Foundation
import JSON
import Notifications
import Testing

@Suite(.timeLimit(.minutes(2))) struct DeviceStateTests {
  private static func withFile(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("device-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await body(folder + "/state")
  }

  /// The file is copied while the device lives, at the moment when the cluster has its acknowledgement: what a kill would leave.
  @Test func killedDeviceShowsNothingTwiceAndForgetsNoResponse() async throws {
    try await Self.withFile { path in
      try await ScriptedCluster.with { cluster, url in
        let first = DeviceUnderTest(url) { $0.stateFile = path }
        try await first.device.start()
        await cluster.expect("hello")
        await cluster.send(notify(1, id: "one", "a", revision: "1"), notify(2, id: "two", "b", revision: "2"))
        await cluster.expect("ack")
        try await first.device.open("b")
        let response = try #require(await cluster.expect("response").first)
        await cluster.send(["type": "remove", "delivery": 3, "identifiers": ["c"], "revision": "5"])
        await cluster.expect("ack", count: 2)
        try FileManager.default.copyItem(atPath: path, toPath: path + ".killed")

        let second = DeviceUnderTest(url) { $0.stateFile = path + ".killed" }
        try await second.device.start()
        #expect(await second.device.delivered.map(\.identifier) == ["a"])
        #expect(await cluster.expect("response", of: 1) == [response])
        await cluster.send(
          notify(1, id: "one", "a", revision: "1"), notify(2, id: "two", "b", revision: "2"), notify(3, id: "three", "c", revision: "4"),
          notify(4, id: "four", "a", revision: "3"), to: 1)
        await second.expect("dropped a known", "dropped b known", "dropped c stale", "updated a 3")
        await second.close()
        await first.close()
      }
    }
  }

  /// White space in a payload is the producer's own, and goes through the cluster as it is.
  @Test func `a killed device shows nothing twice, whatever line breaks a payload and a trigger have`() async throws {
    try await Self.withFile { path in
      try await ScriptedCluster.with { cluster, url in
        let payload = "{\r\n  \"aps\": {\n    \"alert\": \"one\\ntwo\"\n  }\n}\n"
        func frame(_ id: String, _ more: String = "") -> String {
          #"{"type":"notify","delivery":1,"id":"\#(id)","identifier":"\#(id)","revision":"1","receipt":"r","payload":\#(payload)\#(more)}"#
        }
        let texts = [frame("one"), frame("two", ",\"trigger\":{\n\"place\":\r\n1}")]
        let first = DeviceUnderTest(url) { $0.stateFile = path }
        try await first.device.start()
        await cluster.expect("hello")
        for text in texts { await cluster.send(text: text) }
        // They are told when they are on the disk.
        await first.expect("shown one 1", "held two")
        try FileManager.default.copyItem(atPath: path, toPath: path + ".killed")
        let listed = await (first.device.delivered, first.device.pending)

        let second = DeviceUnderTest(url) { $0.stateFile = path + ".killed" }
        try await second.device.start()
        #expect(await second.device.delivered == listed.0)
        #expect(await second.device.pending == listed.1)
        await cluster.expect("hello", of: 1)
        for text in texts { await cluster.send(text: text, to: 1) }
        await second.expect("dropped one known", "dropped two known")
        #expect(!second.events.contains { if case .stateDamaged = $0 { true } else { false } })
        await second.close()
        await first.close()
      }
    }
  }

  @Test func `a file that ends within its first line is a device's, and any other without lines is left as it is`() async throws {
    try await Self.withFile { path in
      var line: [UInt8] = []
      StateLines.append(.owner(device: DeviceUnderTest.token, application: "com.example.shop"), to: &line)
      for count in 0..<line.count {
        try Data(line[..<count]).write(to: URL(fileURLWithPath: path))
        let file = StateFile(path: path)
        let (records, damaged) = try await file.open()
        #expect(records.isEmpty && damaged == 0, "\(count) bytes")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)).isEmpty)
        await file.end()
        await file.disk.close()
      }
      for text in ["my thesis", "0123 notes", "deadbeefdeadbeef x"] {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        let file = StateFile(path: path)
        await #expect(throws: DeviceError.self) { _ = try await file.open() }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(text.utf8))
        await file.end()
        await file.disk.close()
      }
    }
  }

  /// What a version that wrote frames as objects has left.
  @Test func `a file of an earlier version is read`() throws {
    let frame = try notifyFrame(notify(1, id: "one", revision: "1"))
    let old = try JSONValue(parsing: #"{"took":\#(notify(1, id: "one", revision: "1").text),"at":5}"#)
    #expect(StateRecord(old) == .took(frame, at: 5))
  }

  @Test func tornLineIsCutOffAndDamagedOnesArePassedOver() async throws {
    try await Self.withFile { path in
      var lines: [UInt8] = []
      StateLines.append(.owner(device: DeviceUnderTest.token, application: "com.example.shop"), to: &lines)
      StateLines.append(.took(try notifyFrame(notify(1, id: "one", revision: "1")), at: 1), to: &lines)
      let damaged = lines.count + 30
      StateLines.append(.took(try notifyFrame(notify(1, id: "two", revision: "1")), at: 1), to: &lines)
      StateLines.append(.took(try notifyFrame(notify(1, id: "three", revision: "1")), at: 1), to: &lines)
      lines[damaged] ^= 1
      let whole = lines.count
      StateLines.append(.took(try notifyFrame(notify(1, id: "four", revision: "1")), at: 1), to: &lines)
      try Data(lines.dropLast(20)).write(to: URL(fileURLWithPath: path))
      let file = StateFile(path: path)
      let (records, count) = try await file.open()
      #expect(count == 1)
      #expect(records.count == 3)
      // What comes next begins on a line of its own.
      var more: [UInt8] = []
      StateLines.append(.settled("x"), to: &more)
      try await file.append(more)
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(lines[..<whole] + more))
      await file.end()
      await file.disk.close()
    }
  }

  @Test func stateFileHasOneDeviceAndOneProcess() async throws {
    try await Self.withFile { path in
      try await ScriptedCluster.with { cluster, url in
        func failure(_ path: String, _ application: Name = "com.example.shop") async -> DeviceError.Code? {
          let other = DeviceUnderTest(url) {
            $0.stateFile = path
            $0.hello.application = application
          }
          var code: DeviceError.Code?
          do throws(DeviceError) { try await other.device.start() } catch { code = error.code }
          await other.close()
          return code
        }
        let first = DeviceUnderTest(url) { $0.stateFile = path }
        try await first.device.start()
        await cluster.expect("hello")
        #expect(await failure(path) == .stateInUse)
        await first.close()
        #expect(await failure(path, "com.example.other") == .stateUnusable)
        try Data("my thesis\n".utf8).write(to: URL(fileURLWithPath: path + ".text"))
        #expect(await failure(path + ".text") == .stateUnusable)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + ".text")) == Data("my thesis\n".utf8))
        #expect(await failure(path + "/none") == .stateUnusable)
        #expect(await failure(path) == nil)
      }
    }
  }

  /// A snapshot takes the place of the lines once they are many times as long.
  @Test func fileDoesNotGrowWithoutEndAndRemembersAll() async throws {
    try await Self.withFile { path in
      try await ScriptedCluster.with { cluster, url in
        let device = DeviceUnderTest(url) { $0.stateFile = path }
        try await device.device.start()
        await cluster.expect("hello")
        let body = String(repeating: "x", count: 20_000)
        let count = 200
        for number in 1...count {
          let aps: JSONValue = ["alert": .string(body)]
          await cluster.send(notify(Int64(number), id: "id-\(number)", "a", revision: NotificationStoreTests.revision(number), aps: aps))
          if number % 20 == 0 { await eventually("\(number) shown") { device.story.count == number } }
        }
        let id = try await device.device.open("a")
        await device.close()
        let size = try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
        #expect(size < 2 << 20, "\(size) bytes for one notification in the list")
        let again = DeviceUnderTest(url) { $0.stateFile = path }
        try await again.device.start()
        #expect(await again.device.delivered.isEmpty)
        #expect(await cluster.expect("response", of: 1).first?["response"]?.stringValue == id)
        await cluster.send(notify(1, id: "id-7", "a", revision: NotificationStoreTests.revision(999)), to: 1)
        await again.expect("dropped a known")
        await again.close()
      }
    }
  }

  @Test func nothingIsToldBeforeItIsDurable() async throws {
    let lane = JournalLane()
    await lane.run { writer, jobs in
      var told: [String] = []
      writer.append(.settled("a"))
      writer.whenDurable { told.append("a") }
      writer.flush()
      writer.append(.settled("b"))
      writer.whenDurable { told.append("b") }
      writer.flush()
      #expect(told.isEmpty && jobs.count == 1, "one job at a time")
      writer.finished(isDurable: true)
      #expect(told == ["a"] && jobs.count == 2)
      writer.whenDurable { told.append("c") }
      writer.finished(isDurable: true)
      #expect(told == ["a", "b", "c"] && jobs.count == 2 && writer.isIdle)
      writer.append(.settled("d"))
      writer.whenDurable { told.append("d") }
      writer.flush()
      writer.finished(isDurable: false)
      writer.whenDurable { told.append("e") }
      #expect(told == ["a", "b", "c"], "told though the disk has failed")
    }
    await lane.loop.close()
  }
}

/// A writer whose jobs are noted and done by the test.
private actor JournalLane {
  nonisolated let loop = EventLoop(name: "writer")
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  final class Jobs { var count = 0 }

  func run(_ body: @Sendable (StateWriter, Jobs) -> Void) {
    let jobs = Jobs()
    body(StateWriter(perform: { _ in jobs.count += 1 }) { [] }, jobs)
  }
}

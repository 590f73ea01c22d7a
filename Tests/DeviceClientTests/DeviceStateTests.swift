import EventLoop
import Foundation
import JSON
import Notifications
import TestSupport
import Testing

@testable import DeviceClient

@Suite(.timeLimit(.minutes(10))) struct DeviceStateTests {
  private static func withFile(_ body: (String) async throws -> Void) async throws {
    try await TestFolder.with { try await body($0.path + "/state") }
  }

  /// Copies a database and its log: what a kill at this moment leaves.
  private static func copy(_ path: String) throws -> String {
    for suffix in ["", "-wal"] { try FileManager.default.copyItem(atPath: path + suffix, toPath: path + ".killed" + suffix) }
    return path + ".killed"
  }

  /// The file is copied when the cluster has the acknowledgement.
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
        let killed = try Self.copy(path)

        let second = DeviceUnderTest(url) { $0.stateFile = killed }
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
        // The events come when the notifications are on the disk.
        await first.expect("shown one 1", "held two")
        let killed = try Self.copy(path)
        let listed = await (first.device.delivered, first.device.pending)

        let second = DeviceUnderTest(url) { $0.stateFile = killed }
        try await second.device.start()
        #expect(await second.device.delivered == listed.0)
        #expect(await second.device.pending == listed.1)
        await cluster.expect("hello", of: 1)
        for text in texts { await cluster.send(text: text, to: 1) }
        await second.expect("dropped one known", "dropped two known")
        await second.close()
        await first.close()
      }
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
        #expect(await failure(path + "/none") == .stateUnusable)
        #expect(await failure(path) == nil)
      }
    }
  }

  @Test func `the file stays as small as what is in it, and keeps all ids`() async throws {
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
        #expect(size < 1 << 20, "\(size) bytes for one notification in the list")
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

  @Test func `no event comes before its change is durable`() async throws {
    let lane = WriterLane()
    await lane.run { writer, batches in
      var told: [String] = []
      func whenDurable(_ name: String) { writer.whenDurable { told.append($0 == nil ? name : "\(name) failed") } }
      writer.append([.settled("a")])
      whenDurable("a")
      writer.flush()
      writer.append([.settled("b")])
      whenDurable("b")
      writer.flush()
      #expect(told.isEmpty && batches.all == [[.settled("a")]], "one batch at a time")
      writer.finished(nil)
      #expect(told == ["a"] && batches.all.count == 2)
      whenDurable("c")
      writer.finished(nil)
      #expect(told == ["a", "b", "c"] && batches.all.count == 2 && writer.isIdle)
      writer.append([.settled("d")])
      whenDurable("d")
      writer.flush()
      writer.append([.settled("e")])
      whenDurable("e")
      writer.finished(DeviceError(.stateFull, "full"))
      whenDurable("f")
      #expect(told == ["a", "b", "c", "d failed", "e failed", "f failed"])
      #expect(batches.all.count == 3, "a batch was written after an error")
    }
    await lane.loop.close()
  }
}

/// A writer whose batches are noted, and finished by the test.
private actor WriterLane: LoopActor {
  nonisolated let loop = EventLoop(name: "writer")

  final class Batches { var all: [[StateChange]] = [] }

  func run(_ body: @Sendable (StateWriter, Batches) -> Void) {
    let batches = Batches()
    body(StateWriter { batches.all.append($0) }, batches)
  }
}

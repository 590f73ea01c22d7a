import JSON
import Notifications
import TestSupport
import Testing

@testable import DeviceClient

/// Numbers of a cluster, or of a state file, that no cluster would send.
@Suite(.timeLimit(.minutes(10))) struct ExtremeNumberTests {
  private static let media =
    #"{"identifier":"a","hash":"\#(String(repeating: "0a", count: 32))","type":"image/png","size":5,"options":{"thumbnailTime":2,"thumbnailClipping":{"x":0,"y":0,"width":1,"height":1}},"url":"http://h/","expires":1800000000}"#

  /// Each type of frame that a cluster sends but `welcome`, with all its numbers.
  private static let frames = [
    #"{"type":"notify","delivery":7,"id":"n","identifier":"score","revision":"r","expiration":1900000000,"priority":10,"pushType":"alert","attachments":[\#(media)],"trigger":{"latitude":1.5,"longitude":2,"radius":100},"payload":{"aps":{"alert":"x","badge":3,"relevance-score":0.5}},"receipt":"r"}"#,
    #"{"type":"notify","delivery":7,"id":"m","identifier":"goal","revision":"r","expiration":0,"priority":5,"payload":{"aps":{"alert":"x","badge":3,"sound":{"name":"s","volume":1}}},"receipt":"r"}"#,
    #"{"type":"remove","delivery":8,"identifiers":["score"],"revision":"s"}"#,
    #"{"type":"accepted","request":"1"}"#,
    #"{"type":"refused","response":"1","reason":"BadFrame","field":"at"}"#,
    #"{"type":"linked","request":"q","url":"http://h/","expires":1800000000}"#,
    #"{"type":"gap","mailbox":true,"from":"a","to":"b"}"#,
    #"{"type":"gap","channel":"c","from":"1","to":"2"}"#,
    #"{"type":"goaway","reconnectAfterMs":500,"reason":"draining"}"#,
  ]

  @Test func `no number in a welcome ends the device`() async throws {
    let welcome =
      #"{"type":"welcome","session":"s","now":1700000000000,"pingSeconds":30,"window":32,"rememberSeconds":2592000,"limits":{"frameBytes":16384,"userTextBytes":4096,"categories":64,"actions":8}}"#
    for variant in try ExtremeNumbers.variants(of: welcome) {
      try await ScriptedCluster.with { cluster, url in
        await cluster.answer(with: variant)
        let device = DeviceUnderTest(url)
        try await device.device.start()
        await cluster.expect("hello")
        await cluster.send(notify(1, id: "one", revision: "1"), notify(2, id: "two", revision: "2", expiration: .max))
        await eventually("\(variant.text) is refused, or what follows is taken") {
          device.story.count >= 2 || device.events.contains { if case .badFrame = $0 { true } else { false } }
        }
        await device.close()
      }
    }
  }

  @Test func `no number in another frame ends the device, which takes what follows`() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url) { $0.acknowledges = false }
      try await device.device.start()
      await cluster.expect("hello")
      for frame in Self.frames {
        for variant in try ExtremeNumbers.variants(of: frame) { await cluster.send(variant) }
      }
      await cluster.send(notify(100, id: "last", revision: "1"))
      await eventually("the last one is shown") { device.story.contains("shown last 1") }
      await device.close()
    }
  }

  @Test func `a clock of the cluster that no clock shows is refused with the field`() throws {
    for now in ExtremeNumbers.integers {
      var text = #"{"type":"welcome","session":"s","now":\#(now),"pingSeconds":1,"window":1,"rememberSeconds":1}"#
      do throws(DeviceFrameError) {
        _ = try read(&text)
        #expect(Timestamp.bounded(now) == now)
      } catch {
        #expect(Timestamp.bounded(now) != now && error.field == "now")
      }
    }
  }

  private func read(_ text: inout String) throws(DeviceFrameError) -> ServerFrame {
    let frame = text.withUTF8 { bytes -> Result<ServerFrame, DeviceFrameError> in
      do throws(DeviceFrameError) { return .success(try ServerFrame(UnsafeRawBufferPointer(bytes))) } catch { return .failure(error) }
    }
    return try frame.get()
  }

  @Test func `no time and no lifetime ends a store`() throws {
    for now in ExtremeNumbers.integers {
      for seconds in ExtremeNumbers.integers {
        var store = NotificationStore()
        store.rememberSeconds = seconds
        _ = store.take(try notifyFrame(notify(1, id: "one", "a", revision: "1", expiration: max(0, seconds))), now: now)
        _ = store.take(try notifyFrame(notify(2, id: "two", "b", revision: "1")), now: seconds)
        _ = store.remove(["a", "b"], revision: "2", now: now)
        _ = store.fire("a", now: now, localTime: seconds)
      }
    }
  }

  @Test func `no number in a state file ends the device`() async throws {
    let text = try #require(Self.frames.first)
    for number in ExtremeNumbers.integers {
      try await TestFolder.with { folder in
        let frame = try notifyFrame(try JSONValue(parsing: text))
        let listed = DeviceDatabase.listed(frame, at: number)
        let database = DeviceDatabase.forTests(folder.path + "/state")
        _ = try await database.open()
        let response = StoredResponse(
          frame: ResponseFrame(response: "r", receipt: "x", identifier: "i", action: "a", at: number),
          notification: listed, isUnsent: true, isUntold: true)
        try await database.commit([
          .took("x", at: number), .noted(identifier: "a", revision: "b", at: number), .listed(listed, isPending: true),
          .listed(listed, isPending: false), .waiting("score", anchor: number, after: number), .response(response), .badge(Int(number)),
          .forgot(before: number, ids: Int(clamping: number), identifiers: 1),
        ])
        await database.closeForTests()
        let again = DeviceDatabase.forTests(folder.path + "/state")
        let state = try await again.open()
        await again.closeForTests()
        let token = try #require(DeviceToken(DeviceUnderTest.token))
        let memory = DeviceMemory(
          DeviceConfiguration(
            url: "ws://h/", hello: Hello(device: token, application: "com.example.shop", authorization: Authorization(status: .authorized))),
          commit: nil)
        memory.restore(state)
        memory.takeTime(LocalTime(1_700_000_000_000))
        _ = try memory.fire("score", now: 1_700_000_000_000, localTime: number)
        memory.take(try notifyFrame(DeviceClientTests.notify(1, id: "one", revision: "1")), now: 1_700_000_000_000) { _, _ in }
      }
    }
  }
}

import DeviceClient
import Foundation
import JSON
import Notifications
import TestSupport
import Testing

/// What notifications come with, at the device that shows them.
@Suite(.timeLimit(.minutes(10))) struct AttachmentLinkTests {
  private static let hash = String(repeating: "ab", count: 32)

  private static func attachment(_ identifier: String, type: String = "image/png") -> JSONValue {
    [
      "identifier": .string(identifier), "hash": .string(hash), "type": .string(type), "size": 12, "url": "http://127.0.0.1/x",
      "expires": 1_700_000_600,
    ]
  }

  private static func attached(_ delivery: Int64, id: String, _ attachments: JSONValue...) -> JSONValue {
    var frame = notify(delivery, id: id, revision: "\(delivery)")
    frame.set("attachments", .array(attachments))
    return frame
  }

  @Test func attachmentsOutliveTheDevicesEnd() async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        let first = DeviceUnderTest(url) { $0.stateFile = folder.path + "/state" }
        try await first.device.start()
        await cluster.expect("hello")
        await cluster.send(Self.attached(1, id: "one", Self.attachment("photo")))
        await first.expect("shown one 1")
        let shown = await first.device.delivered.first?.attachments
        #expect(shown?.first?.attachment.identifier == "photo" && shown?.first?.link?.url == "http://127.0.0.1/x")
        await first.close()
        let second = DeviceUnderTest(url) { $0.stateFile = folder.path + "/state" }
        try await second.device.start()
        #expect(await second.device.delivered.first?.attachments == shown)
        await second.close()
      }
    }
  }

  /// A later cluster may have types that this device does not know.
  @Test func anAttachmentThatItDoesNotKnowCostsTheNotificationNothing() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(Self.attached(1, id: "one", Self.attachment("scent", type: "odor/rose"), 7, Self.attachment("photo")))
      await device.expect("shown one 1")
      #expect(await device.device.delivered.first?.attachments.map(\.attachment.identifier) == ["photo"])
      await device.close()
    }
  }

  @Test func aNewLinkIsAskedForAndTold() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(Self.attached(1, id: "one", Self.attachment("a"), Self.attachment("b")), notify(2, id: "two", revision: "2"))
      await device.expect("shown one 1", "shown two 2")
      let requests = try await device.device.renewLinks(of: "one")
      let asked = await cluster.expect("link", count: 2)
      #expect(asked.map { $0["request"]?.stringValue } == requests && asked.allSatisfy { $0["hash"]?.stringValue == Self.hash })
      await cluster.send(
        ["type": "linked", "request": "another's", "url": "http://127.0.0.1/w", "expires": 1],
        ["type": "linked", "request": .string(requests[0]), "url": "http://127.0.0.1/y", "expires": 1_700_001_200],
        ["type": "refused", "request": .string(requests[1]), "reason": "UnknownMedia", "field": "hash"])
      await device.expect("shown one 1", "shown two 2", "refused UnknownMedia")
      let links = device.events.compactMap { event -> LinkedFrame? in if case .linked(let frame) = event { frame } else { nil } }
      #expect(links.map(\.request) == [requests[0]] && links.first?.link.url == "http://127.0.0.1/y")
      for (identifier, code) in [("two", .noAttachments), ("three", .noSuchNotification)] as [(Name, DeviceError.Code)] {
        let error = await #expect(throws: DeviceError.self) { try await device.device.renewLinks(of: identifier) }
        #expect(error?.code == code)
      }
      await cluster.cut()
      await eventually("it knows that it is not connected") { (try? await device.device.renewLinks(of: "one")) == nil }
      await device.close()
    }
  }
}

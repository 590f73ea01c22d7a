import JSON
import Testing

@testable import Notifications

@Suite struct FrameTests {
  /// One of each frame, as our writers write it.
  static func written() throws -> [(name: String, text: String)] {
    let notify = try DeliveryTests.encoded()
    let removal = try {
      let fixture = RequestFixture.valid(["operation": "remove", "apns-collapse-id": "sc\"ore"], value: nil)
      var buffer = ByteBuffer()
      try DeliveryEntry(try #require(fixture.read().view)).append(to: &buffer)
      return buffer.withUnsafeBytes { Array($0) }
    }()
    let revision = Revision(timestamp: 1_700_000_000_000, partition: 3, offset: 42)
    func entry(_ bytes: [UInt8], _ body: (DeliveryEntryView) -> String) throws -> String {
      try bytes.withUnsafeBytes { body(try #require(DeliveryEntryView($0))) }
    }
    let attached = try notify.withUnsafeBytes { published in
      let published = try #require(DeliveryEntryView(published))
      var buffer = ByteBuffer()
      try AttachmentTests.field([AttachmentTests.photo]).withUnsafeBytes { attachments in
        try DeliveryEntry(
          published, payload: published.payload, PayloadFacts(checking: published.payload), extensions: .empty, attachments: attachments
        ).append(to: &buffer)
      }
      return buffer.withUnsafeBytes { Array($0) }
    }
    func write(_ entry: DeliveryEntryView, to json: inout JSONWriter, link: (MediaHash) -> MediaLink?) {
      ServerFrames.notify(
        entry, revision: revision, delivery: 9, presentation: [.banner, .list], receipt: ("abc_-" as StaticString).bytes, to: &json,
        link: link)
    }
    return [
      ("hello", JSONWriter.text { hello.write(to: &$0) }),
      ("hello", JSONWriter.text { Hello(device: hello.device, application: "a.b").write(to: &$0) }),
      ("ack", JSONWriter.text { AckFrame.write(deliveries: [7, 9], updated: [9], dropped: [(8, .stale)], to: &$0) }),
      ("ack", JSONWriter.text { AckFrame.write(deliveries: [], to: &$0) }), ("response", JSONWriter.text { response.write(to: &$0) }),
      ("settings", JSONWriter.text { SettingsFrame(request: "s1", authorization: Authorization(status: .denied)).write(to: &$0) }),
      ("categories", JSONWriter.text { CategoriesFrame(request: "c1", categories: DeviceTests.categories).write(to: &$0) }),
      ("unregister", JSONWriter.text { UnregisterFrame(request: "u1").write(to: &$0) }),
      ("link", JSONWriter.text { LinkFrame(hash: AttachmentTests.hash, request: "l1").write(to: &$0) }),
      (
        "notify",
        try entry(notify) { entry in
          JSONWriter.text {
            ServerFrames.notify(
              entry, revision: revision, delivery: 7, presentation: [.banner, .list], receipt: ("abc_-" as StaticString).bytes, to: &$0)
          }
        }
      ),
      ("remove", try entry(removal) { entry in JSONWriter.text { ServerFrames.remove(entry, revision: revision, delivery: 8, to: &$0) } }),
      (
        "welcome",
        JSONWriter.text {
          ServerFrames.welcome(
            session: 0xABC, now: 1_700_000_000_000, pingSeconds: 30, window: 64, rememberSeconds: 2_592_000, frameBytes: 16_384, to: &$0)
        }
      ), ("accepted", JSONWriter.text { ServerFrames.accepted(.response("r-1"), to: &$0) }),
      ("accepted", JSONWriter.text { ServerFrames.accepted(.request("s1"), to: &$0) }),
      ("refused", JSONWriter.text { ServerFrames.refused(.response("r-1"), reason: .unknownAction, field: "action", to: &$0) }),
      (
        "refused", JSONWriter.text { ServerFrames.refused(.request("c1"), reason: .badFrame, field: "categories[0]", rule: "No.", to: &$0) }
      ),
      ("gap", JSONWriter.text { ServerFrames.mailboxGap(from: revision, to: revision, to: &$0) }),
      ("goaway", JSONWriter.text { ServerFrames.goaway(reconnectAfterMilliseconds: 1200, reason: "draining", to: &$0) }),
      ("heartbeat", JSONWriter.text { ServerFrames.heartbeat(to: &$0) }),
      ("notify", try entry(attached) { entry in JSONWriter.text { write(entry, to: &$0) { link($0) } } }),
      ("notify", try entry(attached) { entry in JSONWriter.text { write(entry, to: &$0) { _ in nil } } }),
      ("linked", JSONWriter.text { ServerFrames.linked(request: "l1", link(AttachmentTests.hash), to: &$0) }),
    ]
  }

  private static func link(_ hash: MediaHash) -> MediaLink {
    MediaLink(url: "https://push.example.com/v1/media/\(hash)?a=b", expires: 1_764_000_000)
  }

  static let hello = Hello(
    device: DeviceToken(RequestFixture.token)!, application: "com.example.shop", credential: "secret", user: "ada", platform: "iOS",
    environment: .development, locale: "de_AT", timeZone: "Europe/Vienna", authorization: Authorization(status: .authorized),
    categories: DeviceTests.categories, heartbeat: true)
  static let response = ResponseFrame(
    response: "r-1", receipt: "abc_-", identifier: "score", action: "REPLY", userText: "Grüße \"\n", at: 1_700_000_000_000)

  private func device(_ text: String) throws -> DeviceFrame { try withBytes(text) { try DeviceFrame($0) } }

  private func fault(of text: String) -> DeviceFrameError? {
    do {
      _ = try device(text)
      return nil
    } catch { return error as? DeviceFrameError }
  }

  @Test func deviceFramesAreReadAsTheyWereWritten() throws {
    var hellos: [Hello] = []
    for (name, text) in try Self.written() {
      switch (name, try device(text)) {
      case ("hello", .hello(let hello)): hellos.append(hello)
      case ("response", .response(let response)): #expect(response == Self.response)
      case ("settings", .settings(let frame)):
        #expect(frame == SettingsFrame(request: "s1", authorization: Authorization(status: .denied)))
      case ("categories", .categories(let frame)): #expect(frame == CategoriesFrame(request: "c1", categories: DeviceTests.categories))
      case ("unregister", .unregister(let frame)): #expect(frame == UnregisterFrame(request: "u1"))
      case ("link", .link(let frame)): #expect(frame == LinkFrame(hash: AttachmentTests.hash, request: "l1"))
      case ("ack", .ack): break
      case (_, .unknown): #expect(ServerFrameType(rawValue: name) != nil)
      default: Issue.record("\(name) was read as another frame")
      }
    }
    #expect(hellos == [Self.hello, Hello(device: Self.hello.device, application: "a.b")])
  }

  @Test func `a hello asks for heartbeats with true or false, and with nothing else`() throws {
    func hello(_ heartbeat: String) -> String {
      #"{"type":"hello","device":"\#(RequestFixture.token)","application":"a.b","heartbeat":\#(heartbeat)}"#
    }
    for (text, isWanted) in [("true", true), ("false", false), ("null", false)] {
      guard case .hello(let read) = try device(hello(text)) else {
        Issue.record("no hello")
        continue
      }
      #expect(read.heartbeat == isWanted)
    }
    for text in ["1", #""true""#, "{}"] { #expect(fault(of: hello(text))?.field == "heartbeat") }
  }

  @Test func serverFramesAreReadAsTheyWereWritten() throws {
    var seen: [ServerFrame] = []
    for (_, text) in try Self.written() {
      let frame = try withBytes(text) { try ServerFrame($0) }
      if frame != .unknown { seen.append(frame) }
    }
    let revision = "0000018bcfe56800" + "00000003" + "000000000000002a"
    guard case .notify(let notify) = seen[0] else {
      Issue.record("no notify")
      return
    }
    #expect(notify.delivery == 7 && notify.identifier == "score" && notify.revision == revision && notify.receipt == "abc_-")
    #expect(notify.id == "123e4567-e89b-12d3-a456-42665544000a" && notify.expiration == 1_700_000_500 && notify.priority == 5)
    #expect(String(decoding: notify.payload, as: UTF8.self) == #"{"aps":{"alert":"Hello","category":"INV\u0049TE","mutable-content":1}}"#)
    #expect(notify.traceparent == DeliveryTests.trace)
    #expect(notify.presentation == [.banner, .list] && notify.interruptionLevel == nil)
    #expect(notify.trigger?.hasPrefix(#"{"type":"location""#) == true)
    guard case .remove(let remove) = seen[1], case .welcome(let welcome) = seen[2] else {
      Issue.record("no remove, no welcome")
      return
    }
    #expect(remove.identifiers == ["sc\"ore"] && remove.delivery == 8 && remove.revision == revision)
    let limits = WelcomeFrame.Limits(
      frameBytes: 16_384, userTextBytes: Registration.userTextBytes, categories: NotificationCategory.maximum,
      actions: NotificationCategory.maximumActions)
    #expect(welcome.session == "abc" && welcome.window == 64 && welcome.limits == limits)
    #expect(seen[3] == .accepted(.response("r-1")))
    #expect(seen[4] == .accepted(.request("s1")))
    #expect(seen[5] == .refused(RefusedFrame(.response("r-1"), .unknownAction, field: "action")))
    #expect(seen[6] == .refused(RefusedFrame(.request("c1"), .badFrame, field: "categories[0]", rule: "No.")))
    #expect(seen[7] == .gap(GapFrame(from: revision, to: revision)))
    #expect(seen[8] == .goaway(GoawayFrame(reconnectAfterMs: 1200, reason: "draining")))
    #expect(seen[9] == .heartbeat)
    let link = Self.link(AttachmentTests.hash)
    guard case .notify(let linked) = seen[10], case .notify(let unlinked) = seen[11] else {
      Issue.record("no notify with attachments")
      return
    }
    #expect(linked.attachments == [LinkedAttachment(AttachmentTests.photo, link: link)] && linked.payload == notify.payload)
    #expect(unlinked.attachments == [LinkedAttachment(AttachmentTests.photo, link: nil)] && notify.attachments.isEmpty)
    #expect(seen[12] == .linked(LinkedFrame(request: "l1", link: link)))
  }

  @Test func `a notify frame says how it is presented, and what its interruption level counts as`() throws {
    try DeliveryTests.encoded().withUnsafeBytes { bytes in
      let entry = try #require(DeliveryEntryView(bytes))
      for bits in 0..<64 as Range<UInt8> {
        for level in [nil] + InterruptionLevel.allCases {
          let text = JSONWriter.text {
            ServerFrames.notify(
              entry, revision: Revision(entry.source), delivery: 7, presentation: PresentationOptions(rawValue: bits), countingAs: level,
              receipt: ("a" as StaticString).bytes, to: &$0)
          }
          guard case .notify(let frame) = try withBytes(text, { try ServerFrame($0) }) else { throw FieldError(field: text, rule: "") }
          #expect(frame.presentation?.rawValue == bits && frame.interruptionLevel == level)
        }
      }
    }
    let older = #"{"type":"notify","delivery":1,"id":"i","identifier":"i","revision":"r","payload":{}}"#
    guard case .notify(let frame) = try withBytes(older, { try ServerFrame($0) }) else { throw FieldError(field: older, rule: "") }
    #expect(frame.presentation == nil, "an older cluster does not say it")
  }

  @Test func theDeliveryStandsRightBehindTheType() throws {
    let notify = try #require(try Self.written().first { $0.name == "notify" }).text
    #expect(
      notify.hasPrefix(#"{"type":"notify","delivery":7,"id":"123e4567-e89b-12d3-a456-42665544000a","identifier":"score","revision":""#))
    #expect(notify.hasSuffix(#""mutable-content":1}},"receipt":"abc_-"}"#))
  }

  @Test func anAckHandsOutItsNumbers() throws {
    let text =
      #" {"deliveries":[1,2, 9007199254740991],"x":[],"dropped":[{"reason":"known","delivery":3,"y":1},{"delivery":4,"reason":"expired"},{"delivery":5,"reason":"filtered"}],"updated":[2],"type":"ack"} "#
    try withBytes(text) { bytes in
      guard case .ack(let ack) = try DeviceFrame(bytes) else {
        Issue.record("no ack")
        return
      }
      var numbers: [UInt64] = []
      ack.forEachDelivery { numbers.append($0) }
      #expect(numbers == [1, 2, 9_007_199_254_740_991])
      var dropped: [String] = []
      ack.forEachDropped { dropped.append("\($0) \($1.rawValue)") }
      #expect(dropped == ["3 known", "4 expired", "5 filtered"])
      #expect(ack.updatedDeliveries == [2])
    }
  }

  @Test(arguments: [
    ("", "", ""), ("[]", "", ""), ("{}", "", "type"), (#"{"type":7}"#, "", "type"), (#"{"type":"ack"}x"#, "", ""),
    (#"{"type":"ack","deliveries":7}"#, "ack", "deliveries"), (#"{"type":"ack","deliveries":[-1]}"#, "ack", "deliveries"),
    (#"{"type":"ack","deliveries":[1.5]}"#, "ack", "deliveries"), (#"{"type":"ack","deliveries":[9007199254740992]}"#, "ack", "deliveries"),
    (#"{"type":"ack","updated":["1"]}"#, "ack", "updated"), (#"{"type":"ack","dropped":[1]}"#, "ack", "dropped"),
    (#"{"type":"ack","dropped":[{"delivery":1}]}"#, "ack", "dropped"),
    (#"{"type":"ack","dropped":[{"delivery":1,"reason":"bored"}]}"#, "ack", "dropped"),
    (#"{"type":"hello"}"#, "hello", "device"), (#"{"type":"hello","device":"TOKEN"}"#, "hello", "application"),
    (#"{"type":"hello","device":"TOKEN","application":"a","credential":1}"#, "hello", "credential"),
    (#"{"type":"response"}"#, "response", "response"), (#"{"type":"response","response":"r"}"#, "response", "receipt"),
    (#"{"type":"response","response":"r","receipt":"x"}"#, "response", "identifier"),
    (#"{"type":"response","response":"r","receipt":"x","identifier":"i"}"#, "response", "action"),
    (#"{"type":"response","response":"r","receipt":"x","identifier":"i","action":"a","at":"noon"}"#, "response", "at"),
    (#"{"type":"settings"}"#, "settings", "authorization"), (#"{"type":"categories"}"#, "categories", "categories"),
    (#"{"type":"unregister","request":""}"#, "unregister", "request"), (#"{"type":"link","request":"l"}"#, "link", "hash"),
    (#"{"type":"link","hash":"00","request":"l"}"#, "link", "hash"), (#"{"type":"link","hash":"00"}"#, "link", "request"),
  ])
  func aWrongFrameIsNamed(_ text: String, _ frame: String, _ field: String) {
    let error = fault(of: text.replacing("TOKEN", with: RequestFixture.token))
    #expect(error?.frame == frame)
    #expect(error?.field == field)
    #expect(error?.closeCode == (frame == "hello" ? .badHello : .protocolError))
  }

  @Test func aWrongFrameThatSaysWhatItIsAboutIsRefused() throws {
    #expect(fault(of: #"{"type":"response","response":"r-7"}"#)?.subject == .response("r-7"))
    #expect(fault(of: #"{"type":"settings","request":"s-7"}"#)?.subject == .request("s-7"))
    #expect(fault(of: #"{"type":"hello","request":"s-7"}"#)?.subject == nil)
    let error = try #require(fault(of: #"{"type":"categories","request":"c","categories":[7]}"#))
    let subject = try #require(error.subject)
    let text = JSONWriter.text { ServerFrames.refused(subject, reason: .badFrame, field: error.field, rule: error.rule, to: &$0) }
    #expect(text == #"{"type":"refused","request":"c","reason":"BadFrame","field":"categories[0]","rule":"This is an object."}"#)
  }

  @Test func aResponseTimeMayBeText() throws {
    let text = #"{"type":"response","response":"r","receipt":"x","identifier":"i","action":"a","at":"2023-11-14T22:13:20Z"}"#
    guard case .response(let response) = try device(text) else {
      Issue.record("no response")
      return
    }
    #expect(response.at == 1_700_000_000_000)
  }

  @Test(arguments: [
    (#""userText":5"#, "This is text of at most 4096 bytes."), (#""userText":[]"#, "This is text of at most 4096 bytes."),
    (#""at":-1"#, "A time is milliseconds since 1970, or text by RFC 3339."),
    (#""at":"soon""#, "A time is milliseconds since 1970, or text by RFC 3339."),
    (#""at":{}"#, "A time is milliseconds since 1970, or text by RFC 3339."),
  ]) func aRefusalNamesTheRealBound(_ member: String, _ rule: String) {
    #expect(fault(of: #"{"type":"response","response":"r","receipt":"x","identifier":"i","action":"a",\#(member)}"#)?.rule == rule)
  }

  @Test func noRuleNamesABoundThatOnlyTheMachineHas() throws {
    let texts = [
      #"{"type":"welcome","session":"s","now":"x"}"#, #"{"type":"remove","delivery":-1}"#,
      #"{"type":"notify","delivery":1,"id":"i","identifier":"i","revision":"r","expiration":-1}"#,
    ]
    for text in texts {
      let error = #expect(throws: DeviceFrameError.self) { try withBytes(text) { try ServerFrame($0) } }
      #expect(error?.rule == "This is an integer from 0 on.")
    }
  }

  @Test func aGoawayWhoseTimeMakesNoSenseHasNone() throws {
    for time in ["-1", "1.5", #""soon""#, "null", "1e300", "9223372036854775808"] {
      let text = #"{"type":"goaway","reconnectAfterMs":\#(time),"reason":"draining"}"#
      #expect(try withBytes(text) { try ServerFrame($0) } == .goaway(GoawayFrame(reconnectAfterMs: nil, reason: "draining")))
    }
    #expect(JSONWriter.text { ServerFrames.goaway(reconnectAfterMilliseconds: .max, reason: "x", to: &$0) }.contains(":3600000,"))
  }

  @Test func unknownTypesAndMembersArePassedOver() throws {
    guard case .unknown = try device(#"{"type":"dance","steps":[]}"#) else {
      Issue.record("known?")
      return
    }
    #expect(try withBytes(#"{"type":"dance"}"#) { try ServerFrame($0) } == .unknown)
    #expect(
      try withBytes(#"{"type":"goaway","reconnectAfterMs":1,"reason":"draining","new":{}}"#) { try ServerFrame($0) }
        == .goaway(GoawayFrame(reconnectAfterMs: 1, reason: "draining")))
  }

  @Test func closeCodesSayWhetherAndWhenToComeBack() {
    #expect(Set(CloseCode.allCases.map(\.rawValue)).count == CloseCode.allCases.count)
    for code in CloseCode.allCases {
      #expect(code.reason.utf8.count <= 123)
      #expect((4000...4999).contains(code.rawValue))
    }
    #expect(CloseCode.takenOver.reconnection.wait(attempt: 0, told: 5, jitter: 0) == nil)
    #expect(CloseCode.draining.reconnection.wait(attempt: 0, told: 1234, jitter: 1) == 1734)
    #expect(CloseCode.draining.reconnection.wait(attempt: 0, told: nil, jitter: 1) == 500)
    #expect(CloseCode.draining.reconnection.wait(attempt: 0, told: 3_600_000, jitter: 0) == 3_600_000)
    #expect(CloseCode.draining.reconnection.wait(attempt: 0, told: .max, jitter: 0) == 1_800_000)
    #expect(CloseCode.draining.reconnection.wait(attempt: 0, told: .max, jitter: 1) == 3_600_000)
    #expect(CloseCode.pingTimeout.reconnection.wait(attempt: 0, told: nil, jitter: 0) == 0)
    #expect(CloseCode.pingTimeout.reconnection.wait(attempt: 3, told: nil, jitter: 1) == 8_000)
    #expect(CloseCode.pingTimeout.reconnection.wait(attempt: 99, told: nil, jitter: 1) == 120_000)
    #expect(CloseCode.tooManyErrors.reconnection.wait(attempt: 0, told: nil, jitter: 0) == 60_000)
    #expect(CloseCode.reconnection(after: 1006) == .backOff(from: 0, to: 120_000))
  }

  @Test(arguments: ["Europe/Rome", "UTC", "Etc/GMT+5", "no/such"]) func `a time zone has the form of a name`(zone: String) throws {
    for frame in Self.framesWithZone(zone) { #expect(throws: Never.self) { try Self.read(frame) } }
  }

  @Test(arguments: ["<b>", "Europe Rome", "../../etc/passwd\u{202E}", "Röm"]) func `another text is no time zone`(zone: String) throws {
    for frame in Self.framesWithZone(zone) { #expect(throws: DeviceFrameError.self) { try Self.read(frame) } }
  }

  private static func framesWithZone(_ zone: String) -> [String] {
    let device = String(repeating: "0", count: 64)
    return [
      #"{"type":"hello","device":"\#(device)","application":"a","timeZone":"\#(zone)"}"#,
      #"{"type":"settings","request":"1","timeZone":"\#(zone)"}"#,
    ]
  }

  private static func read(_ text: String) throws {
    var text = text
    _ = try text.withUTF8 { try DeviceFrame(UnsafeRawBufferPointer($0)) }
  }
}

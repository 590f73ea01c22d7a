import EventLoop
import Glibc
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import Extensions

/// Media that a notification names by a URL: fetched within bounds, once for many, and what cannot be had is left out.
@Suite struct AttachTests {
  private static let gif = "GIF89a" + String(repeating: "x", count: 1_000)

  static func reply(_ body: String, _ status: String = "200 OK", _ more: String = "") -> ScriptedServer.Answer {
    .reply("HTTP/1.1 \(status)\r\ncontent-length: \(body.utf8.count)\r\n\(more)\r\n\(body)")
  }

  /// A lane, a server and a media store.
  struct Place: Sendable {
    let lane: ExtensionCallsTests.Lane
    let server: ScriptedServer
    let port: Int
    let folder: MediaFolder
    let store: MediaStore

    /// An extension of these settings, beside those that let it go to the server.
    func attach(
      _ settings: String = #""attachments":[{"url":"/photo"}]"#, concurrency: Int = 4_096, budget: Int = 30_000
    ) throws -> ExtensionDefinition {
      let text = #"""
        {"applications":{"a":[{"name":"photo","use":"attach","hosts":["127.0.0.1:\#(port)"],"networks":["127.0.0.0/8"],"plaintext":true,
        "timeout":30000,"budget":\#(budget),"concurrency":\#(concurrency)\#(settings.isEmpty ? "" : ",")\#(settings)}]}}
        """#
      let file = try ExtensionsFile(parsing: Array(text.utf8), media: store)
      #expect(file.usesMedia)
      guard case .called(let definition) = try #require(file.all.first).steps[0].work else { throw Expectation.isCalled }
      return definition
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }

    /// What becomes of a notification with these members.
    func pass(
      _ members: [String: String], through definition: ExtensionDefinition, lifetime: Int64 = 3_600_000
    ) async -> ExtensionRun {
      await lane.pass(
        [definition],
        of: MutableContent(
          payload: .object(
            [.init(key: "aps", value: ["alert": "News"])] + members.map { .init(key: $0.key, value: .string($0.value)) })),
        lifetime: lifetime)
    }
  }

  private enum Expectation: Error { case isCalled }

  private static func with(
    limit: Int = 1 << 30, _ answer: @escaping @Sendable (String) -> ScriptedServer.Answer,
    _ body: @escaping @concurrent @Sendable (Place) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      let media = MediaFolder(folder.path + "/media")
      let store = try await MediaStore.open(media, limit: limit)
      do {
        try await ScriptedServer.with(answer) { server, port in
          try await ExtensionCallsTests.Lane.with { lane in
            try await body(Place(lane: lane, server: server, port: port, folder: media, store: store))
          }
        }
      } catch {
        await store.close()
        throw error
      }
      await store.close()
    }
  }

  private static func states(_ run: ExtensionRun) -> [ExtensionState] { run.outcomes.map(\.state) }

  @Test func whatThePayloadNamesIsAttachedAndStored() async throws {
    try await Self.with({ _ in Self.reply(Self.gif, more: "content-type: text/html\r\n") }) { place in
      let options = #""attachments":[{"url":"/photo","identifier":"picture","options":{"thumbnailHidden":true}}]"#
      let run = await place.pass(["photo": place.url("cat.html")], through: try place.attach(options))
      #expect(Self.states(run) == [.modified])
      let attachment = try #require(run.content.attachments.first?.attachment)
      #expect(attachment.identifier == "picture" && attachment.options.isThumbnailHidden)
      #expect(attachment.media.type == .gif && attachment.media.size == Self.gif.utf8.count)
      #expect(try place.folder.open(attachment.media.hash)?.size == Self.gif.utf8.count)
      #expect(run.content.payload["photo"] == .string(place.url("cat.html")), "the payload stays as it is")
      let written = try #require(run.written)
      #expect(written.attachments.withUnsafeBytes { NotificationAttachment.list($0) } == [attachment])
    }
  }

  private static func reply(_ body: String, more: String) -> ScriptedServer.Answer { reply(body, "200 OK", more) }

  @Test func whatNamesNothingIsLeftAsItIs() async throws {
    try await Self.with({ _ in .silence }) { place in
      let attach = try place.attach()
      #expect(await Self.states(place.pass([:], through: attach)) == [.unchanged])
      for wrong in ["", String(repeating: "x", count: 3_000)] {
        let run = await place.pass(["photo": wrong], through: attach)
        #expect(Self.states(run) == [.failed])
        #expect(run.content.attachments == [] && run.outcomes[0].failure?.reason.contains("/photo") == true)
      }
      #expect(await place.server.requests == [])
    }
  }

  @Test func anExtensionBeforeItSaysWhatIsToBeAttachedByAURL() async throws {
    try await Self.with({ Self.reply(Self.gif + ($0.contains("/b") ? "b" : "a")) }) { place in
      let attach = try place.attach("")
      var content = MutableContent(payload: ["aps": ["alert": "News"]])
      content.attachments = ["b", "a"].map { ContentAttachment(identifier: Name($0), url: place.url($0)) }
      let run = await place.lane.pass([attach], of: content)
      #expect(Self.states(run) == [.modified])
      #expect(run.content.attachments.map(\.identifier) == ["b", "a"], "in the order in which they were named")
      #expect(Set(run.content.attachments.compactMap(\.attachment?.media)).count == 2)
    }
  }

  @Test func whatComesIsKeptWhereAnotherOneFails() async throws {
    try await Self.with({ $0.contains("/good") ? Self.reply(Self.gif) : Self.reply("no", "404 Not Found") }) { place in
      let attach = try place.attach(#""attachments":[{"url":"/one"},{"url":"/two"}]"#)
      let run = await place.pass(["one": place.url("bad"), "two": place.url("good")], through: attach)
      #expect(Self.states(run) == [.bestAttempt])
      #expect(run.content.attachments.map(\.identifier) == ["two"])
      #expect(run.outcomes[0].failure?.reason.contains("status 404") == true)
    }
  }

  private static let wrong: [(String, ScriptedServer.Answer, String)] = [
    ("what is no media", reply("<html>"), "is none of: image/jpeg"), ("nothing", reply(""), "is none of: image/jpeg"),
    ("a status", reply(gif, "500 Internal Server Error"), "status 500"),
    ("a status without a body", reply("", "204 No Content"), "status 204"),
    ("too much", .endless("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nGIF89a", then: gif), "bodyTooLarge"),
    (
      "too much for its type",
      .endless("HTTP/1.1 200 OK\r\ncontent-length: 20000000\r\n\r\nGIF89a", then: String(repeating: gif, count: 50)),
      "more than 10485760 bytes, which is the maximum for image/gif"
    ),
    (
      "too much without a length",
      .endless("HTTP/1.1 200 OK\r\n\r\nGIF89a", then: String(repeating: gif, count: 50)), "more than 10485760 bytes"
    ),
    ("less than it says", .last("HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n\(gif)"), "truncated"),
    ("no HTTP", .last("SSH-2.0-OpenSSH\r\n"), "protocolError"),
    ("a redirect elsewhere", reply("", "302 Found", "location: http://169.254.169.254/latest\r\n"), "hostRefused"),
    ("a redirect to itself", reply("", "302 Found", "location: /again\r\n"), "tooManyRedirects"),
    ("a redirect to a file", reply("", "302 Found", "location: file:///etc/passwd\r\n"), "schemeRefused"),
  ]

  @Test(arguments: wrong.indices) func aServerThatGivesSomethingElseCostsTheAttachmentOnly(_ index: Int) async throws {
    let (what, answer, reason) = Self.wrong[index]
    try await Self.with({ _ in answer }) { place in
      let run = await place.pass(["photo": place.url("x?token=secret")], through: try place.attach())
      #expect(Self.states(run) == [.failed], "\(what)")
      #expect(run.written == nil && run.content.attachments == [], "\(what)")
      let said = run.outcomes[0].failure?.reason ?? ""
      #expect(said.contains(reason) && !said.contains("secret") && !said.contains("127.0.0.1"), "\(what): \(said)")
      #expect(TestFolder.count(of: "\(place.folder.path)/new") == 0, "\(what): nothing is left on its way")
    }
  }

  @Test func aServerThatHangsCostsNoMoreThanItsTime() async throws {
    for answer in [ScriptedServer.Answer.silence, .reply("HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n\(Self.gif)")] {
      try await Self.with({ _ in answer }) { place in
        let run = await place.pass(["photo": place.url("x")], through: try place.attach(budget: 1_500))
        #expect(Self.states(run) == [.timedOut])
        // Nobody wants it any more: the transfer ends, though its own time is not up.
        await place.server.eventually("the transfer has ended") { $0.open == 0 }
        await place.lane.eventually("nothing is left on its way") { TestFolder.count(of: "\(place.folder.path)/new") == 0 }
      }
    }
  }

  @Test func addressesThatAreNotForItAreNotAsked() async throws {
    try await Self.with({ _ in Self.reply(Self.gif) }) { place in
      let text = #"""
        {"applications":{"a":[{"name":"photo","use":"attach","hosts":["127.0.0.1:\#(place.port)"],"plaintext":true,"attachments":[{"url":"/photo"}]}]}}
        """#
      let error = #expect(throws: FieldError.self) { try ExtensionsFile(parsing: Array(text.utf8), media: place.store) }
      #expect(error?.field == #"applications["a"][0].hosts"#)
      #expect(error?.rule == #"127.0.0.1 must not be connected to (loopback): "networks" must admit it"#)
      let other = await place.pass(["photo": "http://127.0.0.1:1/x"], through: try place.attach())
      #expect(other.outcomes[0].failure?.reason.contains("hostRefused") == true)
      #expect(other.outcomes[0].failure?.said?.contains("is not among the allowed hosts") == true, "'extensions try' shows it")
      #expect(await place.server.connections == 0)
    }
  }

  @Test func aFileIsFetchedOnceForAThousandNotifications() async throws {
    try await Self.with({ _ in Self.reply(Self.gif) }) { place in
      let attach = try place.attach()
      let url = place.url("x")
      let runs = await withTaskGroup(of: ExtensionRun.self) { group in
        for _ in 0..<1_000 { group.addTask { await place.pass(["photo": url], through: attach) } }
        return await group.reduce(into: []) { $0.append($1) }
      }
      #expect(runs.allSatisfy { Self.states($0) == [.modified] })
      #expect(await place.server.requests.count == 1)
    }
  }

  @Test func aPlaceThatHasNoURLCostsTheOthersNothing() async throws {
    try await Self.with({ _ in Self.reply(Self.gif) }) { place in
      let attach = try place.attach(#""attachments":[{"url":"/none"},{"url":"/photo"}]"#)
      let run = await place.pass(["none": "", "photo": place.url("x")], through: attach)
      #expect(Self.states(run) == [.bestAttempt])
      #expect(run.content.attachments.map(\.identifier) == ["photo"])
      #expect(run.outcomes[0].failure?.reason.contains("/none") == true)
    }
  }

  @Test func oneThatIsGivenUpCostsTheOthersNothing() async throws {
    let (asked, gate) = (Latch(), Latch())
    try await Self.with({ _ in
      asked.open()
      gate.block()
      return Self.reply(Self.gif)
    }) { place in
      let attach = try place.attach()
      let url = place.url("x")
      async let patient = place.pass(["photo": url], through: attach)
      await asked.wait()
      // A notification that is about to expire waits for the same file, and no longer than it may.
      let hasty = await place.pass(["photo": url], through: attach, lifetime: 2_000)
      #expect(Self.states(hasty) == [.timedOut])
      gate.open()
      #expect(await Self.states(patient) == [.modified])
      #expect(await place.server.requests.count == 1)
    }
  }

  /// A network file system may hang for as long as it likes.
  @Test func aFolderThatHangsCostsNoMoreThanTheTimeOfTheCall() async throws {
    let gate = Latch()
    try await Self.with({ _ in Self.reply(Self.gif) }) { place in
      let attach = try place.attach(budget: 1_500)
      await eventually("one is fetched") {
        await Self.states(place.pass(["photo": place.url("known")], through: attach)) == [.modified]
      }
      place.store.loop.execute { gate.block() }
      for path in ["known", "new"] {
        #expect(await Self.states(place.pass(["photo": place.url(path)], through: attach)) == [.timedOut], "\(path)")
      }
      await eventually("nothing of it is under way any more") { await place.lane.count == 0 }
      gate.open()
      let again = await place.pass(["photo": place.url("new")], through: try place.attach())
      #expect(Self.states(again) == [.modified])
    }
  }

  @Test func whatIsGoneFromTheStoreIsFetchedAgain() async throws {
    try await Self.with({ _ in Self.reply(Self.gif) }) { place in
      let attach = try place.attach()
      let first = await place.pass(["photo": place.url("x")], through: attach)
      let hash = try #require(first.content.attachments.first?.attachment?.media.hash)
      // Later than the notification, which has no expiration, and a day: its mark is up.
      await place.store.clean(now: WallClock.seconds() + 3 * MediaStore.keptSeconds)
      #expect(try place.folder.open(hash) == nil)
      let second = await place.pass(["photo": place.url("x")], through: attach)
      #expect(Self.states(second) == [.modified])
      #expect(try place.folder.open(hash) != nil)
      #expect(await place.server.requests.count == 2)
    }
  }

  @Test func aFullStoreCostsTheAttachmentOnly() async throws {
    try await Self.with(limit: 500, { _ in Self.reply(Self.gif) }) { place in
      let run = await place.pass(["photo": place.url("x")], through: try place.attach())
      #expect(Self.states(run) == [.failed])
      #expect(run.outcomes[0].failure?.reason.contains("all that it may have") == true)
    }
  }

  @Test(arguments: [
    (#""hosts":[]"#, "hosts: This must be a list of 1 to 64 texts"), (#""hosts":["a b"]"#, "hosts: 'a b' is no pattern"),
    ("", "hosts: This member is required"),
    (#""hosts":["a"],"attachments":[]"#, "attachments: This must be a list of 1 to 10 objects."),
    (#""hosts":["a"],"attachments":[1]"#, "attachments[0]: This must be an object."),
    (#""hosts":["a"],"attachments":[{}]"#, "attachments[0].url: This member is required."),
    (#""hosts":["a"],"attachments":[{"url":"photo"}]"#, "attachments[0].url: The place of a URL in the payload is a JSON pointer"),
    (#""hosts":["a"],"attachments":[{"url":"/x","identifier":7}]"#, "attachments[0].identifier: This must be a text"),
    (#""hosts":["a"],"attachments":[{"url":"/x","identifier":"a\u0000b"}]"#, "attachments[0].identifier: An identifier is text"),
    (
      #""hosts":["a"],"attachments":[{"url":"/x"},{"url":"/y/x"}]"#,
      "attachments[1].identifier: The attachments of a notification have different"
    ),
    (
      #""hosts":["a"],"attachments":[{"url":"/x","options":{"thumbnailTime":"now"}}]"#,
      "attachments[0].options.thumbnailTime: This must be a number"
    ),
    (#""hosts":["a"],"attachments":[{"url":"/x","type":"png"}]"#, "attachments[0].type: There is no such setting here"),
    (#""hosts":["a"],"timeout":0"#, "timeout: This must be a whole number from 1 to 30000."),
    (#""hosts":["a"],"reuse":-1"#, "reuse: This must be a whole number"),
    (#""hosts":["a"],"networks":["10.0.0.0/99"]"#, "networks: "), (#""hosts":["a"],"certificates":"/no/such"#, "certificates: /no/such"),
    (#""hosts":["a"],"place":"device"#, "place: An extension of this kind runs in the workers."),
  ])
  func aWrongSettingIsRefusedWithThePlaceAndTheRule(_ settings: String, _ rule: String) {
    let members = settings.isEmpty ? "" : "," + settings + (settings.hasSuffix("h") || settings.hasSuffix("e") ? "\"" : "")
    let text = #"{"applications":{"a":[{"name":"x","use":"attach"\#(members)}]}}"#
    let error = #expect(throws: FieldError.self) { try ExtensionsFile(parsing: Array(text.utf8)) }
    #expect(error?.description.contains(rule) == true, "\(error?.description ?? "")")
  }
}

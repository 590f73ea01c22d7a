import Cryptography
import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import DeviceClient

/// Attachments as files on the device: fetched, checked, opened, and removed with their notification.
@Suite(.timeLimit(.minutes(10))) struct AttachmentStoreTests {
  /// A file, as a notification of the cluster says it.
  struct Photo {
    var content: String
    var type = "image/gif"
    var size: Int
    var hash: String

    init(_ content: String = "GIF89a" + String(repeating: "x", count: 1_000)) {
      self.content = content
      size = content.utf8.count
      hash = Self.media(content).hash.description
    }

    static func media(_ content: String) -> Media {
      let digest = RunningDigest()
      Array(content.utf8).withUnsafeBytes { digest.append($0) }
      guard let hash = digest.finish().withUnsafeBytes({ MediaHash(bytes: $0) }) else { preconditionFailure("a digest is a hash") }
      return Media(hash: hash, type: .gif, size: content.utf8.count)
    }

    /// The member of a frame.
    func attachment(_ url: String, _ identifier: String = "photo", expires: Int64 = 1_800_000_000) -> JSONValue {
      [
        "identifier": .string(identifier), "hash": .string(hash), "type": .string(type), "size": .integer(Int64(size)),
        "url": .string(url), "expires": .integer(expires),
      ]
    }
  }

  static func reply(_ body: String, _ status: String = "200 OK", _ more: String = "") -> ScriptedServer.Answer {
    .reply("HTTP/1.1 \(status)\r\ncontent-length: \(body.utf8.count)\r\n\(more)\r\n\(body)")
  }

  static func attached(_ delivery: Int64, _ id: String, revision: String? = nil, _ attachments: JSONValue...) -> JSONValue {
    var frame = notify(delivery, id: id, revision: revision ?? "\(delivery)")
    frame.set("attachments", .array(attachments))
    return frame
  }

  /// A device with a state file, at a cluster, and a server of files.
  private struct Place {
    let path: String
    let cluster: ScriptedCluster
    let url: String
    let server: ScriptedServer
    let files: String

    func device(_ change: (inout DeviceConfiguration) -> Void = { _ in }) -> DeviceUnderTest {
      DeviceUnderTest(url) {
        $0.stateFile = path
        $0.attachmentMilliseconds = hangMilliseconds
        change(&$0)
      }
    }

    /// The names in the store's folder.
    var stored: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path + "-attachments")) ?? []).sorted() }
  }

  private static func with(
    _ answer: @escaping @Sendable (String) -> ScriptedServer.Answer, _ body: @escaping @Sendable (Place) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      try await ScriptedCluster.with { cluster, url in
        try await ScriptedServer.with(answer) { server, port in
          try await body(
            Place(path: folder.path + "/state", cluster: cluster, url: url, server: server, files: "http://127.0.0.1:\(port)"))
        }
      }
    }
  }

  // MARK: Showing

  @Test func `a notification is shown with its attachments, which the program opens, and which go with it`() async throws {
    try await Self.with({ _ in Self.reply(Photo().content) }) { place in
      let (photo, device) = (Photo(), place.device())
      try await device.device.start()
      await place.cluster.expect("hello")
      await place.cluster.send(Self.attached(1, "one", photo.attachment(place.files + "/a")))
      await device.expect("shown one 1")
      let read = try await device.device.withAttachment("photo", of: "one") { file in
        #expect(file.type == .gif && file.size == photo.size)
        return try String(contentsOfFile: file.path, encoding: .utf8)
      }
      #expect(read == photo.content && place.stored == [photo.hash])
      let missing = await #expect(throws: DeviceError.self) { try await device.device.withAttachment("other", of: "one") { _ in } }
      #expect(missing?.code == .noAttachments)
      // Two notifications have one file.
      await place.cluster.send(Self.attached(2, "two", photo.attachment(place.files + "/b")))
      await device.expect("shown one 1", "shown two 2")
      #expect(await place.server.requests.count == 1)
      try await device.device.open("one")
      #expect(place.stored == [photo.hash])
      // An open file stays until it is closed.
      try await device.device.withAttachment("photo", of: "two") { file in
        await device.device.remove(["two"])
        try await device.device.userNotificationCenter.setBadgeCount(1)
        #expect(FileManager.default.fileExists(atPath: file.path))
      }
      await eventually("the file goes with its last notification") { place.stored.isEmpty }
      await device.close()
    }
  }

  @Test func `only the showing waits for an attachment: not the acknowledgement, and no other notification`() async throws {
    try await Self.with({ _ in .silence }) { place in
      let device = place.device()
      try await device.device.start()
      await place.cluster.expect("hello")
      await place.cluster.send(Self.attached(1, "one", Photo().attachment(place.files + "/a")), notify(2, id: "two", revision: "2"))
      await device.expect("shown two 2")
      await eventually("both are acknowledged") {
        await place.cluster.frames("ack").flatMap { $0["deliveries"]?.elements ?? [] } == [1, 2]
      }
      // One that the cluster removes, and one that is replaced, are not shown afterwards.
      await place.cluster.send(Self.attached(3, "three", Photo().attachment(place.files + "/c")))
      await eventually("it is acknowledged") {
        await place.cluster.frames("ack").flatMap { $0["deliveries"]?.elements ?? [] } == [1, 2, 3]
      }
      await place.cluster.send(
        ["type": "remove", "delivery": 4, "identifiers": ["three"], "revision": "4"],
        notify(5, id: "five", "one", revision: "5"))
      await device.expect("shown two 2", "removed three", "updated one 5")
      await place.cluster.send(Self.attached(6, "six", Photo().attachment(place.files + "/f")))
      await eventually("all are acknowledged") {
        await place.cluster.frames("ack").flatMap { $0["deliveries"]?.elements ?? [] } == [1, 2, 3, 4, 5, 6]
      }
      // What still waits is shown at the device's end.
      await device.close()
      #expect(device.story == ["shown two 2", "removed three", "updated one 5", "shown six 6"])
      #expect(place.stored.isEmpty)
    }
  }

  @Test func `an attachment that does not come in time is left out, and the event says so`() async throws {
    try await Self.with({ _ in .silence }) { place in
      let device = place.device { $0.attachmentMilliseconds = 100 }
      try await device.device.start()
      await place.cluster.expect("hello")
      await place.cluster.send(Self.attached(1, "one", Photo().attachment(place.files + "/a")))
      await device.expect("shown one 1")
      #expect(device.missing == ["one photo late"])
      let error = await #expect(throws: DeviceError.self) { try await device.device.withAttachment("photo", of: "one") { _ in } }
      #expect(error?.code == .attachment)
      await device.close()
      #expect(place.stored.isEmpty)
    }
  }

  @Test func `an event waits no longer than its notification may be shown, and tells what is missing before`() async throws {
    let fetcher = StandingFetcher()
    var frame = Self.attached(1, "one", Photo().attachment("http://127.0.0.1:1/a"))
    try await fetcher.take(frame)
    // A second before its end, in the middle of the other's time for the same file.
    frame = Self.attached(2, "two", Photo().attachment("http://127.0.0.1:1/a"))
    frame.set("expiration", .integer(StandingFetcher.now / 1000 + 1))
    try await fetcher.take(frame)
    await eventually("it is shown") { await fetcher.told == ["missing two photo late", "shown two"] }
    await fetcher.close()
    #expect(await fetcher.told.suffix(2) == ["missing one photo late", "shown one"])
    await fetcher.loop.close()
  }

  @Test func `a notification that the program removes when it hears of a missing attachment is not shown, and waits for nothing`()
    async throws
  {
    let fetcher = StandingFetcher()
    await fetcher.removeAtMissing()
    var large = Photo("GIF89a large")
    large.size = 2 << 20
    try await fetcher.take(Self.attached(1, "one", large.attachment("http://127.0.0.1:1/a")))
    try await fetcher.take(
      Self.attached(2, "two", large.attachment("http://127.0.0.1:1/a"), Photo().attachment("http://127.0.0.1:1/b", "other")))
    #expect(await fetcher.told == ["missing one photo full", "missing two photo full"])
    // Its time is over.
    var frame = Self.attached(3, "three", Photo().attachment("http://127.0.0.1:1/a"))
    frame.set("expiration", .integer(StandingFetcher.now / 1000 + 1))
    try await fetcher.take(frame)
    await eventually("it is told") { await fetcher.told.count == 3 }
    await fetcher.close()
    #expect(await fetcher.told == ["missing one photo full", "missing two photo full", "missing three photo late"])
    await fetcher.loop.close()
  }

  @Test func `a notification that says another type or size of a file than one before is shown without it`() async throws {
    try await Self.with({ _ in Self.reply(Photo().content) }) { place in
      let photo = Photo()
      var (lying, other) = (photo, photo)
      (lying.type, other.size) = ("image/png", photo.size + 1)
      var device = place.device()
      try await device.device.start()
      await place.cluster.expect("hello")
      // The first comes while the file is fetched.
      await place.cluster.send(
        Self.attached(1, "one", photo.attachment(place.files + "/a")), Self.attached(2, "two", lying.attachment(place.files + "/b")))
      await eventually("both are shown: \(device.story)") { Set(device.story) == ["shown one 1", "shown two 2"] }
      await place.cluster.send(Self.attached(3, "three", other.attachment(place.files + "/c")))
      await eventually("it is shown: \(device.story)") { device.story.last == "shown three 3" }
      #expect(device.missing == ["two photo wrongContent", "three photo wrongContent"])
      for start in 1...2 {
        for (identifier, isThere) in [("one", true), ("two", false), ("three", false)] as [(Name, Bool)] {
          let type = try? await device.device.withAttachment("photo", of: identifier) { $0.type }
          #expect(type == (isThere ? .gif : nil), "\(identifier) at start \(start)")
        }
        await device.close()
        device = place.device()
        if start == 1 { try await device.device.start() }
      }
      await device.close()
    }
  }

  @Test func `an identifier that is updated again and again is shown in time, though its files do not come`() async throws {
    try await Self.with({ _ in .silence }) { place in
      let device = place.device { $0.attachmentMilliseconds = 2_000 }
      try await device.device.start()
      await place.cluster.expect("hello")
      // Each update comes before the time of the former one is over.
      var number = 0
      await eventually("it is shown") {
        number += 1
        let revision = String(format: "%05d", number)
        await place.cluster.send(
          Self.attached(Int64(number), revision, revision: revision, Photo().attachment(place.files + "/\(number)")))
        return !device.story.isEmpty
      }
      await device.close()
    }
  }

  @Test func `the download of a file that no notification needs any more ends`() async throws {
    try await Self.with({ _ in .silence }) { place in
      let device = place.device { $0.attachmentMilliseconds = 3_600_000 }
      try await device.device.start()
      await place.cluster.expect("hello")
      await place.cluster.send(
        Self.attached(1, "one", Photo().attachment(place.files + "/a")), Self.attached(2, "two", Photo().attachment(place.files + "/a")))
      await eventually("it is being fetched") { await place.server.open == 1 }
      await eventually("both wait for it") { await device.device.delivered.count == 2 }
      await device.device.remove(["one"])
      try await device.device.userNotificationCenter.setBadgeCount(1)
      #expect(await place.server.open == 1)
      await device.device.remove(["two"])
      await eventually("the connection is closed") { await place.server.open == 0 }
      await device.close()
      #expect(device.story.isEmpty && device.missing.isEmpty)
    }
  }

  // MARK: Bad input

  @Test func `what a server sends instead of the file is left out with the reason, and nothing of it stays`() async throws {
    let photo = Photo()
    let other = "GIF89a" + String(repeating: "y", count: 1_000)
    let text = Photo("no picture, but text of some length")
    try await Self.with({ request in
      let path = request.split(separator: " ")[1].dropFirst()
      switch path {
      case "redirect": return Self.reply("", "302 Found", "location: /good\r\n")
      case "error": return Self.reply("", "500 Internal Server Error")
      case "more": return Self.reply(photo.content + "x")
      case "endless": return .endless("HTTP/1.1 200 OK\r\n\r\n", then: photo.content)
      case "less": return Self.reply(String(photo.content.dropLast()))
      case "cut": return .last("HTTP/1.1 200 OK\r\ncontent-length: 1006\r\n\r\nGIF89a")
      case "other": return Self.reply(other)
      case "text": return Self.reply(text.content)
      default: return Self.reply(photo.content)
      }
    }) { place in
      var (large, lying, foreign) = (photo, photo, text)
      large.size = MediaType.gif.maximumBytes + 1
      lying.type = "image/png"
      foreign.type = "image/gif"
      let rows: [(String, Photo, String)] = [
        ("redirect", photo, "redirected"), ("error", photo, "refused"), ("more", photo, "wrongSize"), ("endless", photo, "wrongSize"),
        ("less", photo, "wrongSize"), ("cut", photo, "unreachable"), ("other", photo, "wrongContent"), ("lying", lying, "wrongContent"),
        ("text", foreign, "wrongType"), ("large", large, "wrongType"),
      ]
      let device = place.device()
      try await device.device.start()
      await place.cluster.expect("hello")
      for (number, (name, photo, reason)) in rows.enumerated() {
        await place.cluster.send(Self.attached(Int64(number), name, photo.attachment("\(place.files)/\(name)")))
        await eventually("\(name) is shown in \(device.story)") { device.story.count == number + 1 }
        #expect(device.missing.last == "\(name) photo \(reason)")
      }
      await place.cluster.send(Self.attached(20, "url", photo.attachment("no url")))
      await eventually("it is shown") { device.story.count == rows.count + 1 }
      #expect(device.missing.last == "url photo unreachable", "\(device.missing)")
      #expect(place.stored.isEmpty, "\(place.stored)")
      // A bad link does not keep a good one of the same file from its use.
      await place.cluster.send(
        Self.attached(21, "bad", photo.attachment(place.files + "/error")), Self.attached(22, "good", photo.attachment(place.files)))
      await eventually("the last are shown") { device.story.count == rows.count + 3 }
      #expect(device.missing.count == rows.count + 1 && place.stored == [photo.hash], "\(device.missing)")
      #expect(await device.device.delivered.count == rows.count + 3)
      await device.close()
    }
  }

  @Test func `a link that has expired is renewed once, and the program hears nothing of it`() async throws {
    let photo = Photo()
    try await Self.with({ $0.contains("/old") ? Self.reply("", "403 Forbidden") : Self.reply(photo.content) }) { place in
      let device = place.device()
      try await device.device.start()
      await place.cluster.expect("hello")
      var other = Photo("GIF89a another")
      other.type = "image/gif"
      await place.cluster.send(
        Self.attached(1, "one", photo.attachment(place.files + "/a", expires: 1_600_000_000)),
        Self.attached(2, "two", other.attachment(place.files + "/old")))
      let asked = await place.cluster.expect("link", count: 2)
      #expect(Set(asked.compactMap { $0["hash"]?.stringValue }) == [photo.hash, other.hash])
      for frame in asked {
        let request = try #require(frame["request"])
        if frame["hash"]?.stringValue == photo.hash {
          await place.cluster.send(["type": "linked", "request": request, "url": .string(place.files + "/new"), "expires": 1_800_000_000])
          await device.expect("shown one 1")
        }
      }
      for frame in asked where frame["hash"]?.stringValue == other.hash {
        await place.cluster.send(["type": "refused", "request": try #require(frame["request"]), "reason": "UnknownMedia", "field": "hash"])
      }
      await device.expect("shown one 1", "shown two 2")
      #expect(device.missing == ["two photo expired"] && place.stored == [photo.hash])
      // A new link that is no better is not renewed again.
      await place.cluster.send(Self.attached(3, "three", other.attachment(place.files + "/old")))
      let again = await place.cluster.expect("link", count: 3)
      await place.cluster.send([
        "type": "linked", "request": try #require(again.last?["request"]), "url": .string(place.files + "/old"), "expires": 1_800_000_000,
      ])
      await device.expect("shown one 1", "shown two 2", "shown three 3")
      #expect(device.missing == ["two photo expired", "three photo expired"])
      #expect(!device.events.contains { if case .linked = $0 { true } else { false } })
      await device.close()
    }
  }

  @Test func `however many links have expired, each is renewed when the cluster has answered others`() async throws {
    let photos = (0..<70).map { Photo("GIF89a photo \($0)") }
    let numbers = Dictionary(uniqueKeysWithValues: photos.enumerated().map { ($1.hash, $0) })
    try await Self.with({ request in
      let number = request.split(separator: " ")[1].dropFirst()
      return Self.reply("GIF89a photo \(number)")
    }) { place in
      let device = place.device { $0.attachmentMilliseconds = 3_600_000 }
      try await device.device.start()
      await place.cluster.expect("hello")
      for (number, photo) in photos.enumerated() {
        await place.cluster.send(Self.attached(Int64(number), "n\(number)", photo.attachment(place.files + "/old", expires: 1_600_000_000)))
      }
      // Each is acknowledged when its link is asked for, or could not be.
      await eventually("all are acknowledged") {
        await place.cluster.frames("ack").flatMap { $0["deliveries"]?.elements ?? [] }.count == photos.count
      }
      #expect(await place.cluster.expect("link", count: 64).count == 64)
      var answered = 0
      while answered < photos.count {
        let frames = await place.cluster.expect("link", count: answered + 1).dropFirst(answered)
        guard !frames.isEmpty else { break }
        for frame in frames {
          let number = try #require(frame["hash"]?.stringValue.flatMap { numbers[$0] })
          await place.cluster.send([
            "type": "linked", "request": try #require(frame["request"]), "url": .string("\(place.files)/\(number)"),
            "expires": 1_800_000_000,
          ])
        }
        answered += frames.count
      }
      await eventually("all are shown") { device.story.count == photos.count }
      #expect(device.missing.isEmpty && Set(place.stored) == Set(numbers.keys))
      await device.close()
    }
  }

  @Test func `a store that is full shows without, and takes the next when there is room`() async throws {
    try await Self.with({ Self.reply($0.contains("/b") ? "GIF89a bb" : "GIF89a aa") }) { place in
      let device = place.device { $0.stateLimits.attachmentBytes = 10 }
      try await device.device.start()
      await place.cluster.expect("hello")
      let (first, second) = (Photo("GIF89a aa"), Photo("GIF89a bb"))
      await place.cluster.send(Self.attached(1, "one", first.attachment(place.files + "/a")))
      await device.expect("shown one 1")
      await place.cluster.send(Self.attached(2, "two", second.attachment(place.files + "/b")))
      await device.expect("shown one 1", "shown two 2")
      #expect(device.missing == ["two photo full"])
      await device.device.remove(["one"])
      await eventually("the first is gone") { place.stored.isEmpty }
      await place.cluster.send(Self.attached(3, "three", second.attachment(place.files + "/b")))
      await device.expect("shown one 1", "shown two 2", "shown three 3")
      #expect(place.stored == [second.hash] && device.missing.count == 1)
      await device.close()
    }
  }

  @Test func `a store that cannot be written shows without`() async throws {
    try await Self.with({ _ in Self.reply(Photo().content) }) { place in
      #expect(FileManager.default.createFile(atPath: place.path + "-attachments", contents: Data()))
      let device = place.device()
      try await device.device.start()
      await place.cluster.expect("hello")
      await place.cluster.send(Self.attached(1, "one", Photo().attachment(place.files + "/a")))
      await device.expect("shown one 1")
      #expect(device.missing == ["one photo disk"])
      await device.close()
    }
  }

  @Test func `after a crash the store has what listed notifications have, and fetches what is missing`() async throws {
    let photo = Photo()
    try await Self.with({ $0.contains("/late") ? .silence : Self.reply(photo.content) }) { place in
      let first = place.device()
      try await first.device.start()
      await place.cluster.expect("hello")
      await place.cluster.send(Self.attached(1, "one", photo.attachment(place.files + "/a")))
      await first.expect("shown one 1")
      await first.close()
      let folder = place.path + "-attachments/"
      let foreign = ["else", "x.part", "my thesis.txt"]
      for name in ["17.part", String(repeating: "cd", count: 32)] + foreign {
        #expect(FileManager.default.createFile(atPath: folder + name, contents: Data("GIF89a".utf8)))
      }
      let second = place.device()
      try await second.device.start()
      // What somebody else has put there stays.
      #expect(Set(place.stored) == Set([photo.hash] + foreign))
      for name in foreign { try FileManager.default.removeItem(atPath: folder + name) }
      await place.cluster.expect("hello", of: 1)
      await second.close()
      try FileManager.default.removeItem(atPath: folder + photo.hash)
      let third = place.device()
      try await third.device.start()
      await eventually("it is fetched again") { place.stored == [photo.hash] }
      #expect(third.story.isEmpty)
      await third.close()
    }
  }

  // MARK: Local notifications

  @Test func `the files of a local request are moved into the store, and a request that is refused leaves them`() async throws {
    try await Self.with({ _ in .silence }) { place in
      let device = place.device { $0.stateLimits.attachmentBytes = 3_000 }
      try await device.device.start()
      let center = device.device.userNotificationCenter
      let folder = place.path + "-files/"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      let photo = Photo()
      func file(_ name: String, _ content: String) throws -> String {
        try content.write(toFile: folder + name, atomically: false, encoding: .utf8)
        return folder + name
      }
      func request(_ paths: String..., identifiers: [Name] = ["a", "b"]) -> NotificationRequest {
        NotificationRequest(
          identifier: "tea", content: NotificationContent(title: "Tea"),
          attachments: zip(identifiers, paths).map { AttachmentSource(identifier: $0, path: $1) })
      }
      let good = try file("good", photo.content)
      let wrong: [(NotificationRequest, DeviceError.Code)] = [
        (request(good, try file("text", "no picture at all, but text")), .badRequest), (request(good, folder + "none"), .attachment),
        (request(good, folder), .badRequest),
        (request(good, try file("large", "GIF89a" + String(repeating: "z", count: 4_000))), .attachment),
        (request(good, good, identifiers: ["a", "a"]), .badRequest), (request(good, identifiers: ["a\nb"]), .badRequest),
      ]
      for (request, code) in wrong {
        let error = await #expect(throws: DeviceError.self) { try await center.add(request) }
        #expect(error?.code == code, "\(request.attachments)")
        #expect(FileManager.default.fileExists(atPath: good))
      }
      await eventually("nothing of them stays") { place.stored.isEmpty }
      try await center.add(request(good))
      await device.expect("shown tea local")
      #expect(!FileManager.default.fileExists(atPath: good) && place.stored == [photo.hash])
      let size = try await device.device.withAttachment("a", of: "tea") { $0.size }
      #expect(size == photo.size && device.missing.isEmpty)
      // It is replaced by one without.
      try await center.add(NotificationRequest(identifier: "tea", content: NotificationContent(title: "Tea")))
      await eventually("the file goes with the former") { place.stored.isEmpty }
      await device.close()
    }
  }

  // MARK: What decides

  @Test(arguments: 0..<(isComplete ? 20 : 4)) func `any history of files keeps the bound, and what is open, or listed in the database`(
    _ seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    let hashes = (0..<6).map { Photo.media("\($0)").hash }
    var ledger = AttachmentLedger(limit: 100)
    var (files, open, reserved): ([MediaHash: Int], [MediaHash], [Int]) = ([:], [], [])
    // What the lists have after each change; the first so many are durable.
    var (lists, durable): ([Set<MediaHash>], Int) = ([[]], 0)
    for step in 0..<800 {
      let hash = hashes[Int.random(in: 0..<6, using: &random)]
      switch Int.random(in: 0..<8, using: &random) {
      case 0:
        let size = Int.random(in: 0...60, using: &random)
        let fits = files.values.reduce(0, +) + reserved.reduce(0, +) + size <= 100
        #expect(ledger.reserve(size) == fits, "step \(step)")
        if fits { reserved.append(size) }
      case 1:
        guard let size = reserved.popLast() else { continue }
        let isWritten = Bool.random(using: &random) && files[hash] == nil
        ledger.end(size, isWritten ? Media(hash: hash, type: .gif, size: size) : nil)
        ledger.list(lists[lists.count - 1])
        if isWritten { files[hash] = size }
      case 2:
        let media = files[hash].map { Media(hash: hash, type: .gif, size: $0) }
        #expect(ledger.open(media ?? Media(hash: hash, type: .gif, size: 1)) == (media != nil), "step \(step)")
        if let size = files[hash] {
          #expect(!ledger.open(Media(hash: hash, type: .png, size: size)) && !ledger.open(Media(hash: hash, type: .gif, size: size + 1)))
        }
        if files[hash] != nil { open.append(hash) }
      case 3:
        ledger.pin(hash)
        open.append(hash)
      case 4:
        guard let index = open.indices.randomElement(using: &random) else { continue }
        ledger.close(open.remove(at: index))
      case 5:
        let listed = Set(hashes.filter { _ in Int.random(in: 0..<3, using: &random) == 0 })
        #expect(ledger.listsChanged() == lists.count, "step \(step)")
        ledger.list(listed)
        lists.append(listed)
      case 6:
        durable = Int.random(in: durable..<lists.count, using: &random)
        ledger.listsAreDurable(durable)
      default:
        // The database has any of these lists, if the process ends now.
        let needed = lists[durable...].reduce(into: Set(open)) { $0.formUnion($1) }
        let hadRemovable = ledger.hasRemovable
        let removed = ledger.sweep()
        #expect(removed.isSubset(of: files.keys) && removed.isDisjoint(with: needed), "step \(step)")
        #expect(hadRemovable == !removed.isEmpty)
        for hash in removed { files[hash] = nil }
        if durable == lists.count - 1 { #expect(needed.isSuperset(of: files.keys), "step \(step)") }
      }
      #expect(ledger.hashes == Set(files.keys) && ledger.bytes == files.values.reduce(0, +) + reserved.reduce(0, +), "step \(step)")
      #expect(ledger.bytes <= 100)
    }
  }

  @Test(arguments: 0..<(isComplete ? 20 : 4)) func `each event that waits is told once, in time, and not after its notification has gone`(
    _ seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    let files = (0..<4).map { Photo.media("\($0)") }
    var showings = Showings<Int>()
    var naive: [(event: Int, identifier: Name, missing: Set<Media>, deadline: UInt64)] = []
    var (listed, remembered): ([Name: NotificationShowing], [Name: UInt64]) = ([:], [:])
    var now: UInt64 = 0
    for step in 0..<400 {
      now += UInt64.random(in: 0...2, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0..<3:
        let identifier = Name("\(Int.random(in: 0..<8, using: &random))")
        let missing = Set(files.filter { _ in Bool.random(using: &random) } + [files[0]])
        let showing = NotificationShowing(identifier: identifier, id: Name("\(step)"), takenAt: 0)
        // The list has the update before its event is told.
        listed[identifier] = showing
        showings.keep(Set(listed.values))
        // An update waits no longer than what it replaces would have.
        let former = naive.first { $0.identifier == identifier }?.deadline ?? .max
        if former != .max { remembered[identifier] = min(former, remembered[identifier] ?? .max) }
        naive.removeAll { $0.identifier == identifier }
        guard Int.random(in: 0..<4, using: &random) > 0 else {
          remembered[identifier] = nil
          showings.add(step, showing, missing: [], deadline: now + 20)
          #expect(showings.take(showing) == step && showings.take(showing) == nil)
          continue
        }
        naive.append((step, identifier, missing, min(now + 20, remembered.removeValue(forKey: identifier) ?? .max)))
        showings.add(step, showing, missing: missing, deadline: now + 20)
      case 3:
        let file = files[Int.random(in: 0..<4, using: &random)]
        for index in naive.indices { naive[index].missing.remove(file) }
        let ready = naive.filter(\.missing.isEmpty).map(\.event)
        naive.removeAll(where: \.missing.isEmpty)
        #expect(showings.ended(file).map { showings.take($0) } == ready, "step \(step)")
      case 4:
        let gone = Name("\(Int.random(in: 0..<8, using: &random))")
        naive.removeAll { $0.identifier == gone }
        (listed[gone], remembered[gone]) = (nil, nil)
        showings.keep(Set(listed.values))
      default:
        let over = naive.filter { $0.deadline <= now }.map(\.event)
        naive.removeAll { $0.deadline <= now }
        #expect(showings.over(now: now).map { showings.take($0.showing) } == over, "step \(step)")
      }
      #expect(showings.deadline == naive.map(\.deadline).min(), "step \(step)")
    }
    #expect(showings.waiting.map(\.event) == naive.map(\.event))
  }
}

/// A fetcher whose files never come, at a time that stands still.
private actor StandingFetcher: LoopActor {
  static let now: Int64 = 1_700_000_000_000

  nonisolated let loop = EventLoop(name: "device")
  private var fetcher: AttachmentFetcher?
  private var kept: [DeliveredNotification] = []
  private(set) var told: [String] = []
  private var removesAtMissing = false

  /// The program removes each notification of which an attachment is missing, when it is told.
  func removeAtMissing() { removesAtMissing = true }

  func take(_ frame: JSONValue) throws {
    let notification = DeliveredNotification(
      try notifyFrame(frame), takenAt: Self.now, isLocal: false, ServiceExtensions(chain: nil, locale: nil))
    kept.append(notification)
    let fetcher =
      fetcher
      ?? AttachmentFetcher(
        on: loop, AttachmentFolder(path: "/none"), milliseconds: 3_600_000, AttachmentLedger(limit: 1 << 20),
        .init(
          tell: { event in self.tell(event) }, kept: { self.kept }, now: { Self.now }, askForLink: { _ in }, download: { _ in },
          sweep: {}))
    self.fetcher = fetcher
    _ = fetcher.listsChanged()
    fetcher.take(.shown(notification))
  }

  func close() {
    fetcher?.close()
    fetcher = nil
  }

  private func tell(_ event: DeviceEvent) {
    switch event {
    case .shown(let notification): told.append("shown \(notification.identifier)")
    case .attachmentMissing(let notification, let attachment, let failure):
      told.append("missing \(notification) \(attachment) \(failure.reason.rawValue)")
      guard removesAtMissing else { return }
      kept.removeAll { $0.identifier == notification }
      _ = fetcher?.listsChanged()
    default: break
    }
  }
}

extension DeviceUnderTest {
  /// The attachments that were left out, as `order-7 photo late`.
  fileprivate var missing: [String] {
    events.compactMap { event -> String? in
      if case .attachmentMissing(let notification, let attachment, let failure) = event {
        "\(notification) \(attachment) \(failure.reason.rawValue)"
      } else {
        nil
      }
    }
  }
}

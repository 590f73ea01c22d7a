import JSON
import TestSupport
import Testing

/// A team's own worker binary, with service extensions in Swift compiled in: whatever one does, it costs a fallback and not the worker.
@Suite struct OwnExtensionTests {
  private static let mutable = #"{"aps":{"alert":{"title":"News","body":"Hello"},"mutable-content":1}}"#

  /// What `extensions try` says of a payload, in a binary with extensions of its own.
  private static func attempt(
    _ product: String, _ extensions: String, _ payload: String = mutable, _ flags: [String] = []
  ) async throws -> (status: Int32, lines: [JSONValue], errors: String) {
    try await CarillonCommand.with { carillon in
      let file = try carillon.file("extensions.json", #"{"applications":{"com.example.shop":[\#(extensions)]}}"#)
      let result = try await carillon.run(
        ["extensions", "try", file, "--app", "com.example.shop", "--payload", try carillon.file("payload.json", payload), "--json"] + flags,
        program: CarillonCommand.product(product))
      return (result.status, try result.lines.map { try JSONValue(parsing: $0) }, result.errors)
    }
  }

  private static let deeds = [
    ("fine", 30_000, "modified", "com.example.shop fine", ""), ("trap", 30_000, "failed", "News", "its program has ended by the signal"),
  ]
  private static let furtherDeeds = [
    ("print", 30_000, "modified", "com.example.shop print", ""),
    ("throw", 30_000, "failed", "News", "its program says that it has failed: it does not want to"),
    ("loop", 2_000, "timed-out", "News", "its time was up"),
  ]

  @Test(arguments: deeds + (isComplete ? furtherDeeds : []))
  func whateverItDoesTheNotificationIsShown(
    _ mode: String, _ budget: Int, _ state: String, _ title: String, _ reason: String
  ) async throws {
    // A backtrace of a program that traps takes half a minute on a busy machine.
    let environment = #"{"SWIFT_BACKTRACE":"enable=no"}"#
    let told = #"{"name":"own","use":"told","budget":\#(budget),"environment":\#(environment),"settings":{"mode":"\#(mode)"}}"#
    let other = #"{"name":"mark","use":"set-and-copy","set":{"/aps/thread-id":"t"}}"#
    let (status, lines, errors) = try await Self.attempt("OwnExtensions", "\(told),\(other)")
    #expect(lines.map { $0["state"] } == [.string(state), "modified"], "it said: \(errors)")
    #expect(lines.last?["payload"]?["aps"]?["alert"]?["title"] == .string(title))
    #expect(lines.last?["payload"]?["aps"]?["thread-id"] == "t")
    #expect(lines.first?["reason"]?.stringValue?.contains(reason) ?? reason.isEmpty, "\(lines)")
    #expect(status == (reason.isEmpty ? 0 : 1))
  }

  /// It has a second between the warning and the end: a machine that stands still then may take it, so it gets some chances.
  @Test(
    .onlyInAll("it is about time: a second is left to it"),
    arguments: [("wait", "modified", "in a hurry"), ("half", "best-attempt", "half 1000")])
  func whatItHasWhenItsTimeExpiresIsShown(_ mode: String, _ state: String, _ title: String) async throws {
    let told = #"{"name":"own","use":"told","budget":10000,"settings":{"mode":"\#(mode)"}}"#
    var seen: [[JSONValue?]] = []
    while seen.count < 4, seen.last != [.string(state), .string(title)] {
      let line = try await Self.attempt("OwnExtensions", told).lines.first
      seen.append([line?["state"], line?["payload"]?["aps"]?["alert"]?["title"]])
    }
    #expect(seen.last == [.string(state), .string(title)], "\(seen)")
  }

  @Test func anExtensionThatIsCalledForEachDeviceIsToldWhose() async throws {
    let token = String(repeating: "ab", count: 32)
    for (scope, flags, title) in [
      ("request", ["--device", token], "nobody"), ("device", ["--device", token], token), ("device", [], String(repeating: "0", count: 64)),
    ] {
      let told = #"{"name":"own","use":"told","budget":30000,"per":"\#(scope)","settings":{"mode":"whose"}}"#
      let (_, lines, errors) = try await Self.attempt("OwnExtensions", told, Self.mutable, flags)
      #expect(lines.first?["payload"]?["aps"]?["alert"]?["title"] == .string("com.example.shop \(title)"), "it said: \(errors)")
    }
  }

  @Test func settingsThatItRefusesAreItsFailure() async throws {
    let (status, lines, _) = try await Self.attempt("OwnExtensions", #"{"name":"own","use":"told","budget":30000}"#)
    #expect(status == 1)
    #expect(lines.first?["reason"] == "its program says that it has failed: it refuses its settings: there is no mode")
  }

  @Test func onlyTheBinaryThatBringsItKnowsIt() async throws {
    let own = #"{"name":"own","use":"told"}"#
    let (status, _, errors) = try await Self.attempt("carillon", own)
    #expect(status == 2)
    #expect(errors.contains("This must be one of: set-and-copy, decrypt, localize, attach, webhook, child."), "it said: \(errors)")
    try await CarillonCommand.with { carillon in
      #expect(try await carillon.run(["--help"]).output.contains("Service extensions of this binary") == false)
      let help = try await carillon.run(["--help"], program: CarillonCommand.product("OwnExtensions"))
      #expect(help.output.contains("Service extensions of this binary"))
      let other = try await carillon.run(["extension", "other"], program: CarillonCommand.product("OwnExtensions"))
      #expect(other.status == 2)
      #expect(other.errors.contains("this binary has no extension other; it has: told"), "it said: \(other.errors)")
    }
  }

  /// The sample of Apple's documentation: it says where the file is, and the extension behind it fetches that.
  @Test func theSampleAttachesWhatItsPayloadNames() async throws {
    let gif = "GIF89a" + String(repeating: "x", count: 100)
    try await TestFolder.with { folder in
      try await ScriptedServer.with({ _ in .reply("HTTP/1.1 200 OK\r\ncontent-length: \(gif.utf8.count)\r\n\r\n\(gif)") }) { server, port in
        let extensions = #"""
          {"name":"own","use":"my-attachment","budget":30000},
          {"name":"fetch","use":"attach","hosts":["127.0.0.1:\#(port)"],"networks":["127.0.0.0/8"],"plaintext":true,
           "budget":30000,"timeout":30000}
          """#
        let payload = #"{"aps":{"alert":"News","mutable-content":1},"my-attachment":"http://127.0.0.1:\#(port)/cat.gif"}"#
        let (status, lines, errors) = try await Self.attempt("MyAttachment", extensions, payload, ["--media", "\(folder.path)/media"])
        #expect(status == 0 && lines.map { $0["state"] } == ["modified", "modified"], "it said: \(errors) \(lines)")
        let attachment = lines.last?["attachments"]?[0]
        #expect(attachment?["identifier"] == "myAttachment" && attachment?["type"] == "image/gif" && attachment?["size"] == 106)
        #expect(lines.last?["payload"]?["my-attachment"] == nil)
        #expect(TestFolder.count(of: "\(folder.path)/media/\(attachment?["hash"]?.stringValue?.prefix(2) ?? "")") > 0)
      }
    }
  }

  /// The sample of Apple's documentation; sealed by Python's `http-ece`, with the key of sixteen zeros and no key id.
  @Test func theSampleShowsWhatWasEncrypted() async throws {
    let sealed = "K9y5dFnWoLLmNBsGjINfaQAAEAAAS9V7MhcDp7K/TlJSDOdp0XRDxF+TbhwVnT5lNuE2huw="
    let key = #"{"name":"open","use":"encrypted-message","budget":30000,"settings":{"key":"AAAAAAAAAAAAAAAAAAAAAA"}}"#
    func payload(_ sealed: String) -> String {
      #"{"aps":{"alert":{"title":"News","body":"You have a message"},"mutable-content":1},"ENCRYPTED":"\#(sealed)"}"#
    }
    let opened = try await Self.attempt("EncryptedMessage", key, payload(sealed))
    #expect(opened.lines.map { $0["state"] } == ["modified"], "it said: \(opened.errors)")
    #expect(opened.lines.last?["payload"]?["aps"]?["alert"]?["body"] == "Meet me at nine")
    #expect(opened.lines.last?["payload"]?["ENCRYPTED"] == nil)
    let cut = try await Self.attempt("EncryptedMessage", key, payload(String(sealed.dropLast(4))))
    #expect(cut.lines.map { $0["state"] } == ["best-attempt"])
    #expect(cut.lines.last?["payload"]?["aps"]?["alert"] == ["title": "News", "body": "You have a message", "subtitle": "(Encrypted)"])
  }
}

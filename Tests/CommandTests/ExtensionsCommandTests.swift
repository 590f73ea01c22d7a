import Extensions
import Foundation
import JSON
import TestSupport
import Testing
import Worker

@testable import Command

/// `carillon extensions check` and `carillon extensions try`, and what the stage says of a file that is wrong.
@Suite struct ExtensionsCommandTests {
  private static let marking = #"{"name":"mark","use":"set-and-copy","prefix":{"/aps/alert/title":"[modified] "}}"#
  /// Fails where the alert is a text.
  private static let naming = #"{"name":"name","use":"set-and-copy","set":{"/sender/name":"Ada"}}"#
  private static let mutable = #"{"aps":{"alert":{"title":"Order","body":"It is on its way"},"mutable-content":1}}"#

  /// The text of a file in which the application com.example.shop has these extensions.
  private static func file(_ extensions: String...) -> String {
    #"{"applications":{"com.example.shop":[\#(extensions.joined(separator: ","))]}}"#
  }

  // MARK: check

  @Test func whatIsInOrderIsListed() async throws {
    try await CarillonCommand.with { carillon in
      _ = try carillon.file("keys.json", #"{"keys":[{"id":"one","key":"BwcHBwcHBwcHBwcHBwcHBw"}]}"#)
      let opening = #"{"name":"open","use":"decrypt","keys":"keys.json"}"#
      let path = try carillon.file(
        "extensions.json", #"{"applications":{"com.example.shop":[\#(opening),\#(Self.marking)],"com.example.mail":[\#(Self.marking)]}}"#)
      let text = try await carillon.run(["extensions", "check", path])
      #expect(text.status == 0 && text.errors.isEmpty, "it said: \(text.errors)")
      #expect(text.lines == ["com.example.mail: mark", "com.example.shop: open, mark"])
      let json = try await carillon.run(["extensions", "check", path, "--json"])
      #expect(json.status == 0, "it said: \(json.errors)")
      let lines = try json.lines.map { try JSONValue(parsing: $0) }
      #expect(
        lines == [
          ["application": "com.example.mail", "extensions": ["mark"]],
          ["application": "com.example.shop", "extensions": ["open", "mark"]],
        ])
      let empty = try await carillon.run(["extensions", "check", try carillon.file("empty.json", "{}")])
      #expect(empty.status == 0 && empty.lines.isEmpty)
      let said = "the file is in order, and no application has extensions that run in the place workers"
      #expect(empty.errors.contains(said), "it said: \(empty.errors)")
    }
  }

  @Test(
    arguments: [
      ("{", "line 1, column 2: "), ("[]", "This must be an object."),
      (#"{"aplications":{}}"#, "aplications: There is no such setting here; there are: applications."),
      (#"{"applications":{"a":[]}}"#, #"applications["a"]: The extensions of an application are a list of 1 to 8 objects."#),
      (file(#"{"use":"decrypt"}"#), #"applications["com.example.shop"][0].name: This member is required."#),
      (
        file(marking, marking),
        #"applications["com.example.shop"][1].name: The extensions of an application have different names."#
      ),
      (
        file(#"{"name":"a","use":"none"}"#),
        #"applications["com.example.shop"][0].use: This must be one of: set-and-copy, decrypt, localize, attach, webhook, child."#
      ),
      (
        file(#"{"name":"a","use":"webhook"}"#), #"applications["com.example.shop"][0].url: This member is required."#
      ),
      (
        file(marking, #"{"name":"a","use":"set-and-copy","set":{"title":1}}"#),
        #"applications["com.example.shop"][1].set["title"]: A place is a JSON pointer like /aps/alert/title."#
      ),
      (
        file(#"{"name":"open","use":"decrypt","keys":"keys.json"}"#),
        #"applications["com.example.shop"][0].keys: FOLDER/keys.json: there is no such file"#
      ),
    ])
  func whatIsWrongIsSaidWithItsPlaceAndItsRule(text: String, error: String) async throws {
    try await TestFolder.with { folder in
      let path = try folder.write("extensions.json", text)
      let error = path + ": " + error.replacing("FOLDER", with: folder.path)
      let payload = try folder.write("payload.json", Self.mutable)
      for command in [["extensions", "check", path], ["extensions", "try", path, "--app", "com.example.shop", "--payload", payload]] {
        let refusal = try await Typed.refusal(command)
        #expect(refusal.code == .wrongUsage && refusal.text.contains(error), "it says: \(refusal.text)")
      }
    }
  }

  /// The file may be named without a slash, and a program of PATH may have the same name: it must never see a payload.
  @Test func `a program is the one in the file's folder, not one of PATH`() async throws {
    try await TestFolder.with { folder in
      func program(_ title: String) -> String {
        """
        #!/usr/bin/env python3
        import json, sys
        for line in sys.stdin:
            message = json.loads(line)
            if message["method"] == "didReceive":
                patch = {"aps": {"alert": {"title": "\(title)"}}}
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"patch": patch}}), flush=True)
        """
      }
      try folder.write("here/greet", program("of the folder"), isExecutable: true)
      try folder.write("path/greet", program("of PATH"), isExecutable: true)
      try folder.write("here/extensions.json", Self.file(#"{"name":"greet","use":"child","program":"greet","budget":30000}"#))
      try folder.write("here/payload.json", Self.mutable)
      let line = "cd \(folder.path)/here && exec \(CarillonCommand.program.path) extensions try extensions.json"
      let result = try await CarillonCommand.with { carillon in
        try await carillon.run(
          ["-c", "\(line) --app com.example.shop --payload payload.json"],
          environment: ["PATH": "\(folder.path)/path:/usr/local/bin:/usr/bin:/bin"], program: URL(fileURLWithPath: "/bin/sh"))
      }
      #expect(result.status == 0, "it said: \(result.errors)\(result.output)")
      #expect(result.output.contains(#""title":"of the folder""#), "it printed: \(result.output)")
    }
  }

  @Test func `check refuses an address that try would refuse`() async throws {
    try await TestFolder.with { folder in
      try folder.write("keys.json", #"{"keys":[{"id":"a","key":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"}]}"#)
      let webhook = #"{"name":"ask","use":"webhook","keys":"keys.json","plaintext":true,"url":"http://127.0.0.1/ask""#
      let path = try folder.write("extensions.json", Self.file(webhook + "}"))
      let refusal = try await Typed.refusal(["extensions", "check", path])
      #expect(refusal.code == .wrongUsage)
      #expect(
        refusal.text.contains(#"[0].url: 127.0.0.1 must not be connected to (loopback): "networks" must admit it"#),
        "it says: \(refusal.text)")
      try folder.write("extensions.json", Self.file(webhook + #","networks":["127.0.0.0/8"]}"#))
      #expect(try ExtensionsInForce.read(path).all.count == 1)
    }
  }

  @Test func aKeyThatIsWrongIsNamedAndNotShown() async throws {
    try await TestFolder.with { folder in
      let keys = try folder.write("keys.json", #"{"keys":[{"id":"one","key":"c2hvcnQ"}]}"#)
      let path = try folder.write("extensions.json", Self.file(#"{"name":"open","use":"decrypt","keys":"keys.json"}"#))
      let refusal = try await Typed.refusal(["extensions", "check", path])
      #expect(refusal.code == .wrongUsage)
      #expect(
        refusal.text.contains("[0].keys: \(keys): keys[0].key: A key has 16 to 64 bytes; this one has 5."), "it says: \(refusal.text)")
      #expect(!refusal.text.contains("c2hvcnQ"))
    }
  }

  @Test func aMissingFileIsNamed() async throws {
    let refusal = try await Typed.refusal(["extensions", "check", "/nowhere/none.json"])
    #expect(
      refusal.code == .wrongUsage && refusal.text.contains("/nowhere/none.json: there is no such file"), "it says: \(refusal.text)")
  }

  @Test func onlyARegularFileIsRead() async throws {
    try await TestFolder.with { folder in
      let fifo = folder.path + "/fifo"
      try #require(mkfifo(fifo, 0o600) == 0)
      for path in [fifo, folder.path, "/dev/zero"] {
        let refusal = try await Typed.refusal(["extensions", "check", path])
        #expect(
          refusal.code == .wrongUsage && refusal.text.contains("\(path): only a regular file is read"), "it says: \(refusal.text)")
      }
    }
  }

  @Test(arguments: isComplete ? ["transform", "rebuild", "up"] : ["transform"])
  func aWorkerDoesNotStartWithAFileThatIsWrong(command: String) async throws {
    try await CarillonCommand.with { carillon in
      let path = try carillon.file("extensions.json", #"{"applications":7}"#)
      let result = try await carillon.run([command] + (command == "up" ? [] : InputFileTests.worker) + ["--extensions", path])
      #expect(result.status == 2 && result.output.isEmpty)
      #expect(result.errors.contains("--extensions: \(path): applications: This must be an object."), "it said: \(result.errors)")
    }
  }

  // MARK: try

  /// Tries com.example.shop's extensions on a payload.
  private func attempt(
    _ folder: TestFolder, _ extensions: [String], _ payload: String, _ flags: [String] = []
  ) async throws -> (text: [String], attempt: ExtensionAttempt) {
    let attempt = try await ExtensionsCommand.tried(try Typed.values(try arguments(folder, extensions, payload) + flags))
    return (attempt.lines(isJSON: false), attempt)
  }

  private func arguments(
    _ folder: TestFolder, _ extensions: [String], _ payload: String, app: String = "com.example.shop"
  ) throws -> [String] {
    let path = try folder.write("extensions.json", Self.file(extensions.joined(separator: ",")))
    return ["extensions", "try", path, "--app", app, "--payload", try folder.write("payload.json", payload)]
  }

  /// The steps for a program.
  private func steps(_ attempt: ExtensionAttempt) throws -> [JSONValue] {
    try attempt.lines(isJSON: true).map { try JSONValue(parsing: $0) }
  }

  private static let idle = #"{"name":"idle","use":"set-and-copy","prefix":{"/aps/alert/subtitle":"> "}}"#

  @Test func `a process shows what is made of the payload on standard input`() async throws {
    try await CarillonCommand.with { carillon in
      let path = try carillon.file("extensions.json", Self.file(Self.marking))
      let line = ["extensions", "try", path, "--app", "com.example.shop", "--payload", "-"]
      let text = try await carillon.run(line, input: Self.mutable)
      #expect(text.status == 0 && text.errors.isEmpty && text.lines.first?.hasPrefix("mark: modified, ") == true, "it said: \(text.errors)")
      let json = try await carillon.run(line + ["--json"], input: Self.mutable)
      #expect(json.status == 0 && json.lines.count == 1, "it said: \(json.errors)")
      #expect(try JSONValue(parsing: json.output)["state"] == "modified")
      let wrong = try await carillon.run(line, input: "{")
      #expect(wrong.status == 2 && wrong.output.isEmpty && wrong.errors.hasPrefix("carillon: --payload: "), "it said: \(wrong.errors)")
    }
  }

  @Test func eachStepAndTheResultAreShown() async throws {
    try await TestFolder.with { folder in
      let (text, attempt) = try await attempt(folder, [Self.marking, Self.idle], Self.mutable)
      let result = #"{"aps":{"alert":{"title":"[modified] Order","body":"It is on its way"},"mutable-content":1}}"#
      let lines = text.map { $0.replacing(/\d+ µs/, with: "N µs") }
      #expect(lines == ["mark: modified, N µs", "  \(result)", "idle: unchanged, N µs", "result: \(result)"] && !attempt.hasFailed)
      let steps = try steps(attempt)
      #expect(steps.map { $0["extension"] } == ["mark", "idle"])
      #expect(steps.map { $0["state"] } == ["modified", "unchanged"])
      #expect(steps.allSatisfy { ($0["microseconds"]?.integerValue ?? -1) >= 0 && $0["reason"] == nil })
      let payload = try JSONValue(parsing: result)
      #expect(steps.map { $0["payload"] } == [payload, payload])
    }
  }

  @Test func textsAreThoseOfTheLocale() async throws {
    try await TestFolder.with { folder in
      for (locale, text) in [("en", "Hello"), ("de", "Hallo")] {
        try folder.write("texts/\(locale).lproj/Localizable.strings", "\"hello\" = \"\(text) %@\";\n")
      }
      let texts = #"{"name":"texts","use":"localize","strings":"texts","default":"en"}"#
      let payload = #"{"aps":{"alert":{"loc-key":"hello","loc-args":["Ada"]},"mutable-content":1}}"#
      for (flags, body) in [([], "Hello Ada"), (["--locale", "de_AT"], "Hallo Ada")] {
        let lines = try await attempt(folder, [texts], payload, flags).text
        #expect(lines.last == #"result: {"aps":{"alert":{"body":"\#(body)"},"mutable-content":1}}"#)
      }
    }
  }

  @Test func anExtensionThatHasFailedIsANoAndTheOthersGoOn() async throws {
    try await TestFolder.with { folder in
      let payload = #"{"aps":{"alert":{"title":"Order"},"mutable-content":1},"sender":"ada"}"#
      let (lines, attempt) = try await attempt(folder, [Self.naming, Self.marking], payload)
      #expect(attempt.hasFailed)
      #expect(lines.first?.hasPrefix("name: failed, ") == true && lines[at: 1] == "  the payload has no place /sender/name")
      #expect(lines.last == #"result: {"aps":{"alert":{"title":"[modified] Order"},"mutable-content":1},"sender":"ada"}"#)
      let steps = try steps(attempt)
      #expect(steps.map { $0["state"] } == ["failed", "modified"])
      #expect(steps.map { $0["reason"] } == ["the payload has no place /sender/name", nil])
    }
  }

  @Test(
    arguments: [
      (#"{"/aps/alert":{}}"#, "the result has no title, subtitle or body any more; no extension suppresses a notification"),
      (#"{"/aps/badge":-1}"#, "the result breaks a rule: aps.badge: A badge is an integer from 0 to 2147483647"),
      (
        #"{"/more":"\#(String(repeating: "a", count: 20_000))"}"#,
        "the result is much larger than a payload, which has at most 16384 bytes"
      ),
      // Each of these is written as two bytes.
      (#"{"/more":"\#(String(repeating: #"\""#, count: 9_000))"}"#, "the result has 18091 bytes; a payload has at most 16384"),
    ])
  func aResultThatBreaksARuleIsNotUsed(set: String, reason: String) async throws {
    try await TestFolder.with { folder in
      let (lines, attempt) = try await attempt(folder, [#"{"name":"break","use":"set-and-copy","set":\#(set)}"#], Self.mutable)
      #expect(attempt.hasFailed)
      #expect(lines[at: 1]?.contains(reason) == true, "\(lines.first ?? "")\(lines[at: 1]?.prefix(200) ?? "")")
      #expect(lines.last == "result: \(Self.mutable)")
    }
  }

  @Test(
    arguments: [
      #"{"aps":{"alert":{"title":"Order"}}}"#, #"{"aps":{"badge":1,"mutable-content":1}}"#,
      #"{"aps":{"content-available":1,"mutable-content":1}}"#,
    ])
  func whatIsNotMutablePassesNoExtension(payload: String) async throws {
    try await TestFolder.with { folder in
      let refusal = try await Typed.refusal(try arguments(folder, [Self.marking], payload))
      #expect(refusal.code == .answerIsNo)
      #expect(
        refusal.text.contains(#"no extension is called: the payload needs "mutable-content": 1 in aps"#), "it says: \(refusal.text)")
    }
  }

  @Test func anApplicationWithoutExtensionsIsNamed() async throws {
    try await TestFolder.with { folder in
      let refusal = try await Typed.refusal(try arguments(folder, [Self.marking], Self.mutable, app: "com.example.mail"))
      #expect(refusal.code == .answerIsNo)
      #expect(refusal.text.contains("no extension is called: the file has none for com.example.mail"), "it says: \(refusal.text)")
    }
  }

  @Test(arguments: [
    ("{", "--payload: "), ("[]", "--payload: "), (#"{"aps":{"badge":"3"}}"#, "--payload: aps.badge: A badge is an integer"),
  ])
  func aPayloadThatBreaksARuleIsWrongUsage(payload: String, error: String) async throws {
    try await TestFolder.with { folder in
      let refusal = try await Typed.refusal(try arguments(folder, [Self.marking], payload))
      #expect(refusal.code == .wrongUsage && refusal.text.contains(error), "it says: \(refusal.text)")
    }
  }

  @Test(arguments: [
    (["try", "extensions.json", "--payload", "-"], "--app"), (["try", "extensions.json", "--app", "com.example.shop"], "--payload"),
    (["check"], "FILE"),
  ])
  func whatIsMissingIsNamed(words: [String], name: String) async throws {
    let refusal = try await Typed.refusal(["extensions"] + words)
    #expect(refusal.code == .wrongUsage && refusal.text.contains(name), "it says: \(refusal.text)")
  }
}

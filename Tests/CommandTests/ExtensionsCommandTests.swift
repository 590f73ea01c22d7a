import Foundation
import JSON
import TestSupport
import Testing

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
      #expect(text.status == 0, "it said: \(text.errors)")
      #expect(text.lines == ["com.example.mail: mark", "com.example.shop: open, mark"])
      let json = try await carillon.run(["extensions", "check", path, "--json"])
      #expect(json.status == 0, "it said: \(json.errors)")
      let lines = try json.lines.map { try JSONValue(parsing: $0) }
      #expect(
        lines == [
          ["application": "com.example.mail", "extensions": ["mark"]],
          ["application": "com.example.shop", "extensions": ["open", "mark"]],
        ])
    }
  }

  @Test func aFileWithoutExtensionsIsInOrderAndSaysSo() async throws {
    try await CarillonCommand.with { carillon in
      let result = try await carillon.run(["extensions", "check", try carillon.file("extensions.json", "{}")])
      #expect(result.status == 0 && result.lines.isEmpty)
      let said = "the file is in order, and no application has extensions that run in the place workers"
      #expect(result.errors.contains(said), "it said: \(result.errors)")
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
    try await CarillonCommand.with { carillon in
      let path = try carillon.file("extensions.json", text)
      let error = path + ": " + error.replacing("FOLDER", with: carillon.folder.path)
      for command in [["extensions", "check", path], ["extensions", "try", path, "--app", "com.example.shop", "--payload", "-"]] {
        let result = try await carillon.run(command, input: Self.mutable)
        #expect(result.status == 2 && result.errors.contains(error), "it said: \(result.errors)")
        #expect(result.output.isEmpty)
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
    try await CarillonCommand.with { carillon in
      _ = try carillon.file("keys.json", #"{"keys":[{"id":"a","key":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"}]}"#)
      let webhook = #"{"name":"ask","use":"webhook","keys":"keys.json","plaintext":true,"url":"http://127.0.0.1/ask""#
      let path = try carillon.file("extensions.json", Self.file(webhook + "}"))
      let result = try await carillon.run(["extensions", "check", path])
      #expect(result.status == 2, "it said: \(result.errors)")
      #expect(result.errors.contains(#"[0].url: 127.0.0.1 must not be connected to (loopback): "networks" must admit it"#))
      _ = try carillon.file("extensions.json", Self.file(webhook + #","networks":["127.0.0.0/8"]}"#))
      #expect(try await carillon.run(["extensions", "check", path]).status == 0)
    }
  }

  @Test func `check shows texts that would take no argument, and calls the file in order`() async throws {
    try await CarillonCommand.with { carillon in
      let folder = carillon.folder.appending(path: "texts/en.lproj")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try Data(#""ORDER" = "%d parcels";"#.utf8).write(to: folder.appending(path: "Localizable.strings"))
      let path = try carillon.file("extensions.json", Self.file(#"{"name":"words","use":"localize","strings":"texts"}"#))
      let text = try await carillon.run(["extensions", "check", path])
      #expect(text.status == 0, "it said: \(text.errors)")
      #expect(text.lines == ["com.example.shop: words"])
      #expect(text.errors.contains("en.lproj/Localizable.strings:1: %d takes no argument: write %@ or %1$@ for one"))
      let json = try await carillon.run(["extensions", "check", path, "--json"])
      let line = try #require(json.lines.first)
      #expect(try JSONValue(parsing: line)["remarks"]?[0] != nil)
    }
  }

  @Test func aKeyThatIsWrongIsNamedAndNotShown() async throws {
    try await CarillonCommand.with { carillon in
      let keys = try carillon.file("keys.json", #"{"keys":[{"id":"one","key":"c2hvcnQ"}]}"#)
      let path = try carillon.file("extensions.json", Self.file(#"{"name":"open","use":"decrypt","keys":"keys.json"}"#))
      let result = try await carillon.run(["extensions", "check", path])
      #expect(result.status == 2)
      #expect(result.errors.contains("[0].keys: \(keys): keys[0].key: A key has 16 to 64 bytes; this one has 5."))
      #expect(!result.errors.contains("c2hvcnQ"))
    }
  }

  @Test func aMissingFileIsNamed() async throws {
    try await CarillonCommand.with { carillon in
      let path = carillon.folder.appendingPathComponent("none.json").path
      let result = try await carillon.run(["extensions", "check", path])
      #expect(
        result.status == 2 && result.errors.contains("\(path): there is no such file"), "it said: \(result.errors)")
    }
  }

  @Test func onlyARegularFileIsRead() async throws {
    try await CarillonCommand.with { carillon in
      let fifo = carillon.folder.appendingPathComponent("fifo").path
      try #require(mkfifo(fifo, 0o600) == 0)
      for path in [fifo, carillon.folder.path, "/dev/zero"] {
        for command in [["extensions", "check"], ["transform"] + InputFileTests.worker + ["--extensions"]] {
          let result = try await carillon.run(command + [path])
          #expect(result.status == 2 && result.errors.contains("\(path): only a regular file is read"), "it said: \(result.errors)")
        }
      }
    }
  }

  @Test func aWorkerDoesNotStartWithAFileThatIsWrong() async throws {
    try await CarillonCommand.with { carillon in
      let path = try carillon.file("extensions.json", #"{"applications":7}"#)
      for command in [["transform"] + InputFileTests.worker, ["rebuild"] + InputFileTests.worker, ["up"]] {
        let result = try await carillon.run(command + ["--extensions", path])
        #expect(result.status == 2 && result.errors.contains("\(path): applications: This must be an object."), "it said: \(result.errors)")
      }
    }
  }

  // MARK: try

  /// Tries com.example.shop's extensions on a payload.
  private func attempt(
    _ carillon: CarillonCommand, _ extensions: [String], _ payload: String, app: String = "com.example.shop", _ flags: [String] = []
  ) async throws -> CarillonCommand.Result {
    let path = try carillon.file("extensions.json", Self.file(extensions.joined(separator: ",")))
    return try await carillon.run(["extensions", "try", path, "--app", app, "--payload", "-"] + flags, input: payload)
  }

  @Test func eachStepAndTheResultAreShown() async throws {
    try await CarillonCommand.with { carillon in
      let idle = #"{"name":"idle","use":"set-and-copy","prefix":{"/aps/alert/subtitle":"> "}}"#
      let text = try await attempt(carillon, [Self.marking, idle], Self.mutable)
      #expect(text.status == 0, "it said: \(text.errors)")
      let result = #"{"aps":{"alert":{"title":"[modified] Order","body":"It is on its way"},"mutable-content":1}}"#
      let lines = text.lines.map { $0.replacing(/\d+ µs/, with: "N µs") }
      #expect(lines == ["mark: modified, N µs", "  \(result)", "idle: unchanged, N µs", "result: \(result)"])

      let json = try await attempt(carillon, [Self.marking, idle], Self.mutable, ["--json"])
      #expect(json.status == 0, "it said: \(json.errors)")
      let steps = try json.lines.map { try JSONValue(parsing: $0) }
      #expect(steps.map { $0["extension"] } == ["mark", "idle"])
      #expect(steps.map { $0["state"] } == ["modified", "unchanged"])
      #expect(steps.allSatisfy { ($0["microseconds"]?.integerValue ?? -1) >= 0 && $0["reason"] == nil })
      let payload = try JSONValue(parsing: result)
      #expect(steps.map { $0["payload"] } == [payload, payload])
    }
  }

  @Test func thePayloadMayBeAFile() async throws {
    try await CarillonCommand.with { carillon in
      let path = try carillon.file("extensions.json", Self.file(Self.marking))
      let payload = try carillon.file("payload.json", Self.mutable)
      let result = try await carillon.run(["extensions", "try", path, "--app", "com.example.shop", "--payload", payload])
      #expect(result.status == 0 && result.lines.first?.hasPrefix("mark: modified") == true, "it said: \(result.errors)")
    }
  }

  @Test func textsAreThoseOfTheLocale() async throws {
    try await CarillonCommand.with { carillon in
      for (locale, text) in [("en", "Hello"), ("de", "Hallo")] {
        let folder = carillon.folder.appendingPathComponent("texts/\(locale).lproj")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("\"hello\" = \"\(text) %@\";\n".utf8).write(to: folder.appendingPathComponent("Localizable.strings"))
      }
      let texts = #"{"name":"texts","use":"localize","strings":"texts","default":"en"}"#
      let payload = #"{"aps":{"alert":{"loc-key":"hello","loc-args":["Ada"]},"mutable-content":1}}"#
      for (flags, body) in [([], "Hello Ada"), (["--locale", "de_AT"], "Hallo Ada")] {
        let result = try await attempt(carillon, [texts], payload, flags)
        #expect(result.status == 0, "it said: \(result.errors)")
        #expect(result.lines.last == #"result: {"aps":{"alert":{"body":"\#(body)"},"mutable-content":1}}"#)
      }
    }
  }

  @Test func anExtensionThatHasFailedIsANoAndTheOthersGoOn() async throws {
    try await CarillonCommand.with { carillon in
      let payload = #"{"aps":{"alert":{"title":"Order"},"mutable-content":1},"sender":"ada"}"#
      let text = try await attempt(carillon, [Self.naming, Self.marking], payload)
      #expect(text.status == 1, "it said: \(text.errors)")
      #expect(
        text.lines.first?.hasPrefix("name: failed, ") == true && text.lines.dropFirst().first == "  the payload has no place /sender/name")
      #expect(text.lines.last == #"result: {"aps":{"alert":{"title":"[modified] Order"},"mutable-content":1},"sender":"ada"}"#)

      let json = try await attempt(carillon, [Self.naming, Self.marking], payload, ["--json"])
      #expect(json.status == 1)
      let steps = try json.lines.map { try JSONValue(parsing: $0) }
      #expect(steps.map { $0["state"] } == ["failed", "modified"])
      #expect(steps.map { $0["reason"] } == ["the payload has no place /sender/name", nil])
    }
  }

  @Test(
    arguments: [
      (#"{"/aps/alert":{}}"#, "the result has no title, subtitle or body any more; no extension suppresses a notification"),
      (#"{"/aps/badge":-1}"#, "the result breaks a rule: aps.badge: A badge is an integer from 0 to 2147483647"),
    ])
  func aResultThatBreaksARuleIsNotUsed(set: String, reason: String) async throws {
    try await CarillonCommand.with { carillon in
      let result = try await attempt(carillon, [#"{"name":"break","use":"set-and-copy","set":\#(set)}"#], Self.mutable)
      #expect(result.status == 1)
      #expect(result.output.contains(reason), "it printed: \(result.output)")
      #expect(result.lines.last == "result: \(Self.mutable)")
    }
  }

  @Test(
    arguments: [
      (String(repeating: "a", count: 20_000), "the result is much larger than a payload, which has at most 16384 bytes"),
      // Each of these is written as two bytes.
      (String(repeating: #"\""#, count: 9_000), "the result has 18091 bytes; a payload has at most 16384"),
    ])
  func aResultHasSixteenKibibytesAtMost(text: String, reason: String) async throws {
    try await CarillonCommand.with { carillon in
      let result = try await attempt(carillon, [#"{"name":"long","use":"set-and-copy","set":{"/more":"\#(text)"}}"#], Self.mutable)
      #expect(result.status == 1)
      #expect(result.output.contains(reason), "it printed: \(result.output.prefix(200))")
      #expect(result.lines.last == "result: \(Self.mutable)")
    }
  }

  @Test(
    arguments: [
      #"{"aps":{"alert":{"title":"Order"}}}"#, #"{"aps":{"badge":1,"mutable-content":1}}"#,
      #"{"aps":{"content-available":1,"mutable-content":1}}"#,
    ])
  func whatIsNotMutablePassesNoExtension(payload: String) async throws {
    try await CarillonCommand.with { carillon in
      let result = try await attempt(carillon, [Self.marking], payload)
      #expect(result.status == 1 && result.lines.isEmpty)
      #expect(
        result.errors.contains(#"no extension is called: the payload needs "mutable-content": 1 in aps"#), "it said: \(result.errors)")
    }
  }

  @Test func anApplicationWithoutExtensionsIsNamed() async throws {
    try await CarillonCommand.with { carillon in
      let result = try await attempt(carillon, [Self.marking], Self.mutable, app: "com.example.mail")
      #expect(result.status == 1 && result.lines.isEmpty)
      #expect(result.errors.contains("no extension is called: the file has none for com.example.mail"), "it said: \(result.errors)")
    }
  }

  @Test(arguments: [
    ("{", "--payload: "), ("[]", "--payload: "), (#"{"aps":{"badge":"3"}}"#, "--payload: aps.badge: A badge is an integer"),
  ])
  func aPayloadThatBreaksARuleIsWrongUsage(payload: String, error: String) async throws {
    try await CarillonCommand.with { carillon in
      let result = try await attempt(carillon, [Self.marking], payload)
      #expect(result.status == 2 && result.lines.isEmpty)
      #expect(result.errors.contains(error), "it said: \(result.errors)")
    }
  }

  @Test func whatIsMissingIsNamed() async throws {
    try await CarillonCommand.with { carillon in
      let path = try carillon.file("extensions.json", Self.file(Self.marking))
      let app = try await carillon.run(["extensions", "try", path, "--payload", "-"], input: Self.mutable)
      #expect(app.status == 2 && app.errors.contains("--app"), "it said: \(app.errors)")
      let payload = try await carillon.run(["extensions", "try", path, "--app", "com.example.shop"])
      #expect(payload.status == 2 && payload.errors.contains("--payload"), "it said: \(payload.errors)")
      let file = try await carillon.run(["extensions", "check"])
      #expect(file.status == 2 && file.errors.contains("FILE"), "it said: \(file.errors)")
    }
  }
}

import Extensions
import JSON
import Notifications
import TestSupport
import Testing

@Suite struct ExtensionsFileTests {
  private func error(_ text: String) -> String? {
    do {
      _ = try ExtensionsFile(parsing: Array(text.utf8))
      return nil
    } catch {
      return "\(error)"
    }
  }

  private static let mark = #"{"name":"mark","use":"set-and-copy","set":{"/x":1}}"#

  @Test func aFileGivesEachApplicationItsChain() throws {
    let file = try ExtensionsFile(
      parsing: Array(
        #"{"applications":{"b":[\#(Self.mark)],"a":[\#(Self.mark),{"name":"again","use":"set-and-copy","set":{"/y":1}}]}}"#.utf8))
    #expect(file.all.map(\.application) == ["a", "b"])
    #expect(file.chain(application: NameHash.hash("a"))?.steps.map(\.name) == ["mark", "again"])
    #expect(file.chain(application: NameHash.hash("c")) == nil)
    #expect(try ExtensionsFile(parsing: Array("{}".utf8)).isEmpty)
  }

  /// Each place reads its own: the workers have no key of the device's.
  @Test func anExtensionRunsInOnePlaceAndTheOtherReadsNoneOfItsFiles() throws {
    let device = #"{"name":"open","use":"decrypt","keys":"/no/such/keys.json","place":"device"}"#
    let text = #"{"applications":{"a":[\#(device),\#(Self.mark)],"b":[\#(device)]}}"#
    let workers = try ExtensionsFile(parsing: Array(text.utf8))
    #expect(workers.all.map(\.application) == ["a"])
    #expect(workers.all.first?.steps.map(\.name) == ["mark"])
    do {
      _ = try ExtensionsFile(parsing: Array(text.utf8), at: .device)
      Issue.record("the device has no such key file")
    } catch { #expect("\(error)".contains(#"applications["a"][0].keys: /no/such/keys.json: there is no such file"#), "\(error)") }
    let onDevice = Self.mark.replacing("}}", with: #"},"place":"device"}"#)
    let both = #"{"applications":{"a":[\#(Self.mark.replacing("mark", with: "first")),\#(onDevice)]}}"#
    #expect(try ExtensionsFile(parsing: Array(both.utf8)).all.first?.steps.map(\.name) == ["first"])
    #expect(try ExtensionsFile(parsing: Array(both.utf8), at: .device).all.first?.steps.map(\.name) == ["mark"])
    let child = #"{"applications":{"a":[{"name":"x","use":"child","program":"/bin/sh","place":"device"}]}}"#
    for place in ExtensionsFile.Place.allCases {
      #expect(throws: FieldError.self) { try ExtensionsFile(parsing: Array(child.utf8), at: place) }
    }
  }

  /// Once for a request, and for some of those who get it only behind that.
  @Test func anExtensionThatIsCalledForSomeStandsBehindThoseThatAreCalledForAll() throws {
    func file(_ scopes: String...) throws -> ExtensionsFile {
      let steps = scopes.enumerated().map { number, scope in
        #"{"name":"\#(number)","use":"child","program":"/bin/sh","per":"\#(scope)"}"#
      }
      return try ExtensionsFile(parsing: Array(#"{"applications":{"a":[\#(steps.joined(separator: ","))]}}"#.utf8))
    }
    let chain = try #require(try file("request", "device", "device").all.first)
    #expect(chain.called.map(\.name) == ["0"] && chain.varied.map(\.name) == ["1", "2"] && chain.scope == .device)
    #expect(chain.variant(of: "x", "de") != chain.variant(of: "y", "de"))
    let locales = try #require(try file("locale").all.first)
    #expect(locales.variant(of: "x", "de") == locales.variant(of: "y", "de"))
    #expect(locales.variant(of: "x", "de") != locales.variant(of: "x", nil))
    #expect(try file("request").all.first?.variant(of: "x", "de") == nil)
    for wrong in ["locale", "device"] {
      let error = #expect(throws: FieldError.self) { try file(wrong, "request") }
      #expect(error?.field == #"applications["a"][1].use"#)
    }
    #expect(throws: FieldError.self) { try file("locale", "device") }
    let error = #expect(throws: FieldError.self) { try file("person") }
    #expect(error?.description == #"applications["a"][0].per: This must be one of: request, locale, device."#)
  }

  @Test(arguments: [
    ("", "line 1, column 1: JSON, byte 0"),
    ("{\n  \"applications\": {,}}", "line 2, column 20"),
    ("[]", "This must be an object."),
    (#"{"aplications":{}}"#, "aplications: There is no such setting here; there are: applications."),
    (#"{"applications":[]}"#, "applications: This must be an object."),
    (#"{"applications":{},"applications":{}}"#, "applications: A member stands once."),
    (#"{"applications":{"":[\#(mark)]}}"#, #"applications[""]: An application's bundle id has 1 to 255 bytes."#),
    (#"{"applications":{"a":[\#(mark)],"a":[\#(mark)]}}"#, #"applications["a"]: An application stands once."#),
    (#"{"applications":{"a":{}}}"#, #"applications["a"]: The extensions of an application are a list of 1 to 8 objects."#),
    (#"{"applications":{"a":[]}}"#, #"applications["a"]: The extensions of an application are a list of 1 to 8 objects."#),
    (#"{"applications":{"a":[1]}}"#, #"applications["a"][0]: This must be an object."#),
    (#"{"applications":{"a":[{"use":"set-and-copy","set":{"/x":1}}]}}"#, #"applications["a"][0].name: This member is required."#),
    (#"{"applications":{"a":[{"name":"a b","use":"set-and-copy","set":{"/x":1}}]}}"#, "visible ASCII"),
    (#"{"applications":{"a":[{"name":"x","use":"set-and-copy","place":"moon"}]}}"#, "place: This must be one of: workers, device."),
    (#"{"applications":{"a":[\#(mark),\#(mark)]}}"#, #"applications["a"][1].name: The extensions of an application have different names."#),
    (
      #"{"applications":{"a":[{"name":"x","use":"sed"}]}}"#,
      #"applications["a"][0].use: This must be one of: set-and-copy, decrypt, localize, attach, webhook, child."#
    ),
    (#"{"applications":{"a":[{"name":"x","use":"set-and-copy"}]}}"#, "have 1 to 64 changes together"),
    (#"{"applications":{"a":[{"name":"x","use":"set-and-copy","set":{"x":1}}]}}"#, #"set["x"]: A place is a JSON pointer"#),
    (#"{"applications":{"a":[{"name":"x","use":"set-and-copy","set":{"":1}}]}}"#, #"set[""]: A place is a JSON pointer"#),
    (#"{"applications":{"a":[{"name":"x","use":"set-and-copy","copy":{"/x":1}}]}}"#, #"copy["/x"]: The source of a copy"#),
    (#"{"applications":{"a":[{"name":"x","use":"set-and-copy","prefix":{"/x":""}}]}}"#, #"prefix["/x"]: A prefix is a text"#),
    (#"{"applications":{"a":[{"name":"x","use":"set-and-copy","set":{"/x":1},"sets":{}}]}}"#, "sets: There is no such setting here"),
    (#"{"applications":{"a":[{"name":"x","use":"child"}]}}"#, "program: This member is required."),
    (#"{"applications":{"a":[{"name":"x","use":"child","program":"/no/such"}]}}"#, "program: /no/such: No such file or directory."),
    // Not the shell of PATH.
    (#"{"applications":{"a":[{"name":"x","use":"child","program":"sh"}]}}"#, "program: ./sh: No such file or directory."),
    (#"{"applications":{"a":[{"name":"x","use":"child","program":"/etc/passwd"}]}}"#, "/etc/passwd: this user may not execute it"),
    (#"{"applications":{"a":[{"name":"x","use":"child","program":"/tmp"}]}}"#, "/tmp: it is not a regular file."),
    (#"{"applications":{"a":[{"name":"x","use":"child","program":"/bin/sh","arguments":["",1]}]}}"#, "arguments: This must be a list"),
    (#"{"applications":{"a":[{"name":"x","use":"child","program":"/bin/sh","memory":1}]}}"#, "memory: This must be a whole number from 16"),
    (#"{"applications":{"a":[{"name":"x","use":"child","program":"/bin/sh","settings":1}]}}"#, "settings: This must be an object."),
    (#"{"applications":{"a":[{"name":"x","use":"child","program":"/bin/sh","environment":{"A=B":"x"}}]}}"#, "environment: A variable has"),
    (#"{"applications":{"a":[{"name":"x","use":"child","program":"/bin/sh","environment":{"A":1}}]}}"#, "environment: A variable has"),
  ])
  func aWrongFileIsRefusedWithThePlaceAndTheRule(_ text: String, _ expected: String) {
    let said = error(text)
    #expect(said?.contains(expected) == true, "\(said ?? "nothing is wrong")")
  }

  @Test func `an error repeats a name of the file escaped and not at any length`() {
    let name = "\\u001b[2J\u{202E}" + String(repeating: "b", count: 9_000)
    for text in [#"{"\#(name)":1}"#, #"{"applications":{"\#(name)":[]}}"#, #"{"\#(name)":1,"\#(name)":1}"#] {
      let said = error(text) ?? ""
      #expect(said.utf8.count < 1_000 && said.contains("u{1b}[2J") && said.contains("u{202e}bbb"), "\(said.prefix(300))")
      #expect(!said.contains("\u{202E}") && !said.contains("\u{1B}"))
    }
  }
}

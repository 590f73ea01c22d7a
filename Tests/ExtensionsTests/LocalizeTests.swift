import JSON
import Notifications
import Testing

@testable import Extensions

@Suite struct LocalizeTests {
  private static func localize() throws -> Localize {
    let files = [("en", "HELLO = \"Hello %@\"; ONLY = \"only\";"), ("de", "HELLO = \"Hallo %@\";")].map {
      Localization.File(locale: $0, bytes: Array($1.utf8))
    }
    return Localize(try Localization(files, defaultLocale: "en"))
  }

  private func run(_ alert: JSONValue, locale: String?) throws -> ExtensionRun {
    var run = ExtensionRun(MutableContent(payload: ["aps": ["alert": alert]]))
    let request = ExtensionRequest(
      id: NotificationID(high: 1, low: 2), identifier: "i", application: "com.example.shop", expiration: 0, locale: locale)
    run.pass([ExtensionChain.Step(name: "texts", work: try Self.localize())], of: request, ContentRules())
    return run
  }

  @Test func theTextsAreThoseOfTheDevicesLocale() throws {
    let alert: JSONValue = ["title-loc-key": "HELLO", "title-loc-args": ["Ada"], "loc-key": "ONLY"]
    #expect(try run(alert, locale: "de_AT").content.payload == ["aps": ["alert": ["title": "Hallo Ada", "body": "only"]]])
    #expect(try run(alert, locale: nil).content.payload == ["aps": ["alert": ["title": "Hello Ada", "body": "only"]]])
  }

  @Test func aKeyThatNoFileHasIsLeftToTheDevice() throws {
    let run = try run(["loc-key": "OTHER"], locale: "de")
    #expect(run.outcomes.map(\.state) == [.unchanged] && run.content.payload == ["aps": ["alert": ["loc-key": "OTHER"]]])
  }

  @Test func aMissingArgumentLeavesTheContentAsItWas() throws {
    let run = try run(["body": "a text", "title-loc-key": "HELLO"], locale: "de")
    #expect(run.outcomes.map(\.state) == [.failed] && run.outcomes[0].failure?.reason.contains("title-loc-key") == true)
    #expect(run.content.payload == ["aps": ["alert": ["body": "a text", "title-loc-key": "HELLO"]]])
  }

  @Test func localesWithTheSameTextsAreOneVariant() throws {
    let localize = try Self.localize()
    #expect(localize.usesLocale)
    #expect(localize.variant("de_AT") == localize.variant("de"))
    #expect(localize.variant("de") != localize.variant("fr") && localize.variant("fr") == localize.variant(nil))
  }

  @Test func aFolderThatIsNotThereIsNamed() {
    do {
      _ = try ExtensionsFile(
        parsing: Array(#"{"applications":{"a":[{"name":"t","use":"localize","strings":"texts"}]}}"#.utf8), in: "/nowhere")
      Issue.record("it was taken")
    } catch {
      #expect("\(error)" == #"applications["a"][0].strings: /nowhere/texts: cannot be read: No such file or directory"#)
    }
  }
}

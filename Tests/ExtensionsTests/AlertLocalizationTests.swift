import JSON
import Notifications
import Testing

@testable import Extensions

@Suite struct AlertLocalizationTests {
  private static func localize() throws -> Localize {
    let english = #"greeting = "Hello %@"; plain = "Plain"; two = "%2$@ %1$@";"#
    let german = #"greeting = "Hallo %@";"#
    return Localize(
      try Localization(
        [Localization.File(locale: "en", bytes: Array(english.utf8)), Localization.File(locale: "de", bytes: Array(german.utf8))],
        defaultLocale: "en"))
  }

  @Test(arguments: [
    (#"{"loc-key":"greeting","loc-args":["Zoë"]}"#, #"{"body":"Hallo Zoë"}"#),
    (
      #"{"title-loc-key":"plain","subtitle-loc-key":"greeting","subtitle-loc-args":["A"],"loc-key":"two","loc-args":["1","2"]}"#,
      #"{"title":"Plain","subtitle":"Hallo A","body":"2 1"}"#
    ),
    // The text stands where its members stood, and the others stay.
    (#"{"launch-image":"x","loc-args":["A","B"],"loc-key":"greeting","x":1}"#, #"{"launch-image":"x","body":"Hallo A","x":1}"#),
    (#"{"title-loc-args":[],"body":"old","title":"old","title-loc-key":"plain"}"#, #"{"body":"old","title":"Plain"}"#),
    // A known key beside an unknown one.
    (
      #"{"title-loc-key":"unknown","title-loc-args":["A"],"loc-key":"plain"}"#,
      #"{"title-loc-key":"unknown","title-loc-args":["A"],"body":"Plain"}"#
    ),
    // Nothing to do.
    (#"{"loc-key":"unknown","loc-args":["A"],"body":"for others"}"#, nil), (#"{"loc-key":"unknown","loc-args":[1]}"#, nil),
    (#"{"title":"T","body":"B"}"#, nil), (#"{"loc-key":1}"#, nil), (#"{"loc-args":["A"]}"#, nil), (#"{}"#, nil), (#""text""#, nil),
    ("null", nil),
  ])
  func aKnownKeyBecomesItsText(alert: String, expected: String?) throws {
    let localize = try Self.localize()
    var value = try JSONValue(parsing: alert)
    #expect(try localize.localize(&value, locale: "de_AT", limit: 100) == (expected != nil))
    #expect(value.text == expected ?? alert)
  }

  @Test(arguments: [
    (
      #"{"title-loc-key":"plain","loc-key":"greeting"}"#,
      "aps.alert.loc-key: the text takes an argument number 1, and the notification has 0"
    ),
    (#"{"loc-key":"greeting","loc-args":["0123456789"]}"#, "aps.alert.loc-key: the text with its arguments is longer than 15 bytes"),
    (#"{"loc-key":"greeting","loc-args":["A",1]}"#, "aps.alert.loc-args[1]: An argument is a string."),
    (#"{"title-loc-key":"greeting","title-loc-args":"A"}"#, "aps.alert.title-loc-args: This member of alert is an array."),
  ])
  func anAlertThatCannotBeLocalisedStaysAsItWas(alert: String, expected: String) throws {
    let localize = try Self.localize()
    var value = try JSONValue(parsing: alert)
    let error = #expect(throws: FieldError.self) { try localize.localize(&value, locale: "de", limit: 15) }
    #expect(error?.description == expected)
    #expect(value.text == alert)
  }
}

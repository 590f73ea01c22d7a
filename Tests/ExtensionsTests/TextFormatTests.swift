import Notifications
import TestSupport
import Testing

@testable import Extensions

@Suite struct TextFormatTests {
  /// The filled text, or what is wrong.
  private static func fill(_ format: String, _ arguments: [String], limit: Int = 1_000) -> String {
    do throws(FieldError) {
      return try TextFormat(format).filled(with: arguments, limit: limit, field: "key")
    } catch { return "\(error)" }
  }

  @Test(arguments: [
    ("", [], ""), ("plain", ["unused"], "plain"), ("%@", ["a"], "a"), ("%@%@", ["a", "b"], "ab"),
    ("%@ and %@", ["a", "b", "c"], "a and b"),
    ("%2$@ %1$@", ["a", "b"], "b a"), ("%1$@%1$@", ["a"], "aa"), ("%%", [], "%"), ("%%@", ["a"], "%@"), ("%%%@%%", ["a"], "%a%"),
    ("100%% für %@", ["Zoë 😀"], "100% für Zoë 😀"), ("%@", [""], ""),
    // An argument is no format.
    ("%@ %@", ["%@", "%1$@ %%"], "%@ %1$@ %%"),
    // What is no place stays.
    ("%", [], "%"), ("100 %", [], "100 %"), ("%d %ld %s %5.2f", ["a"], "%d %ld %s %5.2f"), ("%1$d %@", ["a"], "%1$d a"),
    ("%0$@", ["a"], "%0$@"),
    ("%1$", ["a"], "%1$"), ("%1", ["a"], "%1"), ("%100$@", ["a"], "%100$@"), ("%99999999999999999999$@", ["a"], "%99999999999999999999$@"),
    ("%5@", ["a"], "%5@"), ("% @", ["a"], "% @"), ("%d%@", ["a"], "%da"), ("%ü", [], "%ü"),
    // Those without a number count for themselves.
    ("%2$@ %@", ["a", "b"], "b a"),
  ])
  func aPlaceTakesItsArgument(format: String, arguments: [String], expected: String) {
    #expect(Self.fill(format, arguments) == expected)
  }

  @Test(arguments: [
    ("%@", [], "the text takes an argument number 1, and the notification has 0"),
    ("%@ %@", ["a"], "the text takes an argument number 2, and the notification has 1"),
    ("%1$@ %99$@", ["a"], "the text takes an argument number 99, and the notification has 1"),
  ])
  func aMissingArgumentIsAnError(format: String, arguments: [String], expected: String) {
    #expect(Self.fill(format, arguments) == "key: \(expected)")
  }

  @Test func theTextHasItsLimitInBytes() {
    let tooLong = "key: the text with its arguments is longer than 4 bytes"
    #expect(Self.fill("abcd", [], limit: 4) == "abcd")
    #expect(Self.fill("abcde", [], limit: 4) == tooLong)
    #expect(Self.fill("%@ü", ["ü"], limit: 4) == "üü")
    #expect(Self.fill("%@ü!", ["ü"], limit: 4) == tooLong)
    #expect(Self.fill(String(repeating: "%1$@", count: 4_000), [String(repeating: "a", count: 4_000)], limit: 4) == tooLong)
    #expect(Self.fill("", [], limit: 0) == "")
  }

  /// Parts of a format, each with what it becomes, so that the expected text needs no reader of formats.
  @Test func anyPartsBecomeWhatEachBecomes() {
    var random = SeededRandom(seed: 14)
    let arguments = ["a", "", "%@", "😀", "%"]
    for _ in 0..<2_000 {
      var (format, expected, next) = ("", "", 0)
      for _ in 0..<Int.random(in: 0...8, using: &random) {
        switch Int.random(in: 0..<5, using: &random) {
        case 0:
          format += "%%"
          expected += "%"
        case 1 where next < arguments.count:
          format += "%@"
          expected += arguments[next]
          next += 1
        case 2:
          let position = Int.random(in: arguments.indices, using: &random)
          format += "%\(position + 1)$@"
          expected += arguments[position]
        case 3:
          let other = ["%d", "%ld", "%s", "%6$d", "%0$@"].randomElement(using: &random) ?? ""
          format += other
          expected += other
        default:
          let plain = ["x", "ü ", "$@", "1", "\n"].randomElement(using: &random) ?? ""
          format += plain
          expected += plain
        }
      }
      #expect(Self.fill(format, arguments) == expected, "\(format)")
    }
  }

  @Test func anyTextIsAFormat() {
    let corpus = ["%@ invites you to %2$@: 100%%", "%1$@", "%d %ld", "Grüße %@ 😀"].map { Array($0.utf8) }
    let failures = Fuzz("formats", corpus: corpus, tokens: ["%", "%@", "%%", "$", "@", "%99$@", "%100$@"]).run { bytes, random in
      let format = TextFormat(String(decoding: bytes, as: UTF8.self))
      let arguments = (0..<Int.random(in: 0...100, using: &random)).map { "<\($0)>" }
      do throws(FieldError) {
        let text = try format.filled(with: arguments, limit: 1_000, field: "key")
        return text.utf8.count <= 1_000 ? nil : "it has \(text.utf8.count) bytes"
      } catch { return nil }
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}

import JSON
import TestSupport
import Testing

@testable import Notifications

/// The header of a record that fires an occurrence.
@Suite struct FiringHeaderTests {
  private static let header = FiringHeader(
    schedule: ScheduleRecordTests.reference, .init(zone: "Europe/Rome", due: 1_700_000_000_123, name: -5, previous: .min))

  private static func text(_ header: FiringHeader) -> String { JSONWriter.text { header.write(to: &$0) } }

  private static func read(_ text: String) throws(Rejection) -> FiringHeader {
    try withText(text) { bytes throws(Rejection) in try FiringHeader(bytes) }
  }

  @Test func `a firing is read as it was written`() throws {
    #expect(try Self.read(Self.text(Self.header)) == Self.header)
    var other = Self.header
    (other.dueTime.zone, other.dueTime.due, other.dueTime.name, other.repeats) = ("", Timestamp.latest, .max, true)
    #expect(try Self.read(Self.text(other)) == other)
  }

  @Test func `an occurrence has one id, whenever and in whichever zone it fires`() {
    var again = Self.header
    (again.dueTime.due, again.dueTime.zone, again.dueTime.previous) = (7, "Asia/Tokyo", 8)
    #expect(again.occurrence == Self.header.occurrence)
    again.dueTime.name += 1
    #expect(again.occurrence != Self.header.occurrence)
  }

  @Test func `a firing that is none is rejected`() {
    let text = Self.text(Self.header)
    let faults = [
      "", "{}", "[]", "null", text + "x", text.replacing("\"due\":1700000000123", with: "\"due\":-1"),
      text.replacing("\"due\":1700000000123", with: "\"due\":1e400"), text.replacing("\"name\":-5", with: "\"name\":0.5"),
      text.replacing("\"previous\":", with: "\"previous\":1,\"previous\":"), text.replacing("\"zone\"", with: "\"zones\""),
      text.replacing("\"repeats\":false", with: "\"repeats\":0"),
      text.replacing("Europe/Rome", with: String(repeating: "a", count: 65)), text.replacing("{", with: "{\"more\":[],"),
      text + String(repeating: " ", count: 512),
    ]
    for fault in faults {
      let rejection = #expect(throws: Rejection.self) { try Self.read(fault) }
      #expect(rejection?.reason == .badRequestParams && rejection?.field.description == "carillon-firing", "\(fault)")
    }
  }

  @Test func `a firing of any bytes is read or rejected`() {
    let corpus = [Array(Self.text(Self.header).utf8)]
    let failures = Fuzz("firings", corpus: corpus, tokens: ["\"zone\":\"\"", "\"due\":", "\"name\":", "\"previous\":"]).run { bytes, _ in
      do throws(Rejection) {
        let header = try FiringHeader(bytes)
        return try Self.read(Self.text(header)) == header ? nil : "it is not read as it was written"
      } catch { return error.rule.isEmpty ? "the error names no rule" : nil }
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}

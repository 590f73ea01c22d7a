import JSON
import TestSupport
import Testing

@testable import Notifications

/// The triggers that are due at a time, as the header says them.
@Suite struct TimedTriggerTests {
  private static func read(_ text: String) throws(Rejection) -> Trigger {
    try withText(text) { bytes throws(Rejection) in try Trigger(bytes) }
  }

  private static func units(_ values: [CalendarUnits.Unit: Int]) -> CalendarUnits {
    var units = CalendarUnits()
    for (unit, value) in values { units[unit] = value }
    return units
  }

  @Test func `a trigger is read with all that it has`() throws {
    let cases: [(String, Trigger)] = [
      (#"{"type":"push"}"#, .push),
      (#"{"type":"location","beacon":{"identifier":"a","uuid":"123e4567-e89b-12d3-a456-42665544000a"}}"#, .location),
      (#"{"type":"timeInterval","timeInterval":60,"repeats":true}"#, .timed(TimedTrigger(.interval(60_000), repeats: true))),
      (#"{"timeInterval":0.0001,"type":"timeInterval"}"#, .timed(TimedTrigger(.interval(1)))),
      (#"{"timeInterval":1.5e1,"type":"timeInterval","repeats":false}"#, .timed(TimedTrigger(.interval(15_000)))),
      (#"{"timeInterval":315532800,"type":"timeInterval"}"#, .timed(TimedTrigger(.interval(315_532_800_000)))),
      (
        #"{"type":"timeInterval","timeInterval":60,"repeats":true,"notBefore":1700000000,"late":0}"#,
        .timed(TimedTrigger(.interval(60_000), repeats: true, notBefore: 1_700_000_000_000, late: 0))
      ),
      (
        #"{"type":"calendar","dateComponents":{"hour":9,"minute":0,"timeZone":"Europe\/Rome"},"repeats":true}"#,
        .timed(TimedTrigger(.calendar(Self.units([.hour: 9, .minute: 0]), zone: "Europe/Rome"), repeats: true))
      ),
      (
        #"{"type":"calendar","dateComponents":{"year":2030,"quarter":1,"month":2,"weekOfYear":8,"weekOfMonth":4,"weekdayOrdinal":3,"weekday":1,"day":17,"hour":23,"minute":59,"second":59}}"#,
        .timed(
          TimedTrigger(
            .calendar(
              Self.units([
                .year: 2030, .quarter: 1, .month: 2, .weekOfYear: 8, .weekOfMonth: 4, .weekdayOrdinal: 3, .weekday: 1, .day: 17, .hour: 23,
                .minute: 59, .second: 59,
              ]), zone: nil)))
      ),
    ]
    for (text, trigger) in cases { #expect(try Self.read(text) == trigger, "\(text)") }
  }

  /// A trigger with one fault, and the field that the rejection names.
  private static let faults: [(String, field: String)] = [
    (#"{"type":"timeInterval"}"#, "trigger.timeInterval"),
    (#"{"type":"timeInterval","timeInterval":0}"#, "trigger.timeInterval"),
    (#"{"type":"timeInterval","timeInterval":-1}"#, "trigger.timeInterval"),
    (#"{"type":"timeInterval","timeInterval":1e999}"#, "trigger.timeInterval"),
    (#"{"type":"timeInterval","timeInterval":315532801}"#, "trigger.timeInterval"),
    (#"{"type":"timeInterval","timeInterval":"60"}"#, "trigger.timeInterval"),
    (#"{"type":"timeInterval","timeInterval":null}"#, "trigger.timeInterval"),
    (#"{"type":"timeInterval","timeInterval":59.999,"repeats":true}"#, "trigger.timeInterval"),
    (#"{"type":"timeInterval","timeInterval":60,"timeInterval":61}"#, "trigger.timeInterval"),
    (#"{"type":"timeInterval","timeInterval":60,"repeats":1}"#, "trigger.repeats"),
    (#"{"type":"timeInterval","timeInterval":60,"repeats":true,"repeats":true}"#, "trigger.repeats"),
    (#"{"type":"timeInterval","timeInterval":60,"repaets":true}"#, "trigger"),
    (#"{"type":"timeInterval","timeInterval":60,"dateComponents":{"hour":9}}"#, "trigger.dateComponents"),
    (#"{"type":"timeInterval","timeInterval":60,"late":5}"#, "trigger.late"),
    (#"{"type":"timeInterval","timeInterval":60,"repeats":true,"late":-1}"#, "trigger.late"),
    (#"{"type":"timeInterval","timeInterval":60,"repeats":true,"late":2592001}"#, "trigger.late"),
    (#"{"type":"timeInterval","timeInterval":60,"repeats":true,"late":0.5}"#, "trigger.late"),
    (#"{"type":"timeInterval","timeInterval":60,"notBefore":5}"#, "trigger.notBefore"),
    (#"{"type":"timeInterval","timeInterval":60,"repeats":true,"notBefore":253402300800}"#, "trigger.notBefore"),
    (#"{"type":"timeInterval","timeInterval":60,"repeats":true,"notBefore":"2030-01-01T00:00:00Z"}"#, "trigger.notBefore"),
    (#"{"type":"timeInterval","type":"timeInterval","timeInterval":60}"#, "trigger.type"),
    (#"{"type":"calendar"}"#, "trigger.dateComponents"),
    (#"{"type":"calendar","dateComponents":[]}"#, "trigger.dateComponents"),
    (#"{"type":"calendar","dateComponents":{}}"#, "trigger.dateComponents"),
    (#"{"type":"calendar","dateComponents":{"timeZone":"Europe/Rome"}}"#, "trigger.dateComponents"),
    (#"{"type":"calendar","dateComponents":{"hour":9},"dateComponents":{"hour":9}}"#, "trigger.dateComponents"),
    (#"{"type":"calendar","dateComponents":{"hours":9}}"#, "trigger.dateComponents"),
    (#"{"type":"calendar","dateComponents":{"hour":9},"timeInterval":60}"#, "trigger.timeInterval"),
    (#"{"type":"calendar","dateComponents":{"hour":9,"timeZone":7}}"#, "trigger.dateComponents.timeZone"),
    (#"{"type":"calendar","dateComponents":{"hour":9,"timeZone":""}}"#, "trigger.dateComponents.timeZone"),
    (#"{"type":"calendar","dateComponents":{"hour":9,"timeZone":"Europe/R\u00f6m"}}"#, "trigger.dateComponents.timeZone"),
    (
      #"{"type":"calendar","dateComponents":{"hour":9,"timeZone":"\#(String(repeating: "a", count: 65))"}}"#,
      "trigger.dateComponents.timeZone"
    ),
    (#"{"type":"calendar","dateComponents":{"hour":9,"timeZone":"UTC","timeZone":"UTC"}}"#, "trigger.dateComponents.timeZone"),
    ("{", "trigger"), ("null", "trigger"), (#"{"type":"calendar","dateComponents":{"hour":9}} x"#, "trigger"),
    (#"{"type":"calendar","dateComponents":{"hour":\#(String(repeating: "[", count: 9))\#(String(repeating: "]", count: 9))}}"#, "trigger"),
    (#"{"type":"calendar","dateComponents":{"hour":9},"notBefore":\#(String(repeating: "1", count: 64 << 10))}"#, "trigger"),
  ]

  @Test(arguments: faults.indices)
  func `a trigger with a fault is rejected with its field and a rule`(index: Int) throws {
    let (text, field) = Self.faults[index]
    let rejection = #expect(throws: Rejection.self) { try Self.read(text) }
    #expect(rejection?.reason == .badRequestParams && rejection?.field.description == field && rejection?.rule.hasSuffix(".") == true)
  }

  @Test(arguments: CalendarUnits.Unit.allCases)
  func `a unit takes what is in its range, and nothing else`(unit: CalendarUnits.Unit) throws {
    func text(_ value: String) -> String { #"{"type":"calendar","dateComponents":{"\#(unit.name)":\#(value)}}"# }
    for value in [unit.range.lowerBound, unit.range.upperBound] {
      #expect(try Self.read(text("\(value)")) == .timed(TimedTrigger(.calendar(Self.units([unit: Int(value)]), zone: nil))))
    }
    let outside = [
      "\(unit.range.lowerBound - 1)", "\(unit.range.upperBound + 1)", "1.5", "\"1\"", "null", "true", "9223372036854775807",
      "-9223372036854775808", "18446744073709551616", "\(unit.range.lowerBound),\"\(unit.name)\":\(unit.range.lowerBound)",
    ]
    for value in outside {
      let rejection = #expect(throws: Rejection.self) { try Self.read(text(value)) }
      #expect(rejection?.field.description == "trigger.dateComponents.\(unit.name)", "\(value)")
    }
    var units = CalendarUnits()
    for value in [-1, Int(unit.range.lowerBound) - 1, Int(unit.range.upperBound) + 1, .max, .min] {
      units[unit] = value
      #expect(units[unit].map { unit.range.contains(Int64($0)) } == false, "it stays outside, and is refused")
    }
  }

  @Test func `a trigger of any bytes is read or rejected`() {
    let corpus = [
      #"{"type":"timeInterval","timeInterval":60,"repeats":true,"notBefore":1700000000,"late":900}"#,
      #"{"type":"calendar","dateComponents":{"year":2030,"month":2,"day":17,"hour":9,"minute":30,"timeZone":"Europe/Rome"}}"#,
      #"{"type":"calendar","dateComponents":{"weekday":1,"weekdayOrdinal":3,"weekOfMonth":4,"weekOfYear":8,"quarter":1},"repeats":true}"#,
    ]
    let tokens = CalendarUnits.Unit.allCases.map { "\"\($0.name)\":" } + ["\"type\":\"calendar\"", "\"timeZone\":\"UTC\"", ",", "true"]
    let failures = Fuzz("triggers", corpus: corpus.map { Array($0.utf8) }, tokens: tokens).run { bytes, _ in
      do throws(Rejection) {
        guard case .timed(let trigger) = try Trigger(bytes) else { return nil }
        switch trigger.rule {
        case .interval(let milliseconds):
          if milliseconds < (trigger.repeats ? 60_000 : 1) || milliseconds > 315_532_800_000 { return "an interval of \(milliseconds) ms" }
        case .calendar(let units, let zone):
          if units.isEmpty || zone?.utf8.count == 0 { return "a calendar trigger without a unit or with an empty zone" }
        }
        if !trigger.repeats, trigger.notBefore != nil || trigger.late != nil { return "a one-off has what only a repeating one has" }
      } catch {
        if !error.field.description.hasPrefix("trigger") || error.rule.isEmpty { return "the error names no field or no rule" }
      }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}

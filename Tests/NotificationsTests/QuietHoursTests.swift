import JSON
import Testing

@testable import Notifications

@Suite struct QuietHoursTests {
  private static func read(_ text: String) throws -> PersonSettings { try withBytes(text) { try PersonSettings(json: $0) } }

  private static func fault(of text: String) -> String? {
    do {
      _ = try read(text)
      return nil
    } catch { return (error as? FieldError)?.field }
  }

  @Test func `a person's settings are read as they were written`() throws {
    let document = try ContractDocument()
    for hours in [
      QuietHours(from: 0, to: 1_439, timeZone: "UTC"), QuietHours(from: 1_320, to: 420, days: 0x41, timeZone: "Europe/Rome"),
      QuietHours(from: 61, to: 61, days: 1, timeZone: "Asia/Kathmandu"),
    ] {
      let text = String(decoding: try #require(PersonSettings(quiet: hours).value), as: UTF8.self)
      #expect(try Self.read(text) == PersonSettings(quiet: hours))
      #expect(document.faults(of: text, as: "personSettings").isEmpty, "\(text)")
    }
    #expect(PersonSettings(quiet: nil).value == nil)
    #expect(try Self.read("{}") == PersonSettings(quiet: nil))
    let text = #"{"quiet":{"from":"22:00","to":"07:05","days":[1,7,7],"timeZone":"Europe/Rome","more":1}}"#
    #expect(try Self.read(text).quiet == QuietHours(from: 1_320, to: 425, days: 0x41, timeZone: "Europe/Rome"))
  }

  @Test(arguments: [
    ("[]", ""), (#"{"quiet":7}"#, "quiet"), (#"{"quiet":{}}"#, "quiet.from"), (#"{"quiet":{"from":"24:00"}}"#, "quiet.from"),
    (#"{"quiet":{"from":"22:60"}}"#, "quiet.from"), (#"{"quiet":{"from":"2:00"}}"#, "quiet.from"),
    (#"{"quiet":{"from":2200}}"#, "quiet.from"),
    (#"{"quiet":{"from":"é2:00"}}"#, "quiet.from"), (#"{"quiet":{"from":"22:00","to":"7"}}"#, "quiet.to"),
    (#"{"quiet":{"from":"22:00","to":"07:00"}}"#, "quiet.timeZone"),
    (#"{"quiet":{"from":"22:00","to":"07:00","timeZone":""}}"#, "quiet.timeZone"),
    (#"{"quiet":{"from":"22:00","to":"07:00","timeZone":"UTC","days":[]}}"#, "quiet.days"),
    (#"{"quiet":{"from":"22:00","to":"07:00","timeZone":"UTC","days":[0]}}"#, "quiet.days[0]"),
    (#"{"quiet":{"from":"22:00","to":"07:00","timeZone":"UTC","days":[1,8]}}"#, "quiet.days[1]"),
    (#"{"quiet":{"from":"22:00","to":"07:00","timeZone":"UTC","days":["sunday"]}}"#, "quiet.days[0]"),
  ]) func `wrong quiet hours are named`(_ text: String, _ field: String) { #expect(Self.fault(of: text) == field) }

  @Test func `a settings frame sets quiet hours, takes them back, or leaves them`() throws {
    func frame(_ members: String) throws -> SettingsFrame? {
      guard case .settings(let frame) = try withBytes(#"{"type":"settings"\#(members)}"#, { try DeviceFrame($0) }) else { return nil }
      return frame
    }
    let hours = QuietHours(from: 1_320, to: 420, timeZone: "Europe/Rome")
    let text = JSONWriter.text { SettingsFrame(request: "s", person: PersonSettings(quiet: hours)).write(to: &$0) }
    guard case .settings(let written) = try withBytes(text, { try DeviceFrame($0) }) else { throw FieldError(field: text, rule: "") }
    #expect(written.person?.quiet == hours && !written.changesRegistration)
    let removed = try #require(try frame(#","quiet":{}"#))
    #expect(removed.person == PersonSettings(quiet: nil))
    #expect(JSONWriter.text { removed.write(to: &$0) } == #"{"type":"settings","quiet":{}}"#)
    let other = try #require(try frame(#","quiet":null,"locale":"de_AT""#))
    #expect(other.person == nil && other.changesRegistration)
    #expect(throws: DeviceFrameError.self) { try frame(#","quiet":null"#) }
    #expect(throws: DeviceFrameError.self) { try frame(#","quiet":[]"#) }
  }
}

import JSON
import Notifications
import Testing

@testable import Command

/// A person's quiet hours, as they are typed at a device.
@Suite struct QuietInstructionTests {
  private static let hours = QuietHours(from: 22 * 60, to: 7 * 60 + 30, timeZone: "Europe/Rome")

  @Test func `they are set by two times and a zone, and removed`() throws {
    #expect(try DeviceInstruction(typed: "quiet 22:00 07:30 Europe/Rome") == .quiet(Self.hours))
    #expect(try DeviceInstruction(typed: "quiet off") == .quiet(nil))
    let set = try JSONValue(parsing: #"{"command":"quiet","from":"22:00","to":"07:30","timeZone":"Europe/Rome"}"#)
    #expect(try DeviceInstruction(json: set) == .quiet(Self.hours))
    #expect(try DeviceInstruction(json: try JSONValue(parsing: #"{"command":"quiet"}"#)) == .quiet(nil))
  }

  @Test(arguments: [
    "quiet", "quiet 22:00", "quiet 22:00 24:00 UTC", "quiet 22:60 07:00 UTC", "quiet 22 07:00 UTC", "quiet 22:00 07:00 No/Where",
    "quiet 22:00: 07:00 UTC",
  ])
  func `what is wrong is told with an example`(line: String) {
    let error = #expect(throws: InstructionError.self) { try DeviceInstruction(typed: line) }
    #expect(error?.description.contains("quiet 22:00 07:00 Europe/Rome") == true)
  }
}

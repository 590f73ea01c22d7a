import JSON
import Notifications
import Testing

@testable import Command

/// A person's quiet hours, as they are typed at a device.
@Suite struct QuietInstructionTests {
  private static let hours = QuietHours(from: 22 * 60, to: 7 * 60 + 30, timeZone: "Europe/Rome")

  @Test func `they are set by two times and a zone, and removed`() throws {
    let set: JSONValue = ["command": "quiet", "from": "22:00", "to": "07:30", "timeZone": "Europe/Rome"]
    #expect(try DeviceInstruction(typed: "quiet 22:00 07:30 Europe/Rome")?.value == set)
    #expect(try DeviceInstruction(value: set).quietHours() == Self.hours)
    #expect(try DeviceInstruction(typed: "quiet off")?.value == ["command": "quiet"])
    #expect(try DeviceInstruction(value: ["command": "quiet"]).quietHours() == nil)
  }

  @Test func `they are shown as they are typed, with their days, among the other settings`() throws {
    #expect(try DeviceInstruction(typed: "quiet")?.command == "show-settings")
    #expect(DeviceText.quiet(Self.hours) == "quiet 22:00 07:30 Europe/Rome")
    let weekend = QuietHours(from: 0, to: 9 * 60 + 5, days: 0b1000001, timeZone: "UTC")
    #expect(DeviceText.quiet(weekend) == "quiet 00:00 09:05 UTC on the days 1 7 of the week")
  }

  @Test(arguments: [
    "quiet 22:00", "quiet 22:00 24:00 UTC", "quiet 22:60 07:00 UTC", "quiet 22 07:00 UTC", "quiet 22:00 07:00 No/Where",
    "quiet 22:00: 07:00 UTC",
  ])
  func `what is wrong is told with an example`(line: String) {
    let error = #expect(throws: InstructionError.self) { try DeviceInstruction(typed: line)?.quietHours() }
    #expect(error?.description.contains("quiet 22:00 07:00 Europe/Rome") == true)
  }
}

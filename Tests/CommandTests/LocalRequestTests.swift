import DeviceClient
import Foundation
import JSON
import Notifications
import TestSupport
import Testing

@testable import Command

/// `carillon device` and its local notifications, without a cluster.
@Suite struct LocalRequestTests {
  private static let alone = [
    "device", "--devices", "ws://127.0.0.1:1", "--token", String(repeating: "e7", count: 32), "--app", "com.example", "--json",
    "--until-eof",
  ]

  /// Runs the device with these instructions, and returns the events that are no trouble with the connection.
  private static func events(_ carillon: CarillonCommand, _ instructions: String...) async throws -> [JSONValue] {
    let state = carillon.folder.appendingPathComponent("ada.state").path
    let result = try await carillon.run(alone + ["--state", state], input: instructions.map { $0 + "\n" }.joined())
    #expect(result.status == 0, "\(result.errors)")
    return try result.lines.map { try JSONValue(parsing: $0) }.filter { $0["event"] != "unreachable" }
  }

  @Test func `a local notification is added, listed, canceled, shown and opened, also after a restart`() async throws {
    try await CarillonCommand.with { carillon in
      let first = try await Self.events(
        carillon,
        #"{"command":"add","identifier":"tea","payload":{"aps":{"alert":"Tea"}},"trigger":{"type":"timeInterval","timeInterval":3600}}"#,
        #"{"command":"add","identifier":"egg","payload":{"aps":{"alert":"Egg"}},"trigger":{"type":"timeInterval","timeInterval":3600}}"#,
        #"{"command":"add","identifier":"now","payload":{"aps":{"alert":"Now"},"shop":7}}"#,
        #"{"command":"add","identifier":"bad","payload":{"aps":{"alert":"Now"}},"trigger":{"type":"location"}}"#)
      let shown = try #require(first.first { $0["event"] == "shown" })
      #expect(shown["identifier"] == "now" && shown["local"] == true && shown["payload"]?["shop"] == 7)
      #expect(first.contains { $0["event"] == "error" && $0["message"]?.stringValue?.contains("trigger") == true })
      let second = try await Self.events(
        carillon, #"{"command":"cancel","identifiers":["egg"]}"#, #"{"command":"list"}"#, #"{"command":"open","identifier":"now"}"#)
      let list = try #require(second.first { $0["event"] == "list" })
      #expect(list["delivered"]?.elements?.map { $0["identifier"] } == ["now"])
      #expect(list["pending"]?.elements?.map { $0["identifier"] } == ["tea"])
      #expect(list["pending"]?[0]?["trigger"]?["timeInterval"]?.doubleValue == 3600)
      let third = try await Self.events(carillon, #"{"command":"cancel"}"#, #"{"command":"list"}"#)
      #expect(third.first { $0["event"] == "list" }?["delivered"] == [])
      #expect(third.first { $0["event"] == "list" }?["pending"] == [])
    }
  }

  @Test func `a list of identifiers that is none is refused, and cancels nothing`() throws {
    func identifiers(_ value: JSONValue) throws -> [Name]? {
      try DeviceInstruction(value: ["command": "cancel", "identifiers": value]).identifiers { $0 == 7 ? "seven" : nil }
    }
    for wrong: JSONValue in ["tea", [5], ["tea", nil], ["a": 1], 7] { #expect(throws: InstructionError.self) { try identifiers(wrong) } }
    #expect(try identifiers(["tea", 7]) == ["tea", "seven"])
    #expect(try DeviceInstruction(value: ["command": "cancel"]).identifiers { _ in nil } == nil)
  }

  @Test func `what is typed is what a script writes`() throws {
    let expected: [(String, JSONValue)] = [
      ("act 1 reply  thank  you ", ["command": "act", "identifier": 1, "action": "reply", "userText": "thank  you"]),
      ("act order-7 like", ["command": "act", "identifier": "order-7", "action": "like"]),
      ("RM a 2", ["command": "remove", "identifiers": ["a", 2]]), ("remove all", ["command": "remove-all"]),
      ("cancel 2", ["command": "cancel", "identifiers": ["2"]]), ("cancel all", ["command": "cancel"]),
      ("settings sound off", ["command": "settings", "change": ["sound": false]]),
      ("settings status denied", ["command": "settings", "change": ["status": "denied"]]),
      ("settings zone Europe/Rome", ["command": "settings", "timeZone": "Europe/Rome"]), ("settings", ["command": "show-settings"]),
      ("state locked", ["command": "state", "state": "locked"]),
    ]
    for (line, value) in expected { #expect(try DeviceInstruction(typed: line)?.value == value, "\(line)") }
    #expect(try DeviceInstruction(typed: "  ") == nil)
    for line in ["open", "act 1", "reply 1", "remove", "settings sound", "settings sound maybe", "settings none on", "expand 1"] {
      #expect(throws: InstructionError.self) { try DeviceInstruction(typed: line) }
    }
  }

  @Test func `a typed local request is read with its time`() throws {
    func request(_ line: String) throws -> NotificationRequest? {
      try DeviceInstruction(typed: line)?.request()
    }
    var nine = CalendarUnits()
    (nine[.hour], nine[.minute]) = (9, 30)
    let expected: [(String, NotificationTrigger?, String)] = [
      ("add tea Tea is ready", nil, "Tea is ready"), ("add tea in 60 Tea is ready", .timeInterval(60, repeats: false), "Tea is ready"),
      ("add tea every 3600 Tea", .timeInterval(3600, repeats: true), "Tea"),
      ("add tea at 09:30 Tea", .calendar(nine, repeats: false), "Tea"),
      ("add tea daily 9:30 Tea", .calendar(nine, repeats: true), "Tea"),
    ]
    for (line, trigger, body) in expected {
      let request = try #require(try request(line))
      #expect(request.identifier == "tea" && request.trigger == trigger && request.content.body == body, "\(line)")
    }
    for line in ["add", "add tea", "add tea in soon Tea", "add tea at 25:00 Tea", "add tea in 60", "cancel"] {
      #expect(throws: InstructionError.self) { try DeviceInstruction(typed: line) }
    }
  }
}

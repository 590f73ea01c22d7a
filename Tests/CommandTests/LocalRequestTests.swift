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
        carillon, #"{"command":"pending"}"#, #"{"command":"cancel","identifiers":["egg"]}"#, #"{"command":"list"}"#,
        #"{"command":"open","identifier":"now"}"#)
      let pending = try #require(second.first { $0["event"] == "pending" }?["requests"]?.elements)
      #expect(pending.map { $0["identifier"] } == ["tea", "egg"])
      #expect(pending.first?["trigger"]?["timeInterval"]?.doubleValue == 3600)
      let list = try #require(second.first { $0["event"] == "list" })
      #expect(list["delivered"]?.elements?.map { $0["identifier"] } == ["now"])
      #expect(list["pending"]?.elements?.map { $0["identifier"] } == ["tea"])
      let third = try await Self.events(carillon, #"{"command":"list"}"#, #"{"command":"cancel"}"#, #"{"command":"pending"}"#)
      #expect(third.first { $0["event"] == "list" }?["delivered"] == [])
      #expect(third.first { $0["event"] == "pending" }?["requests"] == [])
    }
  }

  @Test func `a notification is expanded, its panel is drawn, and an action of it closes the panel`() async throws {
    try await CarillonCommand.with { carillon in
      let add = #"{"command":"add","identifier":"tea","payload":{"aps":{"alert":"Tea","category":"reply"}}}"#
      let events = try await Self.events(
        carillon, add, #"{"command":"expand","identifier":"tea"}"#, #"{"command":"tap","control":"none"}"#, #"{"command":"media"}"#,
        #"{"command":"act","identifier":"tea","action":"like"}"#, #"{"command":"collapse"}"#, #"{"command":"expand","identifier":"tea"}"#)
      let panel = try #require(events.first { $0["event"] == "done" && $0["command"] == "expand" })
      #expect(panel["title"] == "com.example" && panel["showsDefaultContent"] == true && panel["actions"] == ["reply", "like"])
      #expect(events.filter { $0["event"] == "error" }.map { $0["code"] } == ["noSuchControl", "noSuchControl", "noSuchNotification"])
      #expect(events.filter { $0["event"] == "panelClosed" }.map { $0["identifier"] } == ["tea"])
      let typed = try await carillon.run(
        Self.alone.filter { $0 != "--json" }, environment: ["NO_COLOR": "1"], input: "add tea Tea\nexpand tea\ncollapse\n")
      #expect(typed.output.contains("│ Tea") && typed.output.contains("-- the panel of tea is closed"), "\(typed.output)")
    }
  }

  @Test func `the panel of a player plays and pauses, and takes taps and texts`() async throws {
    try await CarillonCommand.with { carillon in
      let events = try await Self.events(
        carillon, #"{"command":"add","identifier":"song","payload":{"aps":{"alert":"Song","category":"player"}}}"#,
        #"{"command":"expand","identifier":"song"}"#, #"{"command":"media"}"#, #"{"command":"tap","control":"next"}"#,
        #"{"command":"tap","control":"note","text":"A flute"}"#, #"{"command":"media"}"#, #"{"command":"collapse"}"#)
      #expect(events.allSatisfy { $0["event"] != "error" }, "\(events.map(\.text))")
      let closed = try #require(events.first { $0["event"] == "panelClosed" })
      #expect(
        closed["lines"] == ["It pauses.", "It plays.", "The next one.", "Note: A flute", "It pauses."] && closed["mediaPlays"] == false)
    }
  }

  @Test func `what is typed at a panel is read`() throws {
    #expect(try DeviceInstruction(typed: "expand 1") == .expand(.number(1)))
    #expect(try DeviceInstruction(typed: "tap go") == .tap("go", text: nil))
    #expect(try DeviceInstruction(typed: "tap field I bring  cake ") == .tap("field", text: "I bring  cake"))
    #expect(try DeviceInstruction(typed: "media") == .media)
    #expect(try DeviceInstruction(typed: "collapse") == .collapse)
    for line in ["expand", "tap"] { #expect(throws: InstructionError.self) { try DeviceInstruction(typed: line) } }
  }

  @Test func `a list of identifiers that is none is refused, and cancels nothing`() throws {
    for command: JSONValue in ["cancel", "remove"] {
      for wrong: JSONValue in ["tea", [5], ["tea", nil], ["a": 1], 7] {
        #expect(throws: InstructionError.self) { try DeviceInstruction(json: ["command": command, "identifiers": wrong]) }
      }
    }
    #expect(try DeviceInstruction(json: ["command": "cancel", "identifiers": ["tea"]]) == .cancel(["tea"]))
    #expect(try DeviceInstruction(json: ["command": "cancel"]) == .cancel([]))
  }

  @Test func `a typed local request is read with its time`() throws {
    func request(_ line: String) throws -> NotificationRequest? {
      guard case .add(let request)? = try DeviceInstruction(typed: line) else { return nil }
      return request
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

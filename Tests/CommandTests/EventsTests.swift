import Foundation
import JSON
import Kafka
import TestSupport
import Testing
import Worker

@testable import Command

/// `carillon events`, over records as workers write them.
@Suite struct EventsTests {
  private static let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
  private static let other = "00000000-0a4b-4c8e-9d52-3f6f6a9b1c11"
  private static let device = String(repeating: "ab", count: 32)
  private static let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
  /// What a terminal obeys, and what JSON has as it is.
  private static let control: Character = "\u{9B}"

  private func event(_ type: String, _ time: String, _ value: String, of subject: String = Self.id) -> TestRecord {
    TestRecord(
      key: "k", value,
      headers: [
        .init("ce_specversion", "1.0"), .init("ce_id", "id-\(type)"), .init("ce_type", "carillon.\(type).v1"),
        .init("ce_source", "/carillon/t"), .init("ce_subject", subject),
        .init("ce_time", time), .init("traceparent", Self.trace), .init("content-type", "application/json"),
      ])
  }

  private func withEvents(_ body: @Sendable (CarillonCommand, KafkaFixture, _ topic: String, _ flags: [String]) async throws -> Void)
    async throws
  {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        let prefix = KafkaFixture.unique("events") + "."
        let topic = prefix + "events"
        try await kafka.makeTopics([topic], partitions: 1)
        try await kafka.publish(
          [
            event(
              "addressed", "2026-01-31T12:00:00.000Z",
              #"{"identifier":"order-7","target":"user:ada","source":{"offset":9007199254740993},"devices":2}"#),
            event(
              "response", "2026-01-31T12:00:01.000Z",
              #"{"identifier":"order-7","device":"\#(Self.device)","action":"reply","userText":"thank \u001b[2J\#(Self.control) you"}"#
            ),
            event("delivered", "2099-01-31T12:00:02.000Z", #"{"device":"ff"}"#, of: Self.other),
          ], to: topic)
        let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
        try await body(carillon, kafka, topic, ["events", "--kafka", servers, "--topic-prefix", prefix])
      }
    }
  }

  @Test func aPersonReadsOneAlignedLineForEachEvent() async throws {
    try await withEvents { carillon, _, _, flags in
      let result = try await carillon.run(flags + ["--from", "beginning", "--until-idle", "300ms"])
      #expect(result.status == 0, "it said: \(result.errors)")
      #expect(
        result.lines == [
          "2026-01-31T12:00:00.000Z  addressed     \(Self.id)  user:ada           identifier=order-7  devices=2",
          "2026-01-31T12:00:01.000Z  response      \(Self.id)  abababab…abababab  identifier=order-7  action=reply  userText=\"thank \u{FFFD}[2J\u{FFFD} you\"",
          "2099-01-31T12:00:02.000Z  delivered     \(Self.other)  ff               ",
        ])
    }
  }

  // MARK: One event

  /// The events of `withEvents`, for a printer and a filter.
  private static let told: [(type: String, time: String, value: String, subject: String)] = [
    (
      "addressed", "2026-01-31T12:00:00.000Z",
      #"{"identifier":"order-7","target":"user:ada","source":{"offset":9007199254740993},"devices":2}"#, id
    ),
    (
      "response", "2026-01-31T12:00:01.000Z",
      #"{"identifier":"order-7","device":"\#(device)","action":"reply","userText":"thank \u001b[2J\#(control) you"}"#, id
    ), ("delivered", "2099-01-31T12:00:02.000Z", #"{"device":"ff"}"#, other),
  ]

  /// Lends an event as a record has it.
  private static func with<R>(_ number: Int, _ body: (EventRecord) throws -> R) throws -> R {
    let (type, time, value, subject) = told[number]
    let headers = [
      ("ce_specversion", "1.0"), ("ce_id", "id-\(type)"), ("ce_type", "carillon.\(type).v1"), ("ce_source", "/carillon/t"),
      ("ce_subject", subject), ("ce_time", time), ("traceparent", trace),
    ].map { (name: $0, value: $1) }
    return try Array(value.utf8).withUnsafeBytes { value in
      try body(EventRecord(partition: 0, offset: Int64(number), headers: headers, value: value))
    }
  }

  @Test(arguments: [40, 80, 100]) func aTerminalGetsNoLineThatIsWiderThanItAndMissesNothing(width: Int) throws {
    func characters(_ text: String) -> String { text.filter { !$0.isWhitespace } }
    for number in Self.told.indices {
      let (all, shown) = try Self.with(number) { (EventPrinter.text($0, width: nil), EventPrinter.text($0, width: width)) }
      #expect(!all.contains("\n") && shown.split(separator: "\n").allSatisfy { $0.count <= width }, "it says: \(shown)")
      #expect(characters(shown) == characters(all) && (width > 40 || shown.contains("\n")))
    }
  }

  @Test func aProgramReadsWhatATerminalDoesNotObey() throws {
    let line = try Self.with(1) { EventPrinter.json($0) }
    #expect(!line.contains(Self.control))
    #expect(line.contains(#""userText":"thank \u001b[2J\u009b you""#), "\(line)")
  }

  @Test(arguments: [
    (["--type", "delivered,response"], ["response", "delivered"]), (["--id", id], ["addressed", "response"]),
    (["--id", id.uppercased()], ["addressed", "response"]), (["--device", device], ["response"]),
    (["--from", "2030-01-01T00:00:00Z"], ["delivered"]), (["--app", "com.example"], []), ([], ["addressed", "response", "delivered"]),
  ]) func onlyWhatIsWantedIsShown(flags: [String], types: [String]) throws {
    let values = try Typed.values(["events"] + flags)
    var filter = EventsCommand.filter(values)
    if case .time(let moment) = values[EventsCommand.from] { filter.since = moment.before(now: 0) }
    let admitted = try Self.told.indices.filter { try Self.with($0) { filter.admits($0) } }
    #expect(admitted.map { Self.told[$0].type } == types)
  }

  @Test func aProgramReadsTheValueByteForByteWithItsAttributes() async throws {
    try await withEvents { carillon, _, _, flags in
      let result = try await carillon.run(flags + ["--from", "beginning", "--limit", "1", "--json"])
      #expect(result.status == 0)
      #expect(
        result.lines == [
          #"{"ce_specversion":"1.0","ce_id":"id-addressed","ce_type":"carillon.addressed.v1","ce_source":"/carillon/t","#
            + #""ce_subject":"\#(Self.id)","ce_time":"2026-01-31T12:00:00.000Z","traceparent":"\#(Self.trace)","identifier":"order-7","target":"user:ada","#
            + #""source":{"offset":9007199254740993},"devices":2,"record":{"partition":0,"offset":0}}"#
        ])
      let nothing = try await carillon.run(flags + ["--from", "beginning", "--type", "evicted", "--until-idle", "300ms"])
      #expect(nothing.status == 1 && nothing.output.isEmpty, "nothing found is the answer no")
    }
  }

  @Test func whatWasThereIsPutInTheOrderOfTime() async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        let prefix = KafkaFixture.unique("past") + "."
        let topic = prefix + "events"
        try await kafka.makeTopics([topic], partitions: 3)
        var records: [TestRecord] = []
        for second in 10..<40 {
          var record = event("delivered", "2026-01-31T12:00:\(second).000Z", #"{"n":\#(second)}"#)
          record.partition = Int32(second * 7 % 3)
          records.append(record)
        }
        try await kafka.publish(records, to: topic)
        let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
        let line = ["events", "--kafka", servers, "--topic-prefix", prefix, "--from", "beginning", "--until-idle", "300ms", "--json"]
        // What a machine that stands still gives too late counts as new.
        _ = try await carillon.answer(line, "they are in their order") { result in
          try result.lines.compactMap { try JSONValue(parsing: $0)["n"]?.integerValue } == Array(10..<40)
        }
      }
    }
  }

  @Test func whatComesLaterIsFollowed() async throws {
    try await withEvents { carillon, kafka, topic, flags in
      let following = try carillon.start(flags + ["--from", "beginning", "--type", "expired", "--limit", "1", "--json"])
      try await kafka.publish([event("expired", "2026-01-31T12:00:03.000Z", "{}")], to: topic)
      let result = try await following.result()
      #expect(result.status == 0)
      #expect(result.lines.count == 1)
    }
  }

  /// Three people with a device each, one of them registered while the events are read.
  @Test func aPersonsEventsAreThoseThatNameThemAndThoseOnTheirDevices() async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        let prefix = KafkaFixture.unique("person") + "."
        try await kafka.makeTopics(["events", "devices"].map { prefix + $0 }, partitions: 1)
        func device(_ digit: String) -> String { String(repeating: digit, count: 64) }
        func registration(_ digit: String, _ user: String, _ application: String = "com.example.shop") -> String {
          #"{"device":"\#(device(digit))","application":"\#(application)","user":"\#(user)","since":1}"#
        }
        try await kafka.publish(
          [
            TestRecord(key: device("a"), registration("a", "ada")), TestRecord(key: device("b"), registration("b", "bob")),
            TestRecord(key: device("d"), registration("d", "ada")), TestRecord(key: device("d"), nil),
            TestRecord(key: device("e"), registration("e", "ada", "com.example.other")),
          ], to: prefix + "devices")
        var number = 0
        func told(_ type: String, _ members: String, _ application: String = "com.example.shop", of subject: String = Self.id) -> TestRecord
        {
          number += 1
          return event(type, "2026-01-31T12:00:00.000Z", #"{"n":\#(number),\#(members),"application":"\#(application)"}"#, of: subject)
        }
        func on(_ digit: String) -> String { #""device":"\#(device(digit))""# }
        try await kafka.publish(
          [
            told("addressed", #""target":"user:ada","user":"ada""#), told("addressed", #""target":"user:bob","user":"bob""#),
            told("rejected", #""target":"user:ada""#), told("delivered", on("a")), told("delivered", on("b")), told("delivered", on("c")),
            told("delivered", on("d")), told("delivered", on("e"), "com.example.other"),
            told("registered", #""user":"ada","registration":"# + registration("c", "ada"), of: device("c")), told("delivered", on("c")),
            told("unregistered-device", #""user":"ada""#, of: device("a")), told("delivered", on("a")),
            told("response", on("b") + #","user":"ada""#),
          ], to: prefix + "events")
        let flags = [
          "events", "--kafka", kafka.configuration.bootstrapServers.joined(separator: ","), "--topic-prefix", prefix, "--from", "beginning",
          "--until-idle", "300ms", "--json",
        ]
        for (filter, wanted) in [
          (["--user", "ada"], [1, 3, 4, 8, 9, 10, 11, 13]), (["--user", "ada", "--app", "com.example.other"], [8]),
          (["--app", "com.example.other"], [8]), (["--user", "ada", "--app", "com.example.shop"], [1, 3, 4, 9, 10, 11, 13]),
        ] as [([String], [Int64])] {
          let result = try await carillon.run(flags + filter)
          #expect(try result.lines.compactMap { try JSONValue(parsing: $0)["n"]?.integerValue } == wanted, "\(filter): \(result.errors)")
        }
      }
    }
  }
}

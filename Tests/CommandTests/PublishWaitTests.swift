import Foundation
import JSON
import TestSupport
import Testing

/// `carillon publish --wait`, with a cluster and devices.
@Suite struct PublishWaitTests {
  private static let tokens = ["d1", "d2"].map { String(repeating: $0, count: 32) }
  private static let publish = ["publish", "--target", "user:ada", "--app", "com.example", "--title", "Order", "--json"]

  private static func device(_ number: Int, _ carillon: CarillonCommand) async throws -> RunningCommand {
    let device = try carillon.start(
      ["device", "--token", tokens[number], "--app", "com.example", "--user", "ada", "--json"])
    try await device.untilOutput(contains: #""event":"connected""#)
    return device
  }

  /// The answers to a publication that waits, without the acknowledgement.
  private static func answers(_ result: CarillonCommand.Result) throws -> [JSONValue] {
    let lines = try result.lines.map { try JSONValue(parsing: $0) }
    let id = lines.first?["apnsId"]
    #expect(lines.first?["offset"] != nil && lines.allSatisfy { $0["apnsId"] == id }, "\(result)")
    return Array(lines.dropFirst())
  }

  @Test func `each device's outcome is printed, and what is rejected or reaches nobody`() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      let first = try await Self.device(0, carillon)
      let second = try await Self.device(1, carillon)

      let all = try await carillon.run(Self.publish + ["--wait", "10m"])
      #expect(all.status == 0, "it said: \(all.errors)")
      let outcomes = try Self.answers(all)
      #expect(Set(outcomes.dropLast().compactMap { $0["device"]?.stringValue }) == Set(Self.tokens))
      #expect(outcomes.dropLast().allSatisfy { $0["state"] == "delivered" && $0["sincePublicationMs"] != nil })
      #expect(outcomes.last?["state"] == "ended" && outcomes.last?["settled"] == true && outcomes.last?["missing"] == [])

      let rejected = try await carillon.run(Self.publish + ["--priority", "7", "--unchecked", "--wait", "10m"])
      #expect(rejected.status == 1)
      #expect(try Self.answers(rejected).map { $0["state"] } == ["rejected"], "\(rejected)")
      let nobody = try await carillon.run(
        ["publish", "--target", "user:nobody", "--app", "com.example", "--title", "x", "--wait", "10m"])
      #expect(nobody.status == 1 && nobody.lines.last?.contains("no registered device") == true, "\(nobody)")
      for device in [first, second] { try await device.stop() }
      try await up.stop()
    }
  }

  @Test(.onlyInAll("it is about time: it waits for a minute"))
  func `at the deadline those that have no outcome are printed`() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      let first = try await Self.device(0, carillon)
      let second = try await Self.device(1, carillon)
      try await second.stop()
      async let waiting = carillon.run(Self.publish + ["--wait", "1m"])
      async let reading = carillon.run(Self.publish.dropLast() + ["--wait", "1m"])
      let (some, text) = try await (waiting, reading)
      #expect(some.status == 1, "it said: \(some.errors)")
      let rest = try Self.answers(some)
      #expect(rest.count == 2 && rest.first?["device"] == .string(Self.tokens[0]) && rest.first?["state"] == "delivered", "\(rest)")
      #expect(rest.last?["settled"] == false && rest.last?["open"] == 1 && rest.last?["missing"] == [.string(Self.tokens[1])])
      #expect(text.status == 1 && text.lines.count == 3, "\(text)")
      #expect(
        text.lines[at: 1]?.contains("d1d1d1d1…d1d1d1d1  delivered") == true
          && text.lines[at: 2]?.contains("d2d2d2d2…d2d2d2d2  no outcome yet: queued") == true)
      try await first.stop()
      try await up.stop()
    }
  }
}

import Foundation
import JSON
import Kafka
import Redis
import TestSupport
import Testing
import Worker

@testable import Command

/// What others have put into Redis, or changed there, costs nobody else a notification.
@Suite struct TamperedRedisTests {
  private static let token = String(repeating: "ab", count: 32)
  private static let other = String(repeating: "cd", count: 32)
  private static let zeros = "00000000-0000-0000-0000-000000000000"
  private static func id(_ number: Int) -> String { "\(number)0000000-0000-4000-8000-000000000000" }

  @Test func `a rebuild that meets somebody else's key names it and says what to do`() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topics = Topics(prefix: KafkaFixture.unique("foreign") + ".")
      for topic in topics.all { try kafka.embedded?.createTopic(topic, partitions: 1) }
      try await withRedis(listening: .port(nil)) { redis in
        _ = try await RedisProbe.with(redis.address) { try await $0.command("SET", "cluster", "junk") }
        let refused = try await Typed.refusal([
          "rebuild", "--kafka", kafka.configuration.bootstrapServers.joined(separator: ","), "--redis", redis.address.description,
          "--topic-prefix", topics.prefix,
        ])
        #expect(refused.code == .dependencyMissing && refused.text.hasPrefix("cluster: "), "it says: \(refused.text)")
        #expect(refused.text.contains("Delete that key, or empty the Redis with FLUSHALL"), "it says: \(refused.text)")
      }
    }
  }

  @Test func aForeignFieldAndChangedBytesSilenceNoMailbox() async throws {
    try await WorkerPair.with { pair in
      try await pair.register(Self.token, user: "ada")
      let ids = [Self.zeros] + (1...3).map(Self.id)
      try await pair.publish(ids.map { WorkerPair.request("device:\(Self.token)", ["apns-id": $0]) })
      let mailbox = try await Self.mailbox(pair, Self.token, count: 4)
      // One entry loses the apostrophe of its payload, one has another head, and three fields are not ours.
      var payload = try await pair.entry(Self.id(1), in: mailbox)
      payload.bytes[payload.bytes.count - 1] = UInt8(ascii: "'")
      var head = try await pair.entry(Self.id(2), in: mailbox)
      head.bytes[40] ^= 1
      for (field, bytes) in [payload, head] { try await pair.redis.command("HSET", .text(mailbox), .bytes(field), .bytes(bytes)) }
      for field in ["junk", String(repeating: "x", count: 20), String(repeating: "long ", count: 9)] {
        try await pair.redis.command("HSET", .text(mailbox), .text(field), "not an entry")
      }

      let device = try pair.device(Self.token, user: "ada")
      try await pair.eventually("the others are shown") { pair.shown(by: device).isSuperset(of: [Self.zeros, Self.id(3)]) }
      try await pair.eventually("the mailbox is empty") { try await pair.redis.command("HLEN", .text(mailbox)).integer == 0 }
      #expect(pair.shown(by: device) == [Self.zeros, Self.id(3)])
      #expect(!device.outputSoFar.contains("badFrame"))
      let rejected = try await pair.events().filter { $0["ce_type"] == "carillon.rejected.v1" }
      #expect(Set(rejected.map { $0["ce_subject"]?.stringValue }) == [Self.id(1)])
      #expect(rejected.first?["device"]?.stringValue == Self.token)
      #expect(rejected.first?["reason"] == "InternalServerError")
      let metrics = try await pair.metrics()
      #expect(metrics[#"carillon_fanout_mailbox_damage_total{part="entry"}"#] == 4)
      #expect(metrics[#"carillon_fanout_mailbox_damage_total{part="payload"}"#] == 1)
      #expect(pair.fanOut.errorsSoFar.contains("mailbox=\(mailbox) fields=4"))
      // Nothing is known of the request whose id may have been changed; the id of zeros is one like any other.
      var audit: CarillonCommand.Result?
      try await pair.eventually("the audit finds nothing") {
        audit = try await pair.carillon.run(["audit", "--json", "--grace", "0"] + pair.flags)
        return audit?.status == 0
      }
      let outcomes = try JSONValue(parsing: try #require(audit?.lines.last))["outcomes"]
      #expect(outcomes?["delivered"] == 2 && outcomes?["rejected"] == 1, "\(audit?.output ?? "")")
    }
  }

  @Test(.onlyInAll("StoreTests have what a mailbox makes of foreign fields"))
  func aForeignFieldInAFullMailboxHoldsNoRequestUp() async throws {
    try await WorkerPair.with(transform: ["--mailbox-bound", "20"]) { pair in
      try await pair.register(Self.token, user: "ada")
      try await pair.publish([WorkerPair.request("device:\(Self.token)")])
      let mailbox = try await Self.mailbox(pair, Self.token, count: 1)
      try await pair.redis.command("HSET", .text(mailbox), "junk", "not an entry")
      try await pair.publish((0..<60).map { _ in WorkerPair.request("device:\(Self.token)") })
      try await pair.eventually("all are queued") {
        try await pair.metrics()[#"carillon_transform_verdicts_total{verdict="queued"}"#] == 61
      }
      try await pair.eventually("it is removed") { try await pair.redis.command("HEXISTS", .text(mailbox), "junk").integer == 0 }
      try await pair.eventually("the mailbox is within its bound") {
        try await pair.redis.command("HLEN", .text(mailbox)).integer ?? .max < 20 + 32
      }
      #expect(try await pair.metrics()[#"carillon_transform_unreadable_total{kind="mailbox_entry"}"#] == 1)
      #expect(pair.transform.errorsSoFar.contains("mailbox=\(mailbox) fields=1"))
    }
  }

  @Test(.onlyInAll("StoreTests have what is left out"))
  func whatIsNoDeviceAmongAPersonsDevicesIsLeftOut() async throws {
    try await WorkerPair.with { pair in
      for token in [Self.token, Self.other] { try await pair.register(token, user: "ada") }
      let people = try await pair.key("u", "\(WorkerPair.application)/ada")
      for member in ["junk", "zz\n", Self.token.uppercased(), ""] { try await pair.redis.command("ZADD", .text(people), 0, .text(member)) }
      try await pair.publish([WorkerPair.request("user:ada", ["apns-id": Self.id(1)])])
      var events: [JSONValue] = []
      try await pair.eventually("it is addressed") {
        events = try await pair.events().filter { $0["ce_subject"]?.stringValue == Self.id(1) }
        return events.contains { $0["ce_type"] == "carillon.addressed.v1" }
      }
      #expect(events.first { $0["ce_type"] == "carillon.addressed.v1" }?["devices"] == 2)
      for token in [Self.token, Self.other] { _ = try await Self.mailbox(pair, token, count: 1) }
    }
  }

  /// The key of a device's mailbox, when it has so many entries.
  private static func mailbox(_ pair: WorkerPair, _ token: String, count: Int64) async throws -> String {
    try await pair.eventually("the mailbox has them") {
      try await pair.redis.command("HLEN", .text(try await pair.key("m", token))).integer == count
    }
    return try await pair.key("m", token)
  }
}

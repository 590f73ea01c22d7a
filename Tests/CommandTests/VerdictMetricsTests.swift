import Foundation
import Redis
import TestSupport
import Testing

/// What the workers count and log of the records that they take.
@Suite struct VerdictMetricsTests {
  private static func token(_ digit: Character) -> String { String(repeating: digit, count: 64) }
  private static func id(_ number: Int) -> String { "\(number)0000000-0000-4000-8000-000000000000" }

  @Test func everyTakenRecordEndsInExactlyOneCountedVerdict() async throws {
    try await WorkerPair.with { pair in
      let (device, poisoned, former) = (Self.token("a"), Self.token("b"), Self.token("c"))
      for (token, user) in [(device, "ada"), (poisoned, "bob"), (former, "eve")] { try await pair.register(token, user: user) }
      // A person whose only device is another person's, and a mailbox that is none.
      let devices = RedisArgument.text(try await pair.key("u", "\(WorkerPair.application)/eve"))
      try await pair.redis.command("ZADD", devices, 0, .text(device))
      try await pair.redis.command("ZREM", devices, .text(former))
      let mailbox = try await pair.key("d", poisoned).replacingOccurrences(of: "d{", with: "m{")
      try await pair.redis.command("SET", .text(mailbox), "x")

      let target = "device:\(device)"
      let origin =
        #"{"cluster":"carillon","topic":"\#(pair.prefix)requests","partition":0,"offset":0,"timestamp":1600000000000,"why":"redrive"}"#
      let mix = [
        WorkerPair.request(target, ["apns-id": Self.id(1)]), WorkerPair.request(target, ["apns-id": Self.id(1)]),
        WorkerPair.request(target, ["apns-collapse-id": "x"]),
        WorkerPair.request(target, ["apns-collapse-id": "x", "carillon-origin": origin]),
        WorkerPair.request(target, ["apns-expiration": "1"]), WorkerPair.request("device:\(Self.token("d"))"),
        WorkerPair.request("user:nobody"), WorkerPair.request("user:eve"), WorkerPair.request("user:ada"),
        WorkerPair.request(target, ["apns-topic": "com.example.other"]),
        WorkerPair.request(target, ["apns-priority": "7"]), WorkerPair.request("device:\(poisoned)"),
        WorkerPair.request(target, ["operation": "remove", "apns-collapse-id": "x"], ""),
      ]
      try await pair.publish(mix)
      let verdicts = "carillon_transform_verdicts_total"
      try await pair.eventually("all have a verdict") { try await pair.sum(verdicts) >= Double(mix.count) }
      // And one that is done again, and succeeds then, unless the machine stands still for all of its tries.
      let retries = try await pair.sum("carillon_transform_retries_total")
      try await pair.publish([WorkerPair.request("device:\(poisoned)")])
      try await pair.eventually("it is tried again") { try await pair.sum("carillon_transform_retries_total") > retries }
      try await pair.redis.command("DEL", .text(mailbox))
      try await pair.eventually("it has a verdict") { try await pair.sum(verdicts) > Double(mix.count) }
      var metrics: [String: Double] = [:]
      try await pair.eventually("each that was taken has its verdict") {
        metrics = try await pair.metrics()
        return metrics["carillon_transform_requests_total"] == WorkerPair.sum(verdicts, of: metrics)
      }
      // After a Redis that stood still a lane reads again what Redis may have lost, and counts it again.
      let readsAgain = pair.transform.errorsSoFar.contains("no reply from redis")
      func holds(_ count: Double?, _ expected: Int) -> Bool { count == Double(expected) || readsAgain && (count ?? 0) > Double(expected) }
      func verdict(_ name: String, _ metric: String = verdicts) -> Double? { metrics["\(metric){verdict=\"\(name)\"}"] }

      #expect(holds(metrics["carillon_transform_requests_total"], mix.count + 1))
      // The first, the one of a collapse id, the removal, and the one that was done again.
      let poisons = verdict("poison") ?? 0
      #expect((1...2).contains(poisons) && holds(verdict("queued"), 5 - Int(poisons)))
      #expect(holds(verdict("duplicate"), 1) && holds(verdict("collapsed"), 1) && holds(verdict("expired"), 1))
      #expect(holds(verdict("unregistered"), 3) && holds(verdict("rejected"), 2) && holds(verdict("addressed"), 1))
      #expect(holds(verdict("other_user", "carillon_transform_device_verdicts_total"), 1))
      #expect(holds(verdict("wrong_application", "carillon_transform_device_verdicts_total"), 1))
      let applied = verdict("applied", "carillon_transform_registration_verdicts_total")
      #expect(holds(metrics["carillon_transform_registrations_total"], 3) && holds(applied, 3))
      #expect(WorkerPair.sum("carillon_transform_registration_verdicts_total", of: metrics) == applied)
      Self.expectSnakeCase(metrics.keys)

      var lines: [Substring] = []
      try await pair.eventually("each poison is in the log") {
        lines = pair.transform.errorsSoFar.split(separator: "\n")
        return Double(lines.count { $0.contains("a record could not be processed: the dead letters have it") }) == poisons
      }
      #expect(lines.contains { $0.contains("topic=\(pair.prefix)requests partition=0 offset=11 reason=") }, "\(lines)")
      let assigned = lines.filter { $0.contains("partitions assigned") }
      #expect(assigned.count == 1 && assigned[0].hasSuffix(" requests=0-3 devices=0-3"), "\(assigned)")
    }
  }

  /// The values of labels are written like the names; a version, a histogram's bounds, and Kafka's names and numbers are no words of ours.
  private static let ofOthers: Set<Substring> = ["version", "le", "topic", "partition"]

  private static func expectSnakeCase(_ series: some Sequence<String>) {
    for label in series.flatMap({ $0.matches(of: /([a-z_]+)="([^"]*)"/) }) where !ofOthers.contains(label.output.1) {
      #expect(label.output.2.wholeMatch(of: /[a-z][a-z0-9_]*/) != nil, "\(label.output.0)")
    }
  }
}

import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// Requests by HTTP, with real processes, and backends that know the article.
  @Suite(.serialized, .inPython)
  struct IngressTests {
    private let ingress = Script(
      "ingress.py", short: ["clients", "killed", "hostile", "drained"],
      ClusterTests.contract + (ClusterFixture.kafkaFolder.map { ["--kafka-folder", $0] } ?? []))

    @Test(arguments: ClusterKafka.ofForm)
    func `curl, Python and JavaScript publish, schedule, cancel and remove as the article says`(_ kafka: ClusterKafka) async throws {
      try await ingress.holds("clients", on: kafka)
    }

    @Test(arguments: ClusterKafka.ofForm)
    func `an ingress that is killed loses nothing and repeats nothing for backends that repeat`(_ kafka: ClusterKafka) async throws {
      try await ingress.holds("killed", on: kafka)
    }

    @Test(arguments: ClusterKafka.ofForm)
    func `bad bodies, bad HTTP, bad tokens and bad peers are refused, and delay nobody`(_ kafka: ClusterKafka) async throws {
      try await ingress.holds("hostile", on: kafka)
    }

    @Test(arguments: ClusterKafka.ofForm)
    func `an ending ingress answers every request, and Kafka has what it accepted`(_ kafka: ClusterKafka) async throws {
      try await ingress.holds("drained", on: kafka)
    }

    @Test(.withOwnBrokers, .onlyInAll("it is about time: each sender has its answer in four seconds"))
    func `while Kafka stands still or trickles each sender has its answer, and memory has its bound`() async throws {
      try await ingress.holds("frozen")
    }
  }
}

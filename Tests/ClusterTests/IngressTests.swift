import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// Requests by HTTP, with real processes, and backends that know the article.
  @Suite(.serialized, .inPython)
  struct IngressTests {
    private let ingress = Script("ingress.py", short: ["clients", "killed"], ClusterTests.contract)

    @Test(arguments: ClusterKafka.ofForm)
    func `curl, Python and JavaScript publish, schedule, cancel and remove as the article says`(_ kafka: ClusterKafka) async throws {
      try await ingress.holds("clients", on: kafka)
    }

    @Test(arguments: ClusterKafka.ofForm)
    func `an ingress that is killed loses nothing and repeats nothing for backends that repeat`(_ kafka: ClusterKafka) async throws {
      try await ingress.holds("killed", on: kafka)
    }
  }
}

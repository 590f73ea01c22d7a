import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

/// Guarantees across processes: real workers, real sockets, and clients that know nothing but the contract.
@Suite(.serialized) enum ClusterTests {}

extension ClusterTests {
  /// Where the clients of these tests are.
  static func client(_ name: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Clients/\(name)").path
  }

  /// A client that proves one guarantee with each of its parts, starts the workers for it by itself, and says `held` in its last line.
  struct Script {
    let name: String
    /// How long a part may take.
    let seconds: Int
    /// What it is given beside the part's name and where everything is.
    let more: [String]

    init(_ name: String, withinSeconds seconds: Int, _ more: [String] = []) { (self.name, self.seconds, self.more) = (name, seconds, more) }

    /// Runs a part in a cluster that has topics and no workers, and throws what it said unless all that it proves holds.
    func holds(_ part: String, on kafka: ClusterKafka = .real) async throws {
      try await ClusterFixture.with(kafka) { cluster in
        let script = try await cluster.client(client(name), ["--binary", cluster.carillon(), "--part", part] + more)
        let exit = try await script.exit(withinSeconds: seconds)
        guard exit == .exited(0), script.lines.last?["result"]?.stringValue == "held" else {
          throw ClusterFailure("\(name) --part \(part) ended with \(exit): \(script.text)")
        }
      }
    }
  }
}

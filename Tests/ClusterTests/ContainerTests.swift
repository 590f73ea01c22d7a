import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// The cluster of `docker-compose.yml` in containers.
  @Suite(.serialized, .inPython, .enabled(if: hasDocker, "no Docker with Compose answers"))
  struct ContainerTests {
    @Test(.onlyInAll("it builds images, and takes minutes"))
    func `a cluster in containers loses, repeats and outdates nothing while it is scaled, killed, stopped and its servers restart`()
      async throws
    {
      let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
      try await ClusterFixture.with(.embedded) { cluster in
        let script = try await cluster.program(client("containers.py"), ["--root", root, "--binary", cluster.carillon()])
        _ = try await script.exit(hangs: 12)
        #expect(script.text.contains(#""result": "held""#), "\(script.text)")
      }
    }
  }

  /// Whether a Docker with Compose answers.
  fileprivate static let hasDocker: Bool = {
    let asked = Process()
    (asked.executableURL, asked.arguments) = (URL(filePath: "/bin/sh"), ["-c", "docker info && docker compose version"])
    (asked.standardOutput, asked.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
    guard (try? asked.run()) != nil else { return false }
    asked.waitUntilExit()
    return asked.terminationStatus == 0
  }()
}

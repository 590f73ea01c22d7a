import EventLoop
import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// Workers with TLS, and devices of the library.
  @Suite(.serialized) struct TLSTests {
    /// The files of a worker.
    private struct Files {
      let certificate: String
      let key: String

      /// Replaces one file after the other, each at once.
      func put(_ pair: TestCertificates.Pair) throws {
        try pair.key.write(toFile: key, atomically: true, encoding: .utf8)
        try pair.certificate.write(toFile: certificate, atomically: true, encoding: .utf8)
      }
    }

    private static func publish(_ token: String, _ identifier: String, in cluster: ClusterFixture) async throws {
      let tool = try await cluster.tool([
        "publish", "--kafka", cluster.kafka, "--topic-prefix", cluster.prefix, "--target", "device:\(token)", "--app", "com.example.shop",
        "--title", "Order", "--collapse-id", identifier,
      ])
      #expect(try await tool.exit() == .exited(0))
    }

    /// Expects that a device is refused with a reason, and returns whether any was shown a notification.
    private static func expectRefusal(_ url: String, _ authorities: String?, _ reason: String) async throws {
      let fleet = try Fleet(1, url: url, authorities: authorities)
      try await fleet.start()
      try? await fleet.until("a device is refused: \(reason)") { $0[0].unreachable.contains { $0.contains(reason) } }
      #expect(fleet.read()[0].welcomes.isEmpty)
      await fleet.close()
    }

    @Test(arguments: ClusterKafka.ofForm)
    func aConnectionOutlivesItsCertificateAndOthersAreRefusedWithTheReason(_ kafka: ClusterKafka) async throws {
      let certificates = try await TestCertificates.shared.value
      try await ClusterFixture.with(kafka, redisOverTLS: true) { cluster in
        try await TestFolder.with { folder in
          let files = Files(certificate: "\(folder.path)/certificate.pem", key: "\(folder.path)/key.pem")
          try files.put(certificates.good)
          try await cluster.transform()
          let worker = try await cluster.fanOut([
            "--tls-certificate", files.certificate, "--tls-key", files.key, "--listen-plain", "127.0.0.1:0",
          ])
          let url = worker.devices
          #expect(url.hasPrefix("wss://127.0.0.1:"))
          let fleet = try Fleet(2, url: url, authorities: certificates.authority)
          try await fleet.start()
          try await fleet.until("both devices are connected") { $0.allSatisfy(\.isConnected) }
          try await Self.publish(fleet.tokens[0], "first", in: cluster)
          try await fleet.until("it is shown") { $0[0].shown["first"] == 1 }

          let plain = try #require(worker.text.firstMatch(of: /also connect without TLS.*address=(\S+)/))
          let simple = try Fleet(1, url: "ws://\(plain.output.1)/v1/device")
          try await simple.start()
          try await simple.until("a device without TLS is connected") { $0[0].isConnected }
          await simple.close()
          try await Self.expectRefusal(url.replacing("wss://", with: "ws://"), nil, "This port speaks TLS")
          try await Self.expectRefusal(url, nil, "no known authority")

          // By its change, then by the signal.
          try files.put(certificates.other)
          await eventually("the worker takes it") { worker.text.matches(of: /the certificate is in force/).count == 2 }
          try await Self.expectRefusal(url, certificates.authority, "another name")
          try files.put(certificates.expired)
          await worker.signal(SIGHUP)
          await eventually("the worker takes it") { worker.text.contains("the certificate has expired") }
          try await Self.expectRefusal(url, certificates.authority, "has expired")
          try files.put((certificate: "nothing", key: certificates.good.key))
          await worker.signal(SIGHUP)
          await eventually("the worker refuses the files") {
            worker.text.contains("--tls-certificate: \(files.certificate): it holds no certificate")
          }
          try await Self.expectRefusal(url, certificates.authority, "has expired")

          try await Self.publish(fleet.tokens[1], "last", in: cluster)
          try await fleet.until("the open connections go on") { $0[1].shown["last"] == 1 }
          #expect(fleet.read().allSatisfy { $0.welcomes.count == 1 && $0.ends.isEmpty })
          await fleet.close()
        }
      }
    }
  }
}

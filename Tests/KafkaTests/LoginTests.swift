import Foundation
import TestSupport
import Testing

@testable import Kafka

/// The errors of a client that a broker does not let in.
@Suite struct LoginTests {
  @Test(arguments: ["sasl.password", "sasl.username", "sasl.mechanism", "ssl.key.password", "ssl.ca.location", "linger.ms", "acks"])
  func `librdkafka has the property, also where nothing is set`(name: String) { #expect(KafkaConfiguration.hasProperty(name)) }

  @Test(arguments: ["sasl.pasword", "", "linger", "\u{0}"])
  func `librdkafka has no such property`(name: String) { #expect(!KafkaConfiguration.hasProperty(name)) }

  @Test(
    .onlyInAll("a second broker"),
    .enabled(if: ClusterFixture.kafkaFolder != nil, "\(KafkaFixture.howToGetOne)"))
  func `a wrong password and a mechanism that fails throw the broker's words`() async throws {
    let (module, jaas) = ("org.apache.kafka.common.security", "sasl.jaas.config")
    let login = "required username=\"ada\" password=\"right\""
    let settings = [
      "listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT", "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
      "sasl.mechanism.inter.broker.protocol=PLAIN",
      "listener.name.plaintext.plain.\(jaas)=\(module).plain.PlainLoginModule \(login) user_ada=\"right\";",
      "listener.name.plaintext.scram-sha-512.\(jaas)=\(module).scram.ScramLoginModule \(login);",
    ]
    try await CarillonCommand.with { carillon in
      try await Self.withBroker(carillon, settings) { try await Self.logIn(at: $0) }
    }
  }

  /// Lends the address of a broker with these settings.
  private static func withBroker(_ carillon: CarillonCommand, _ settings: [String], _ body: (_ address: String) async throws -> Void)
    async throws
  {
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Deploy/kafka")
    let folder = carillon.folder.path + "/" + KafkaFixture.unique("kafka")
    let environment = ["TESTS_KAFKA_FOLDER": ClusterFixture.kafkaFolder ?? ""]
    let started = try await carillon.run(
      ["start", folder] + settings.flatMap { ["--config", $0] }, environment: environment, program: script)
    let address = try #require(started.lines.last, "\(started.errors)")
    do { try await body(address) } catch {
      _ = try await carillon.run(["kill", folder], environment: environment, program: script)
      throw error
    }
    _ = try await carillon.run(["stop", folder], environment: environment, program: script)
  }

  @Test(
    .onlyInAll("two brokers of its own"),
    .enabled(if: ClusterFixture.kafkaFolder != nil, "\(KafkaFixture.howToGetOne)"))
  func `over TLS the program logs in by a password or a certificate, and says what is wrong`() async throws {
    let certificates = try await TestCertificates.shared.value
    try await CarillonCommand.with { carillon in
      let authority = try carillon.file("ca.pem", certificates.authority)
      let stranger = try carillon.file("stranger.pem", certificates.expired.certificate)
      let (certificate, key) = (
        try carillon.file("client.pem", certificates.next.certificate), try carillon.file("client.key", certificates.next.key)
      )
      let tls = [
        "ssl.keystore.type=PEM",
        "ssl.keystore.location=\(try carillon.file("store.pem", certificates.good.key + certificates.good.certificate))",
        "ssl.truststore.type=PEM", "ssl.truststore.location=\(authority)",
      ]
      let login = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"ada\" password=\"right\" user_ada=\"right\";"
      let password = [
        "listener.security.protocol.map=PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT", "sasl.enabled.mechanisms=PLAIN",
        "sasl.mechanism.inter.broker.protocol=PLAIN", "listener.name.plaintext.plain.sasl.jaas.config=\(login)",
      ]
      try await Self.withBroker(carillon, tls + password) { address in
        func run(_ words: [String], _ password: String = "right", trusting other: String? = nil) async throws
          -> CarillonCommand.Result
        {
          try await carillon.run(
            words + [
              "--kafka", address, "--kafka.security.protocol=SASL_SSL", "--kafka.sasl.mechanism=PLAIN", "--kafka.sasl.username=ada",
              "--kafka.ssl.ca.location=\(other ?? authority)",
            ], environment: ["CARILLON_KAFKA_SASL_PASSWORD": password])
        }
        let created = try await run(["topics", "create", "--partitions", "1"])
        #expect(created.status == 0, "\(created.errors)")
        let published = try await run(["publish", "--target", "user:ada", "--app", "com.example.shop", "--title", "over TLS"])
        #expect(published.status == 0 && published.lines.count == 1, "\(published.errors)")
        let wrong = try await run(["topics", "create"], "wrong")
        #expect(wrong.status == 3 && wrong.errors.contains("Invalid username or password"), "\(wrong)")
        #expect(!wrong.errors.contains("wrong"))
        let untrusted = try await run(["topics", "create"], trusting: stranger)
        #expect(untrusted.status == 3 && untrusted.errors.contains("ssl.ca.location"), "\(untrusted)")
      }
      let mutual = [
        "listener.security.protocol.map=PLAINTEXT:SSL,CONTROLLER:PLAINTEXT", "listener.name.plaintext.ssl.client.auth=required",
      ]
      try await Self.withBroker(carillon, tls + mutual) { address in
        let flags = ["topics", "create", "--kafka", address, "--kafka.security.protocol=SSL", "--kafka.ssl.ca.location=\(authority)"]
        let unknown = try await carillon.run(flags)
        #expect(unknown.status == 3 && unknown.errors.contains("alert") && unknown.errors.contains("check the certificates"), "\(unknown)")
        let known = try await carillon.run(
          flags + ["--kafka.ssl.certificate.location=\(certificate)", "--kafka.ssl.key.location=\(key)"])
        #expect(known.status == 0, "\(known.errors)")
      }
    }
  }

  private static func logIn(at address: String) async throws {
    func answer(_ mechanism: String, _ password: String) async throws -> KafkaError? {
      let configuration = KafkaConfiguration(
        bootstrapServers: [address],
        properties: [
          "security.protocol": "sasl_plaintext", "sasl.mechanism": mechanism, "sasl.username": "ada", "sasl.password": password,
        ])
      return try await Admin.with(configuration, timeoutMilliseconds: Int32(hangMilliseconds)) { admin in
        do throws(KafkaError) { _ = try await admin.describeCluster() } catch { return error }
        return nil
      }
    }
    #expect(try await answer("PLAIN", "right") == nil)
    let wrong = try #require(try await answer("PLAIN", "wrong"))
    #expect(wrong.code == .authentication && wrong.message.contains("Invalid username or password"), "\(wrong)")
    #expect(!wrong.hint.contains("2.6.1"))
    let scram = try #require(try await answer("SCRAM-SHA-512", "right"))
    #expect(scram.code == .authentication && scram.hint.contains("2.6.1"), "\(scram)")
  }
}

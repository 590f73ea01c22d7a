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
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Deploy/kafka")
    let (module, jaas) = ("org.apache.kafka.common.security", "sasl.jaas.config")
    let login = "required username=\"ada\" password=\"right\""
    let settings = [
      "listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT", "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
      "sasl.mechanism.inter.broker.protocol=PLAIN",
      "listener.name.plaintext.plain.\(jaas)=\(module).plain.PlainLoginModule \(login) user_ada=\"right\";",
      "listener.name.plaintext.scram-sha-512.\(jaas)=\(module).scram.ScramLoginModule \(login);",
    ]
    try await CarillonCommand.with { carillon in
      let folder = carillon.folder.path + "/kafka"
      let environment = ["TESTS_KAFKA_FOLDER": ClusterFixture.kafkaFolder ?? ""]
      let started = try await carillon.run(
        ["start", folder] + settings.flatMap { ["--config", $0] }, environment: environment, program: script)
      let address = try #require(started.lines.last, "\(started.errors)")
      do { try await Self.logIn(at: address) } catch {
        _ = try await carillon.run(["kill", folder], environment: environment, program: script)
        throw error
      }
      _ = try await carillon.run(["stop", folder], environment: environment, program: script)
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

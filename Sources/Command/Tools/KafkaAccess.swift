import Kafka
import Worker

/// The first questions of tools to Kafka, with errors that say what to type.
extension Admin {
  /// How long the first answer may take for a waiting person. A slower server is most likely not Kafka.
  static let firstAnswerMilliseconds: Int32 = standardMilliseconds

  /// The partitions of a topic that must exist.
  func partitions(of topic: String, at configuration: KafkaConfiguration) async throws(Failure) -> [TopicPartition] {
    do throws(KafkaError) {
      return try await describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
    } catch {
      if error.code == .unknownTopicOrPartition {
        throw Failure(.dependencyMissing, "there is no topic \(topic) at \(configuration.servers): 'carillon topics create' makes it")
      }
      throw configuration.failure(error)
    }
  }

  /// The brokers' limits for writes to these topics. Unknown ones are reported.
  func writeLimits(of topics: [String], at configuration: KafkaConfiguration) async throws(Failure) -> WriteLimits {
    do throws(KafkaError) {
      let limits = try await writeLimits(of: topics)
      for (topic, error) in limits.unknown.sorted(by: { $0.key < $1.key }) where error.code != .unknownTopicOrPartition {
        StandardError.line("max.message.bytes of \(topic) is not known (\(error.message)): 1 MiB is assumed")
      }
      return limits
    } catch {
      throw configuration.failure(error)
    }
  }
}

extension KafkaConfiguration {
  /// The bootstrap servers, as a person types them.
  var servers: String { bootstrapServers.joined(separator: ",") }

  /// Makes an error during the work an error for the person who typed the command.
  ///
  /// - Parameter wayOn: how to continue, as the end of a sentence: "the same command continues".
  func failure(_ error: KafkaError, midway wayOn: String) -> Failure {
    guard error.isOfAbsence else { return Failure(.dependencyMissing, "\(error): \(wayOn)") }
    return Failure(.dependencyMissing, "Kafka does not answer any more at \(servers) (\(error.message)): when it does, \(wayOn)")
  }

  /// Makes the error of a first question an error for the person who typed the command.
  func failure(_ error: KafkaError) -> Failure {
    switch error.code {
    case _ where error.isOfAbsence:
      Failure(
        .dependencyMissing,
        "Kafka does not answer at \(servers) (\(error.message)): is it Kafka that listens there, and are its security settings given?")
    case .invalidConfiguration: Failure(.wrongUsage, "\(error)")
    default: Failure(.dependencyMissing, "\(error)")
    }
  }
}

extension KafkaError {
  /// Whether there may be no broker.
  fileprivate var isOfAbsence: Bool { [.transport, .allBrokersDown, .timedOut, .messageTimedOut, Self.gaplessGuarantee].contains(code) }

  /// librdkafka's `_GAPLESS_GUARANTEE`: a record timed out, and the records after it would leave a gap.
  private static var gaplessGuarantee: Code { Code(rawValue: -148) }
}

import Kafka
import Worker

/// What tools ask of Kafka before they begin, with errors that say what to type.
extension Admin {
  /// How long a first answer may take where somebody waits for it: who takes longer is most likely no Kafka.
  static let firstAnswerMilliseconds: Int32 = standardMilliseconds

  /// The partitions of a topic that must be there.
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
}

extension KafkaConfiguration {
  /// The bootstrap servers as they are typed.
  var servers: String { bootstrapServers.joined(separator: ",") }

  /// An error of a first question as one for the person who typed the command.
  func failure(_ error: KafkaError) -> Failure {
    switch error.code {
    case .transport, .allBrokersDown, .timedOut:
      Failure(
        .dependencyMissing,
        "Kafka does not answer at \(servers) (\(error.message)): is it Kafka that listens there, and are its security settings given?")
    case .invalidConfiguration: Failure(.wrongUsage, "\(error)")
    default: Failure(.dependencyMissing, "\(error)")
    }
  }
}

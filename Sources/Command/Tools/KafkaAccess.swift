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

  /// What the brokers take of those who write to these topics; says what they do not tell.
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
  /// The bootstrap servers as they are typed.
  var servers: String { bootstrapServers.joined(separator: ",") }

  /// An error in the middle of some work as one for the person who typed the command.
  ///
  /// - Parameter wayOn: what goes on where it was, as a sentence's end: "the same line goes on".
  func failure(_ error: KafkaError, midway wayOn: String) -> Failure {
    guard error.isOfAbsence else { return Failure(.dependencyMissing, "\(error): \(wayOn)") }
    return Failure(.dependencyMissing, "Kafka does not answer any more at \(servers) (\(error.message)): when it does, \(wayOn)")
  }

  /// An error of a first question as one for the person who typed the command.
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
  /// Whether it may be that no broker is there.
  fileprivate var isOfAbsence: Bool { [.transport, .allBrokersDown, .timedOut, .messageTimedOut, Self.gaplessGuarantee].contains(code) }

  /// librdkafka's `_GAPLESS_GUARANTEE`: a record timed out, and what follows it would leave a gap.
  private static var gaplessGuarantee: Code { Code(rawValue: -148) }
}

public import EventLoop
public import Kafka

/// The two producers of a lane, since librdkafka has one linger for all that a client sends. Loop-confined.
///
/// A batch costs the broker, both network threads and whoever reads it about the same whether it holds one record or a hundred, so each
/// record waits for company, as long as its readers do not mind:
///
/// | | waits | what goes by it |
/// |---|---|---|
/// | `prompt` | 5 ms | what a device or a person waits for: deliveries, takeovers, registrations, responses |
/// | `patient` | 50 ms | what is only written down: outcomes, dead letters |
///
/// With three thousand records a second over a dozen partitions, 5 ms make batches of one or two records, 50 ms of a dozen. A person does not
/// notice 5 ms. 50 ms are noticed by nobody who reads events, and keep an acknowledged notification in its mailbox for as much longer.
/// Order is promised to nobody between the two: a `response` may stand before the `delivered` of the same notification.
///
/// What is only written down may come twice, and change its order, when sending is retried: outcomes have the ids of what happened, so that
/// readers drop repeats, as they must after a worker's end; the journal is read as a union; a dead letter that is redriven twice is judged once.
/// So `patient` is no idempotent producer, of which librdkafka lets no more than five requests, each of one partition, wait for a broker's
/// answer: with 200 ms to Kafka and back those are 25 requests a second, whatever waits for them.
///
/// A batch of either is no larger than the smallest `max.message.bytes` of the topics that it writes to. Where that was lowered since, or is
/// not known, a refused batch is sent once more record by record: see `Producer.Options.givesAgain`.
public struct LaneProducers {
  /// Records that each of the two has in flight at most: four for each of a transform lane's unfinished requests.
  public static let maximumRecords = 400_000

  /// For what somebody waits for.
  public let prompt: Producer
  /// For all else.
  public let patient: Producer

  /// Makes both, or none.
  ///
  /// - Parameters:
  ///   - limits: what the brokers take as one batch.
  ///   - topics: those that each of the two writes to.
  ///   - promptMayRepeat: what goes by the prompt one may come twice or change its order, too.
  ///   - handler: gets the reports of both.
  public init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ limits: WriteLimits, topics: (prompt: [String], patient: [String]),
    promptMayRepeat: Bool = false, handler: any ProducerHandler, onLog: @escaping (KafkaLogLine) -> Void
  ) async throws(KafkaError) {
    var options = Producer.Options()
    options.lingerMilliseconds = 5
    options.isIdempotent = !promptMayRepeat
    // Responses have the ids that their devices gave them, and a takeover the generation that it ends.
    options.givesAgain = true
    options.maximumRecords = Self.maximumRecords
    options.batchBytes = limits.batchBytes(ofEach: topics.prompt)
    prompt = try Producer(on: loop, kafka, options, handler: handler)
    options.lingerMilliseconds = 50
    options.isIdempotent = false
    options.batchBytes = limits.batchBytes(ofEach: topics.patient)
    do throws(KafkaError) {
      patient = try Producer(on: loop, kafka, options, handler: handler)
    } catch {
      await prompt.close(withinMilliseconds: 1_000)
      throw error
    }
    for producer in [prompt, patient] { producer.onLog = onLog }
  }

  /// Shows how full they are, and whether Kafka acknowledges what they send; to be called once a second.
  public func show(in metrics: ClientMetrics, _ health: Health) {
    let now = SteadyClock.milliseconds()
    let ages = [(prompt, metrics.prompt), (patient, metrics.patient)].map { producer, cells in
      let age = producer.oldestInFlight(at: now)
      cells.show(producer, age: age)
      return age
    }
    let age = ages.max() ?? 0
    let refusing = (prompt.refusingTopics(at: now) + patient.refusingTopics(at: now)).map { KafkaError($0.code, "write to \($0.topic)") }
    let reason =
      refusing.isEmpty
      ? "Kafka has not acknowledged a record for \(ReadableText.duration(milliseconds: age)); it is sent again"
      : "Kafka takes no record: " + Set(refusing.map { "\($0)" }).sorted().joined(separator: "; ")
    health.set("kafka-writes", ready: refusing.isEmpty && age < Self.slowMilliseconds, reason)
  }

  /// How long Kafka may take with a record, in milliseconds. Brokers that start again, and elections, take less.
  private static let slowMilliseconds: Int64 = 20_000

  /// Waits until nothing is in flight, or the time has passed; call it from the loop's actor.
  public func flush(withinMilliseconds milliseconds: Int) async {
    let end = Deadline(on: prompt.loop, after: milliseconds)
    for producer in [patient, prompt] { _ = await producer.flush(withinMilliseconds: end.left) }
  }

  /// Closes both, what is only written down first: it has waited longest.
  ///
  /// - Parameter milliseconds: for both together.
  public func close(withinMilliseconds milliseconds: Int) async {
    let end = Deadline(on: prompt.loop, after: milliseconds)
    for producer in [patient, prompt] { await producer.close(withinMilliseconds: end.left) }
  }
}

public import EventLoop
public import Kafka

/// The two producers of a lane.
///
/// librdkafka has one linger for all records of a client. A batch costs the broker, both network threads and the reader about the same with
/// one record or a hundred. So each record waits for others, as long as its readers allow:
///
/// | | waits | its records |
/// |---|---|---|
/// | `prompt` | 5 ms | records that a device or a person waits for: deliveries, takeovers, registrations, responses |
/// | `patient` | 50 ms | records that nobody waits for: outcomes, dead letters |
///
/// With three thousand records a second over a dozen partitions, 5 ms make batches of one or two records, and 50 ms batches of a dozen. A
/// person does not notice 5 ms. Readers of events do not notice 50 ms, which also delay the deletion of an acknowledged mailbox entry. The
/// two producers keep no common order: a `response` may come before the `delivered` of the same notification.
///
/// Records of `patient` may arrive twice or out of order after a retry. The ids of outcomes are deterministic, so readers drop repeats, as
/// they must after a worker's crash. The journal is read as a union. A dead letter that is redriven twice is judged once.
/// So `patient` is not idempotent. An idempotent librdkafka allows five requests to wait for a broker's answer, each of one partition: with
/// 200 ms to Kafka and back only 25 requests a second.
///
/// A batch of either is no larger than the smallest `max.message.bytes` of its topics. If that was lowered since, or is unknown, the
/// records of a refused batch are sent once more, each alone: see `Producer.Options.givesAgain`.
public struct LaneProducers {
  /// The most records in flight of each of the two. Four for each unfinished request of a transform lane.
  public static let maximumRecords = 400_000

  /// The producer of records that somebody waits for.
  public let prompt: Producer
  /// The producer of all other records.
  public let patient: Producer

  /// Makes both, or neither.
  ///
  /// - Parameters:
  ///   - limits: the brokers' limits of batches.
  ///   - topics: the topics of each of the two.
  ///   - promptMayRepeat: whether records of the prompt producer may also arrive twice or out of order.
  ///   - handler: gets the reports of both.
  public init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ limits: WriteLimits, topics: (prompt: [String], patient: [String]),
    promptMayRepeat: Bool = false, handler: any ProducerHandler, onLog: @escaping (KafkaLogLine) -> Void
  ) async throws(KafkaError) {
    var options = Producer.Options()
    options.lingerMilliseconds = 5
    options.isIdempotent = !promptMayRepeat
    // A response has the id that its device gave it, and a takeover has the generation that it ends.
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

  /// Shows how full they are, and whether Kafka acknowledges records. Call it once a second.
  public func show(in metrics: ClientMetrics, _ health: Health) {
    Self.show([(prompt, metrics.prompt), (patient, metrics.patient)], health)
  }

  /// Shows the same of any producers of a lane.
  public static func show(_ producers: [(Producer, ProducerMetrics)], _ health: Health) {
    let now = SteadyClock.milliseconds()
    let ages = producers.map { producer, cells in
      let age = producer.oldestInFlight(at: now)
      cells.show(producer, age: age)
      return age
    }
    let age = ages.max() ?? 0
    let refusing = producers.flatMap { $0.0.refusingTopics(at: now) }.map { KafkaError($0.code, "write to \($0.topic)") }
    let reason =
      refusing.isEmpty
      ? "Kafka has not acknowledged a record for \(ReadableText.duration(milliseconds: age)); it is sent again"
      : "Kafka takes no record: " + Set(refusing.map { "\($0)" }).sorted().joined(separator: "; ")
    health.set("kafka-writes", ready: refusing.isEmpty && age < slowMilliseconds, reason)
  }

  /// The longest normal time until a record is acknowledged, in milliseconds. Restarts of brokers and elections take less.
  private static let slowMilliseconds: Int64 = 20_000

  /// Waits until no record is in flight, or until the time is over. Call it from the loop's actor.
  public func flush(withinMilliseconds milliseconds: Int) async {
    let end = Deadline(on: prompt.loop, after: milliseconds)
    for producer in [patient, prompt] { _ = await producer.flush(withinMilliseconds: end.left) }
  }

  /// Closes both, first the patient one, whose records have waited longest.
  ///
  /// - Parameter milliseconds: the time for both together.
  public func close(withinMilliseconds milliseconds: Int) async {
    let end = Deadline(on: prompt.loop, after: milliseconds)
    for producer in [patient, prompt] { await producer.close(withinMilliseconds: end.left) }
  }
}

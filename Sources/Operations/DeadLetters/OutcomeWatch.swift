public import EventLoop
public import Kafka
import Notifications
import Worker

/// Follows requests that were published again until each has its outcomes: an actor on a loop.
///
/// What the journal and the events say from a moment on is read as it comes, a stretch at a time; memory is that of ``maximum`` timelines.
public actor OutcomeWatch {
  /// Requests that are followed at most.
  public static let maximum = 1_000
  /// How long between two looks, in milliseconds.
  private static let pause = 500

  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let rules: RequestRules
  private let found = Found()
  /// How far the topics were read.
  private var positions: [TopicPartition: Int64] = [:]
  private var isStopped = false

  private final class Found {
    var timelines: [NotificationID: Timeline] = [:]
    var letters: [NotificationID: String] = [:]
    /// Those that are followed, by the partition in which they lie.
    var requests: [Int32: [PublishedRequest]] = [:]
  }

  /// What became of a request.
  public struct Outcome: Sendable {
    /// What was said of it, the letter for example.
    public var name: String
    /// Its timeline from the moment on from which it was followed.
    public var explanation: Explanation
    /// Whether nothing more is to be expected.
    public var isSettled: Bool
  }

  /// Makes one for a cluster.
  public init(on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules) {
    self.loop = loop
    self.kafka = kafka
    self.rules = rules
  }

  /// Ends following at the next look.
  public func stop() { isStopped = true }

  /// Notes the moment from which requests are followed: where the topics end now.
  public func begin() async throws {
    try await Admin.with(kafka) { admin in
      for topic in [rules.topics.journal, rules.topics.events] {
        for stretch in try await admin.stretches(of: topic) { positions[stretch.partition] = stretch.offsets.upperBound }
      }
    }
  }

  /// Follows the requests that lie at these places, and says what became of each as soon as it is known.
  ///
  /// - Parameters:
  ///   - places: each with what it is called in its outcome.
  ///   - milliseconds: for how long; then the rest is said as it stands.
  public func follow(
    _ places: [(name: String, partition: Int32, offset: Int64)], forMilliseconds milliseconds: Int,
    onOutcome: @Sendable (Outcome) -> Void
  ) async throws {
    try await Admin.with(kafka) { admin in
      try await follow(places, until: SteadyClock.milliseconds() + Int64(milliseconds), admin, onOutcome)
    }
  }

  private func follow(
    _ places: [(name: String, partition: Int32, offset: Int64)], until end: Int64, _ admin: Admin, _ onOutcome: (Outcome) -> Void
  ) async throws {
    let reader = TopicReader(on: loop, kafka)
    let (rules, found) = (rules, found)
    let names = Dictionary(places.map { (RecordPlace(partition: $0.partition, offset: $0.offset), $0.name) }) { first, _ in first }
    let requests = places.prefix(Self.maximum).map { (TopicPartition(rules.topics.requests, $0.partition), $0.offset) }
    try await reader.read(at: requests, "requests") { record in
      let request = PublishedRequest(record, rules)
      found.timelines[request.id, default: Timeline(request.id)].add(request)
      found.requests[record.partition, default: []].append(request)
      found.letters[request.id] = names[RecordPlace(partition: record.partition, offset: record.offset)]
    }
    while !found.timelines.isEmpty {
      try await look(reader, admin)
      let isLast = isStopped || SteadyClock.milliseconds() >= end
      let now = WallClock.milliseconds()
      for (id, timeline) in found.timelines {
        let explanation = timeline.explanation(now: now)
        guard isLast || explanation.state.isSettled else { continue }
        found.timelines[id] = nil
        onOutcome(Outcome(name: found.letters[id] ?? "", explanation: explanation, isSettled: explanation.state.isSettled))
      }
      if !isLast, !found.timelines.isEmpty { await loop.sleep(milliseconds: Self.pause) }
    }
  }

  /// Reads what was written since the last look.
  private func look(_ reader: TopicReader, _ admin: Admin) async throws {
    let (rules, found) = (rules, found)
    let ends = try await admin.ends(of: Array(positions.keys))
    for topic in [rules.topics.journal, rules.topics.events] {
      let stretches = positions.filter { $0.key.topic == topic }.map { TopicStretch($0, $1, ends[$0]?.upperBound ?? $1) }
      try await reader.read(stretches, topic) { record in
        if topic == rules.topics.journal {
          let steps = JournalSteps(record, of: found.requests[record.partition] ?? [])
          for id in Set(steps.steps.map(\.id)) { found.timelines[id]?.add(steps) }
          return
        }
        guard let id = record.header(EventHeader.subject.rawValue).flatMap(NotificationID.init(text:)), found.timelines[id] != nil,
          let event = try? Event(headers: record.texts, value: record.value ?? .nothing), event.id == id
        else { return }
        found.timelines[id]?.add(
          event, topic: topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp)
      }
    }
    for (partition, end) in ends { positions[partition] = max(positions[partition] ?? 0, end.upperBound) }
  }
}

extension RequestState {
  /// Whether nothing more is to be expected.
  fileprivate var isSettled: Bool {
    switch self {
    case .unknown, .unprocessed, .underWay: false
    case .rejected, .dead, .filtered, .unregistered, .ended: true
    }
  }
}

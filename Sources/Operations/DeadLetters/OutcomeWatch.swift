public import EventLoop
public import Kafka
import Notifications
import Worker

/// Follows requests that were published until each has its outcomes, or is judged and each connected device has answered: an actor on a loop.
///
/// A request is known by where its record lies; an event is about it when it names its apns-id and the place where it was first. A device was
/// connected when there is a delivery for it; the others find the request in their mailboxes whenever they connect, and are waited for only where the caller wants that.
///
/// What the journal, the events and the deliveries say from a moment on is read as it comes, a stretch at a time; memory is that of
/// ``maximum`` timelines.
public actor OutcomeWatch {
  /// Requests that are followed at most.
  public static let maximum = 1_000
  /// How long between two looks, in milliseconds.
  private static let pause = 500
  /// For how long no delivery comes for a device that is not connected, in milliseconds: a delivery is sent before the journal's record of its
  /// request, and Kafka may have it later.
  private static let grace: Int64 = 3_000

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
    /// Those that are followed, by the places of their records: several may have the same apns-id.
    var followed: [RecordPlace: Followed] = [:]
    /// Their places by their apns-ids.
    var places: [NotificationID: [RecordPlace]] = [:]
    /// Those that are followed, by the partition in which they lie.
    var requests: [Int32: [PublishedRequest]] = [:]
  }

  private struct Followed {
    let name: String
    /// Where it was first, which its events name.
    let first: SourceCoordinates
    var timeline: Timeline
    /// The outcomes at devices that were told.
    var told: [Name: DeviceOutcome.State] = [:]
    /// Since when it waits for no device that is known to be connected, in steady milliseconds; nil while it does, or is not judged.
    var restsSince: Int64?

    /// Whether an event with its apns-id is about it.
    func isMeant(by event: Event) -> Bool {
      guard let source = event.source else { return true }
      return source.topic == first.topic && source.position.partition == first.position.partition
        && source.position.offset == first.position.offset
    }
  }

  /// How far following is.
  public struct Progress: Sendable, Equatable {
    /// Requests that are followed: a record that is gone by now is none of them.
    public var followed: Int
    /// Of these, those of which more is to be expected.
    public var open: Int
    /// For how long they are followed yet, in milliseconds.
    public var remaining: Int64
  }

  /// How it stands with a request that is followed.
  public enum Standing: Sendable, Equatable {
    /// Nothing more is to be expected.
    case settled
    /// It lies in the mailboxes of so many devices, none of which is connected.
    case waits(devices: Int)
    /// So many devices that were connected have not answered.
    case unanswered(devices: Int)
    /// No worker has judged it, or not for all of its person's devices.
    case unjudged
  }

  /// What became of a request.
  public struct Outcome: Sendable {
    /// What was said of it, the letter for example.
    public var name: String
    /// Its timeline from the moment on from which it was followed.
    public var explanation: Explanation
    /// How it stands with it.
    public var standing: Standing
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
      for topic in [rules.topics.journal, rules.topics.events, rules.topics.deliveries] {
        for stretch in try await admin.stretches(of: topic) { positions[stretch.partition] = stretch.offsets.upperBound }
      }
    }
  }

  /// Follows the requests that lie at these places, ``maximum`` of them at most, and says what became of each as soon as it is known.
  ///
  /// - Parameters:
  ///   - places: each with what it is called in its outcome.
  ///   - milliseconds: for how long; then the rest is said as it stands.
  ///   - waitsForAbsent: whether a request is open while a device has it in its mailbox that is not connected.
  ///   - onProgress: told when it begins, and at each look.
  ///   - onDevice: told of each outcome at a device, with the name of its request, as soon as it is known; again if it turns out otherwise.
  public func follow(
    _ places: [(name: String, partition: Int32, offset: Int64)], forMilliseconds milliseconds: Int,
    waitsForAbsent: Bool, onProgress: @Sendable (Progress) -> Void = { _ in },
    onDevice: @Sendable (String, DeviceOutcome) -> Void = { _, _ in },
    onOutcome: @Sendable (Outcome) -> Void
  ) async throws {
    try await Admin.with(kafka) { admin in
      try await follow(
        places, until: SteadyClock.milliseconds() + Int64(milliseconds), waitsForAbsent, admin, onProgress, onDevice, onOutcome)
    }
  }

  private func follow(
    _ places: [(name: String, partition: Int32, offset: Int64)], until end: Int64, _ waitsForAbsent: Bool, _ admin: Admin,
    _ onProgress: (Progress) -> Void, _ onDevice: (String, DeviceOutcome) -> Void, _ onOutcome: (Outcome) -> Void
  ) async throws {
    let reader = TopicReader(on: loop, kafka)
    let (rules, found) = (rules, found)
    let names = Dictionary(places.map { (RecordPlace(partition: $0.partition, offset: $0.offset), $0.name) }) { first, _ in first }
    let requests = places.prefix(Self.maximum).map { (TopicPartition(rules.topics.requests, $0.partition), $0.offset) }
    try await reader.read(at: requests, "requests") { record in
      let request = PublishedRequest(record, rules)
      let place = RecordPlace(partition: record.partition, offset: record.offset)
      var timeline = Timeline(request.id)
      timeline.add(request)
      found.followed[place] = Followed(name: names[place] ?? "", first: request.origin ?? request.source, timeline: timeline)
      found.places[request.id, default: []].append(place)
      found.requests[record.partition, default: []].append(request)
    }
    let count = found.followed.count
    func tell() { onProgress(Progress(followed: count, open: found.followed.count, remaining: max(0, end - SteadyClock.milliseconds()))) }
    tell()
    while !found.followed.isEmpty {
      try await look(reader, admin)
      let isLast = isStopped || SteadyClock.milliseconds() >= end
      let (now, time) = (WallClock.milliseconds(), SteadyClock.milliseconds())
      for (place, followed) in found.followed {
        let explanation = followed.timeline.explanation(now: now)
        for device in explanation.devices where device.state.isOutcome && followed.told[Name(device.device)] != device.state {
          found.followed[place]?.told[Name(device.device)] = device.state
          onDevice(followed.name, device)
        }
        let standing = explanation.standing
        var isOver = isLast || standing == .settled
        if !waitsForAbsent, case .waits = standing {
          found.followed[place]?.restsSince = followed.restsSince ?? time
          if time - (followed.restsSince ?? time) >= Self.grace { isOver = true }
        } else {
          found.followed[place]?.restsSince = nil
        }
        guard isOver else { continue }
        found.followed[place] = nil
        onOutcome(Outcome(name: followed.name, explanation: explanation, standing: standing))
      }
      guard !isLast, !found.followed.isEmpty else { continue }
      tell()
      await loop.sleep(milliseconds: Self.pause)
    }
  }

  /// Reads what was written since the last look.
  private func look(_ reader: TopicReader, _ admin: Admin) async throws {
    let (rules, found) = (rules, found)
    let ends = try await admin.ends(of: Array(positions.keys))
    for topic in [rules.topics.journal, rules.topics.events, rules.topics.deliveries] {
      let stretches = positions.filter { $0.key.topic == topic }.map { TopicStretch($0, $1, ends[$0]?.upperBound ?? $1) }
      try await reader.read(stretches, topic) { record in
        if topic == rules.topics.journal {
          let steps = JournalSteps(record, of: found.requests[record.partition] ?? [])
          for request in steps.requests {
            let place = RecordPlace(partition: request.partition, offset: request.offset)
            found.followed[place]?.timeline.add(steps.about(request))
          }
          return
        }
        if topic == rules.topics.deliveries {
          guard let id = record.value.flatMap({ DeliveryRecord($0) })?.entry?.id else { return }
          for place in found.places[id] ?? [] { found.followed[place]?.timeline.add(TimelineStep(routed: record)) }
          return
        }
        guard let id = record.header(EventHeader.subject.rawValue).flatMap(NotificationID.init(text:)), let places = found.places[id],
          let event = try? Event(headers: record.texts, value: record.value ?? .nothing), event.id == id
        else { return }
        for place in places where found.followed[place]?.isMeant(by: event) == true {
          found.followed[place]?.timeline.add(
            event, topic: topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp)
        }
      }
    }
    for (partition, end) in ends { positions[partition] = max(positions[partition] ?? 0, end.upperBound) }
  }
}

extension Explanation {
  /// How it stands with a request of which all is read since it was published again.
  fileprivate var standing: OutcomeWatch.Standing {
    switch state {
    case .rejected, .dead, .filtered, .unregistered, .ended: return .settled
    case .unknown, .unprocessed: return .unjudged
    case .underWay(let open, _, _):
      let waiting = devices.filter { $0.state == .queued || $0.state == .overdue }
      // What is said to come for a person's other devices has not come yet.
      let isForPerson = requests.contains { $0.target.starts(with: "user:") }
      guard open == waiting.count, !isForPerson || steps.contains(where: { $0.type == .addressed }) else { return .unjudged }
      let connected = Set(steps.filter { $0.name == TimelineStep.routed }.compactMap { $0.device.map { Name($0) } })
      let unanswered = waiting.count { connected.contains(Name($0.device)) }
      return unanswered > 0 ? .unanswered(devices: unanswered) : .waits(devices: waiting.count)
    }
  }
}

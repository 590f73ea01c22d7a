package import EventLoop
package import Kafka
import Notifications
import Worker

/// Follows published requests until each has its outcomes: an actor on a loop.
///
/// A request is identified by its record's place. An event belongs to it if it has its apns-id and the place of its first record. A device
/// was connected if there is a delivery record for it. Devices that are not connected find the request in their mailboxes later; the caller
/// decides whether to wait for them.
///
/// It reads the journal, the events and the deliveries from a moment on, a stretch at a time. Memory is that of ``maximum`` timelines.
package actor OutcomeWatch: LoopActor {
  /// The most requests that are followed.
  package static let maximum = 1_000
  /// The pause between two looks, in milliseconds.
  private static let pause = 500
  /// A device without a delivery record for this long is not connected, in milliseconds. A delivery is sent before the journal's record of
  /// its request, but Kafka may have it later.
  private static let grace: Int64 = 3_000

  /// The actor's loop.
  package nonisolated let loop: EventLoop
  private let kafka: KafkaConfiguration
  private let rules: RequestRules
  private let found = Found()
  /// The next offset of each partition.
  private var positions: [TopicPartition: Int64] = [:]
  private var isStopped = false

  private final class Found {
    /// The followed requests, by the places of their records: several may have the same apns-id.
    var followed: [RecordPlace: Followed] = [:]
    /// Their places by their apns-ids.
    var places: [NotificationID: [RecordPlace]] = [:]
    /// The followed requests, by partition.
    var requests: [Int32: [PublishedRequest]] = [:]
  }

  private struct Followed {
    let name: String
    /// The place of its first record, which its events name.
    let first: SourceCoordinates
    var timeline: Timeline
    /// The outcomes at devices that `onDevice` has reported.
    var told: [Name: Notifications.Outcome] = [:]
    /// Since when no connected device is outstanding, in steady milliseconds; nil while one is, or before a verdict.
    var restsSince: Int64?

    /// Whether an event with its apns-id belongs to it.
    func isMeant(by event: Event) -> Bool {
      guard let source = event.source else { return true }
      return source.topic == first.topic && source.position.partition == first.position.partition
        && source.position.offset == first.position.offset
    }
  }

  /// The progress of following.
  package struct Progress: Sendable, Equatable {
    /// The followed requests, without records that are deleted by now.
    package var followed: Int
    /// How many of these expect more.
    package var open: Int
    /// How long following continues at most, in milliseconds.
    package var remaining: Int64
  }

  /// How a followed request stands.
  package enum Standing: Sendable, Equatable {
    /// Nothing more is expected.
    case settled
    /// It is in the mailboxes of this many devices, none of which is connected.
    case waits(devices: Int)
    /// This many connected devices have not answered.
    case unanswered(devices: Int)
    /// No worker has judged it, or not for all of its person's devices.
    case unjudged
  }

  /// The result of a followed request.
  package struct Outcome: Sendable {
    /// Its name, for example the letter's.
    package var name: String
    /// Its timeline since following began.
    package var explanation: Explanation
    /// How it stands.
    package var standing: Standing
  }

  /// Makes a watch of a cluster.
  package init(on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules) {
    self.loop = loop
    self.kafka = kafka
    self.rules = rules
  }

  /// Stops following at the next look.
  package func stop() { isStopped = true }

  /// Notes the ends of the topics, where following begins.
  package func begin() async throws {
    try await Admin.with(kafka) { admin in
      for topic in [rules.topics.journal, rules.topics.events, rules.topics.deliveries] {
        for stretch in try await admin.stretches(of: topic) { positions[stretch.partition] = stretch.offsets.upperBound }
      }
    }
  }

  /// Follows the requests at these places, at most ``maximum``, and reports each result as soon as it is known.
  ///
  /// - Parameters:
  ///   - places: each with its name for the result.
  ///   - milliseconds: for how long. Then the rest is reported as it stands.
  ///   - waitsForAbsent: whether a request is open while a device that is not connected has it in its mailbox.
  ///   - onProgress: called at the beginning and at each look.
  ///   - onDevice: called for each outcome at a device, with the name of its request; again if the outcome changes.
  package func follow(
    _ places: [(name: String, partition: Int32, offset: Int64)], forMilliseconds milliseconds: Int,
    waitsForAbsent: Bool, onProgress: @Sendable (Progress) -> Void = { _ in },
    onDevice: @Sendable (String, DeviceOutcome) -> Void = { _, _ in },
    onOutcome: @Sendable (Outcome) -> Void
  ) async throws {
    let end = SteadyClock.milliseconds() + Int64(milliseconds)
    try await Admin.with(kafka) { admin in
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
          for device in explanation.devices where device.isFinal && followed.told[Name(device.device)] != device.outcome {
            found.followed[place]?.told[Name(device.device)] = device.outcome
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
  }

  /// Reads the records since the last look.
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
          found.followed[place]?.timeline.add(event, at: SourceCoordinates(record))
        }
      }
    }
    for (partition, end) in ends { positions[partition] = max(positions[partition] ?? 0, end.upperBound) }
  }
}

extension Explanation {
  /// How a request stands, after all its records were read.
  fileprivate var standing: OutcomeWatch.Standing {
    switch state {
    case .rejected, .dead, .filtered, .unregistered, .scheduled, .settled, .ended: return .settled
    case .unknown, .unprocessed: return .unjudged
    case .underWay(let open, _, _):
      let waiting = devices.filter { !$0.isFinal }
      // Expected events of a person's other devices have not come yet.
      let isForPerson = requests.contains { $0.target.token == nil }
      guard open == waiting.count, !isForPerson || steps.contains(where: { $0.outcome == .addressed }) else { return .unjudged }
      let connected = Set(steps.filter { $0.name == TimelineStep.routed }.compactMap { $0.device.map { Name($0) } })
      let unanswered = waiting.count { connected.contains(Name($0.device)) }
      return unanswered > 0 ? .unanswered(devices: unanswered) : .waits(devices: waiting.count)
    }
  }
}

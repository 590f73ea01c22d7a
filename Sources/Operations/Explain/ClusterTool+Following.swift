import EventLoop
package import Kafka
import Notifications
import Worker

/// A request that was published a moment ago, and its outcome.
package struct FollowedRequest: Sendable {
  /// The apns-id.
  package var id: String
  /// Its timeline since following began.
  package var explanation: Explanation
  /// Whether nothing more is expected.
  package var isSettled: Bool
}

/// Follows published requests until each has its outcomes.
///
/// A request is identified by its record's place. An event belongs to it if it has its apns-id and the place of its first record. It reads
/// the journal, the events and the deliveries from a moment on, a stretch at a time. Memory is that of ``maximumFollowed`` timelines.
extension ClusterTool {
  /// The most requests that are followed.
  package static var maximumFollowed: Int { 1_000 }
  /// The pause between two looks, in milliseconds.
  private static let pause = 500
  /// A device without a delivery record for this long is not connected, in milliseconds. A delivery is sent before the journal's record of
  /// its request, but Kafka may have it later.
  private static let grace: Int64 = 3_000

  private final class Followed {
    let id: String
    let request: PublishedRequest
    var timeline: Timeline
    /// The outcomes at devices that `onDevice` has reported.
    var told: [Name: Outcome] = [:]
    /// Since when it waits only for devices that are not connected, in steady milliseconds.
    var restsSince: Int64?

    init(_ id: String, _ request: PublishedRequest) {
      (self.id, self.request, timeline) = (id, request, Timeline(request.id))
      timeline.add(request)
    }

    /// Whether an event with its apns-id belongs to it.
    func isMeant(by event: Event) -> Bool {
      guard let source = event.source else { return true }
      let first = request.origin ?? request.source
      return source.topic == first.topic && source.position.partition == first.position.partition
        && source.position.offset == first.position.offset
    }
  }

  /// The ends of the topics, where following begins.
  package func placesToFollow() async throws -> [TopicPartition: Int64] {
    try await Admin.with(kafka) { admin in
      var positions: [TopicPartition: Int64] = [:]
      for topic in [rules.topics.journal, rules.topics.events, rules.topics.deliveries] {
        for stretch in try await admin.stretches(of: topic) { positions[stretch.partition] = stretch.offsets.upperBound }
      }
      return positions
    }
  }

  /// Follows the requests at these places, and reports each result as soon as it is known.
  ///
  /// - Parameters:
  ///   - places: each with its apns-id, at most ``maximumFollowed``.
  ///   - positions: where it begins.
  ///   - milliseconds: for how long. Then the rest is reported as it stands.
  ///   - waitsForAbsent: whether more is expected of a device that is not connected, and has the request in its mailbox.
  ///   - isStopped: whether to report the rest as it stands now.
  ///   - onDevice: called for each outcome at a device, with the apns-id of its request; again if the outcome changes.
  package func follow(
    _ places: [(id: String, partition: Int32, offset: Int64)], from positions: [TopicPartition: Int64], forMilliseconds milliseconds: Int,
    waitsForAbsent: Bool = true, isStopped: @Sendable () -> Bool = { false },
    onDevice: @Sendable (String, DeviceOutcome) -> Void = { _, _ in }, onOutcome: @Sendable (FollowedRequest) -> Void
  ) async throws {
    let end = SteadyClock.milliseconds() + Int64(milliseconds)
    var positions = positions
    try await Admin.with(kafka) { admin in
      let reader = TopicReader(on: loop, kafka)
      let found = Gathered([RecordPlace: Followed]())
      let ids = Dictionary(places.map { (RecordPlace(partition: $0.partition, offset: $0.offset), $0.id) }) { first, _ in first }
      let requests = places.map { (TopicPartition(rules.topics.requests, $0.partition), $0.offset) }
      try await reader.read(at: requests, "requests") { [rules] record in
        let place = RecordPlace(partition: record.partition, offset: record.offset)
        found.value[place] = Followed(ids[place] ?? "", PublishedRequest(record, rules))
      }
      var open = found.value
      let byID = Dictionary(grouping: open.values) { $0.request.id }
      let byPartition = Dictionary(grouping: open.values.map(\.request)) { $0.source.position.partition }
      while !open.isEmpty {
        let ends = try await admin.ends(of: Array(positions.keys))
        func next(_ topic: String) -> [TopicStretch] {
          positions.filter { $0.key.topic == topic }.map { TopicStretch($0, $1, ends[$0]?.upperBound ?? $1) }
        }
        try await reader.read(next(rules.topics.journal), "the journal") { record in
          let steps = JournalSteps(record, of: byPartition[record.partition] ?? [])
          for request in steps.requests {
            let place = RecordPlace(partition: request.partition, offset: request.offset)
            found.value[place]?.timeline.add(steps.about(request))
          }
        }
        try await reader.read(next(rules.topics.events), "events") { record in
          guard let id = record.header(EventHeader.subject.rawValue).flatMap(NotificationID.init(text:)), let followed = byID[id],
            let event = try? Event(headers: record.texts, value: record.value ?? .empty), event.id == id
          else { return }
          for followed in followed where followed.isMeant(by: event) {
            followed.timeline.add(event, at: SourceCoordinates(record))
          }
        }
        try await reader.read(next(rules.topics.deliveries), "deliveries") { record in
          guard let id = record.value.flatMap({ DeliveryRecord($0) })?.entry?.id else { return }
          for followed in byID[id] ?? [] { followed.timeline.add(TimelineStep(routed: record)) }
        }
        for (partition, end) in ends { positions[partition] = max(positions[partition] ?? 0, end.upperBound) }
        let (now, time) = (WallClock.milliseconds(), SteadyClock.milliseconds())
        let isLast = isStopped() || time >= end
        for (place, followed) in open {
          let explanation = followed.timeline.explanation(now: now)
          for device in explanation.devices where device.isFinal && followed.told[Name(device.device)] != device.outcome {
            followed.told[Name(device.device)] = device.outcome
            onDevice(followed.id, device)
          }
          followed.restsSince = !waitsForAbsent && explanation.waitsForAbsent ? followed.restsSince ?? time : nil
          let isSettled = explanation.isSettled || followed.restsSince.map { time - $0 >= Self.grace } ?? false
          guard isLast || isSettled else { continue }
          open[place] = nil
          onOutcome(FollowedRequest(id: followed.id, explanation: explanation, isSettled: isSettled))
        }
        if !open.isEmpty { await loop.sleep(milliseconds: Self.pause) }
      }
    }
  }
}

extension Explanation {
  /// Whether nothing more is expected, after all records of the request were read.
  fileprivate var isSettled: Bool {
    switch state {
    case .rejected, .dead, .filtered, .unregistered, .scheduled, .settled, .ended: true
    case .unknown, .unprocessed, .underWay: false
    }
  }

  /// Whether it is judged for all devices, and waits only for those to which nothing was sent.
  fileprivate var waitsForAbsent: Bool {
    guard case .underWay(let open, _, _) = state else { return false }
    let waiting = devices.filter { !$0.isFinal }
    // Expected events of a person's other devices may not have come yet.
    let isForPerson = requests.contains { $0.target.token == nil }
    guard open == waiting.count, !isForPerson || steps.contains(where: { $0.outcome == .addressed }) else { return false }
    let connected = Set(steps.filter { $0.name == TimelineStep.routed }.compactMap { $0.device.map { Name($0) } })
    return !waiting.contains { connected.contains(Name($0.device)) }
  }
}

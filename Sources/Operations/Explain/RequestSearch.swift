import Kafka
import Notifications
import Worker

/// One search for a request through the topics. Loop-confined.
final class RequestSearch {
  private(set) var timeline: Timeline
  /// Where it looked, in words.
  private(set) var searched: [String] = []
  private let id: NotificationID
  private let text: [UInt8]
  private let rules: RequestRules
  private let admin: Admin
  private let reader: TopicReader
  /// Which offsets of the events have been read.
  private var covered: [TopicPartition: Range<Int64>] = [:]

  /// How far the clocks of brokers and workers may be apart, in milliseconds.
  private static let clocks: Int64 = 5 * 60_000
  /// How long after its publication a request's first event is searched for, in milliseconds; after that its own record is.
  private static let firstEvent: Int64 = 10 * 60_000
  /// Around its publication the routes to connected devices are searched, in milliseconds; they are kept for minutes only.
  private static let routes: (before: Int64, after: Int64) = (5_000, 60_000)

  init(_ id: NotificationID, _ rules: RequestRules, _ admin: Admin, _ reader: TopicReader) {
    self.id = id
    text = Array(id.description.utf8)
    self.rules = rules
    self.admin = admin
    self.reader = reader
    timeline = Timeline(id)
  }

  func run(_ hints: SearchHints) async throws(KafkaError) {
    let range = hints.published
    let events = try await admin.stretches(
      of: rules.topics.events, TimeRange(from: range.from.map { $0 - Self.clocks }, to: range.to.map { $0 + Self.firstEvent }))
    let likely = partitions(of: hints.target, events.count)
    try await searchEvents(events.filter { likely.contains($0.partition.partition) })
    if timeline.isEmpty { try await searchEvents(events.filter { !likely.contains($0.partition.partition) }) }
    if timeline.isEmpty { try await searchRequests(try await admin.stretches(of: rules.topics.requests, range)) }
    guard !timeline.isEmpty else { return }
    try await readRequests()
    try await readOtherEvents()
    // Published twice: the other record is known by its own events only.
    try await readRequests()
    try await readReplacements()
    if timeline.mayBeDead { try await readDeadLetters() }
    try await readRoutes()
  }

  // MARK: Events

  /// The partitions in which a target's events lie, when they are known beforehand: those on the device, and those without a device.
  private func partitions(of target: String?, _ count: Int) -> Set<Int32> {
    guard let target, count > 0 else { return [] }
    var keys = [target]
    if target.hasPrefix("device:"), let token = DeviceToken(String(target.dropFirst(7))) { keys.append(token.text) }
    return Set(keys.map { KeyPartition.of($0, partitions: count) })
  }

  /// Goes back in time until there are events of the request; what is older or elsewhere is read when its publication is known.
  private func searchEvents(_ stretches: [TopicStretch]) async throws(KafkaError) {
    guard !stretches.isEmpty else { return }
    var rounds = Backwards(stretches)
    while timeline.isEmpty, let round = rounds.next() { try await readEvents(round) }
    note(rules.topics.events, stretches)
  }

  private func readEvents(_ stretches: [TopicStretch]) async throws(KafkaError) {
    try await reader.read(stretches, "events") { [self] record in
      guard record.header(EventHeader.subject.rawValue).map({ $0.elementsEqual(text) }) == true,
        let event = try? Event(headers: record.texts, value: record.value ?? .nothing), event.id == id
      else { return }
      timeline.add(event, topic: rules.topics.events, partition: record.partition, offset: record.offset, timestamp: record.timestamp)
    }
    for stretch in stretches {
      let before = covered[stretch.partition] ?? stretch.offsets
      covered[stretch.partition] =
        min(before.lowerBound, stretch.offsets.lowerBound)..<max(before.upperBound, stretch.offsets.upperBound)
    }
  }

  /// The events from its publication on that the search did not come by.
  private func readOtherEvents() async throws(KafkaError) {
    let all = try await admin.stretches(of: rules.topics.events, TimeRange(from: timeline.published.map { $0 - Self.clocks }))
    // A person's devices may lie anywhere.
    let targets = timeline.targets
    let isOnDevices = !targets.isEmpty && targets.allSatisfy { $0.hasPrefix("device:") }
    let wanted = targets.reduce(into: Set<Int32>()) { $0.formUnion(partitions(of: $1, all.count)) }
    let relevant = all.filter { !isOnDevices || wanted.contains($0.partition.partition) }
    try await readEvents(
      relevant.compactMap { stretch in
        guard let covered = covered[stretch.partition] else { return stretch }
        return TopicStretch(stretch.partition, stretch.offsets.lowerBound, min(stretch.offsets.upperBound, covered.lowerBound))
      })
    try await readEvents(
      relevant.compactMap { stretch in
        guard let covered = covered[stretch.partition] else { return nil }
        return TopicStretch(stretch.partition, max(stretch.offsets.lowerBound, covered.upperBound), stretch.offsets.upperBound)
      })
  }

  /// The newer revisions of what waits for a device by its own events: the oldest of them took its place.
  private func readReplacements() async throws(KafkaError) {
    let waiting = timeline.waiting
    guard let since = waiting.map(\.since).min() else { return }
    let topic = rules.topics.events
    let all = try await admin.stretches(of: topic, TimeRange(from: since - Self.clocks))
    let wanted = waiting.reduce(into: Set<Int32>()) { $0.formUnion(partitions(of: "device:\($1.device)", all.count)) }
    var found: [String: (event: Event, partition: Int32, offset: Int64, timestamp: Int64)] = [:]
    try await reader.read(all.filter { wanted.contains($0.partition.partition) }, "events of the device") { record in
      guard let key = record.key?.characters, let former = waiting.first(where: { $0.device == key }),
        let event = try? Event(headers: record.texts, value: record.value ?? .nothing), event.type == .queued,
        event.identifier == former.identifier, let revision = event.revision, former.revision < revision,
        found[key].flatMap(\.event.revision).map({ revision < $0 }) ?? true
      else { return }
      found[key] = (event, record.partition, record.offset, record.timestamp)
    }
    for newer in found.values {
      timeline.add(
        replacement: newer.event, topic: topic, partition: newer.partition, offset: newer.offset, timestamp: newer.timestamp)
    }
  }

  // MARK: Requests

  /// Goes back in time until there is a request of this id.
  private func searchRequests(_ stretches: [TopicStretch]) async throws(KafkaError) {
    var rounds = Backwards(stretches)
    while timeline.isEmpty, let round = rounds.next() {
      try await reader.read(round, "requests") { [self] record in
        if isWanted(record) { timeline.add(PublishedRequest(record, rules)) }
      }
    }
    note(rules.topics.requests, stretches)
  }

  /// Whether a record has the id, or has none and gives this one by where it lies.
  private func isWanted(_ record: RecordView) -> Bool {
    if let given = record.header(RequestHeader.id.name.description), let id = NotificationID(text: given) { return id == self.id }
    return rules.withReading(of: record) { reading in
      switch reading {
      case .accepted(let view): view.envelope.id == id
      case .rejected(_, let envelope): envelope.id == id
      }
    }
  }

  /// Reads the requests that events name, where they lie; they may be gone, and so may the topic be that they lay in.
  private func readRequests() async throws(KafkaError) {
    let topic = rules.topics.requests
    let places = try await admin.places(of: timeline.unreadSources(in: topic), in: topic)
    try await reader.read(at: places, "requests") { [self] record in timeline.add(PublishedRequest(record, rules)) }
  }

  // MARK: Dead letters and routes

  private func readDeadLetters() async throws(KafkaError) {
    let topic = rules.topics.deadLetters
    let stretches = try await admin.stretches(of: topic, TimeRange(from: timeline.published.map { $0 - Self.clocks }))
    try await reader.read(stretches, "dead letters") { [self] record in
      guard let letter = DeadLetter(headers: record.texts), isWanted(record, buriedAs: letter) else { return }
      timeline.add(Step(letter, record))
    }
  }

  private func isWanted(_ record: RecordView, buriedAs letter: DeadLetter) -> Bool {
    if let given = record.header(RequestHeader.id.name.description), let id = NotificationID(text: given) { return id == self.id }
    var topic = letter.source.topic
    return topic.withUTF8 { topic in
      let request = RequestRecord(record, topic: UnsafeRawBufferPointer(topic), position: letter.source.position)
      switch RequestView.read(request, limits: rules.limits) {
      case .accepted(let view): return view.envelope.id == id
      case .rejected(_, let envelope): return envelope.id == id
      }
    }
  }

  /// The deliveries to lanes: kept for minutes only, so mostly gone.
  private func readRoutes() async throws(KafkaError) {
    guard let published = timeline.published else { return }
    let topic = rules.topics.deliveries
    let range = TimeRange(from: published - Self.routes.before, to: published + Self.routes.after)
    try await reader.read(try await admin.stretches(of: topic, range), "deliveries") { [self] record in
      guard let value = record.value, let delivery = DeliveryRecord(value), delivery.entry?.id == id else { return }
      timeline.add(
        Step(
          name: Step.routed, time: record.timestamp, topic: topic, partition: record.partition, offset: record.offset,
          device: record.key?.characters))
    }
  }

  private func note(_ topic: String, _ stretches: [TopicStretch]) {
    let count = stretches.reduce(0) { $0 + Int64($1.offsets.count) }
    let numbers = stretches.map { String($0.partition.partition) }.joined(separator: ",")
    searched.append("\(topic), \(stretches.count == 1 ? "partition" : "partitions") \(numbers): \(count) records")
  }
}

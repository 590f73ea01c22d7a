import EventLoop
import Kafka
import Notifications
import Worker

/// One search for requests in the topics.
final class RequestSearch {
  /// The timelines, by the requests' ids.
  var timelines: [NotificationID: Timeline] = [:]
  /// The places that were searched, in words.
  private(set) var searched: [String] = []
  private let question: RequestQuestion
  /// What the request has scheduled that is asked for.
  var schedule: Schedule?
  let rules: RequestRules
  let admin: Admin
  let reader: TopicReader
  /// The requests whose journal was read.
  var journaled: Set<SourcePosition> = []

  /// The largest difference of the clocks of brokers and workers, in milliseconds.
  static let clocks: Int64 = 5 * 60_000
  /// How long after its publication a request's first event is searched. After that its own record is, in milliseconds.
  private static let firstEvent: Int64 = 10 * 60_000
  /// The time around the publication in which deliveries are searched, in milliseconds; they are kept only for minutes.
  private static let routes: (before: Int64, after: Int64) = (5_000, 60_000)
  /// The most requests with one malformed id.
  private static let maximumOfOneText = 20

  init(_ question: RequestQuestion, _ rules: RequestRules, _ admin: Admin, _ reader: TopicReader) {
    self.question = question
    self.rules = rules
    self.admin = admin
    self.reader = reader
  }

  func run(_ target: Name?, _ range: TimeRange) async throws(KafkaError) {
    switch question {
    case .request(let id):
      timelines[id] = Timeline(id)
      try await search(target, range)
    case .written(let text):
      try await searchRequests(range, atMost: Self.maximumOfOneText, onlyNewest: true) { record in
        record.header(.id).map { $0.elementsEqual(text.utf8) } == true
      }
    case .latest(let target, let application, let limit):
      var targets: Set = [target]
      if target.starts(with: "user:") {
        var devices = TargetDevices(of: targets, application: application)
        try await devices.read(rules.topics.devices, reader, admin)
        targets.formUnion(devices[target].keys.map { "device:\($0)" })
      }
      try await searchRequests(targets, application, limit, range)
    }
    guard hasFound else { return }
    try await readRequests()
    if case .request(let id) = question { try await readOccurrences(of: id) }
    try await readJournal()
    try await readEvents()
    // A second publication of the id is known only by its own events.
    try await readRequests()
    try await readJournal()
    try await readReplacements()
    try await readDeadLetters()
    try await readRegistrations()
    try await readStanding()
    if case .request = question { try await readRoutes() }
  }

  /// The explanations, the last published first.
  func explanations(now: Int64) -> [Explanation] {
    if case .request(let id) = question, let schedule, var explanation = timelines[id]?.explanation(now: now) {
      explanation.schedule = self.explanation(of: schedule, explanation, now: now)
      return [explanation]
    }
    return timelines.values.sorted { ($0.published ?? 0, $0.id) > ($1.published ?? 0, $1.id) }.map { $0.explanation(now: now) }
  }

  private var hasFound: Bool { timelines.values.contains { !$0.isEmpty } }

  /// The publication time of the first request.
  private var published: Int64? { timelines.values.compactMap(\.published).min() }

  /// Searches for one request. If its record is deleted, its events have the time of publication.
  private func search(_ target: Name?, _ range: TimeRange) async throws(KafkaError) {
    let requests = try await admin.stretches(of: rules.topics.requests, range)
    for stretches in parts(of: requests, likely: target) where !hasFound {
      try await searchRequests(range, in: stretches, atMost: 1, onlyNewest: true) { [self] in isWanted($0) }
    }
    guard !hasFound else { return }
    let events = try await admin.stretches(
      of: rules.topics.events, TimeRange(from: range.from.map { $0 - Self.clocks }, to: range.to.map { $0 + Self.firstEvent }))
    for stretches in parts(of: events, likely: target) where !hasFound {
      var rounds = Backwards(stretches)
      // All since its publication are read when that is known.
      while !hasFound, let round = rounds.next() { try await readEvents(round) }
      note(rules.topics.events, stretches)
    }
  }

  /// The partitions of a topic that probably have records about a target, then the others.
  private func parts(of stretches: [TopicStretch], likely target: Name?) -> [[TopicStretch]] {
    let likely = partitions(of: target, stretches.count)
    return [true, false].map { wanted in stretches.filter { likely.contains($0.partition.partition) == wanted } }.filter { !$0.isEmpty }
  }

  // MARK: Events

  /// The partitions of a target's events, if they are known beforehand. They are those of the device, and those without a device. Its
  /// requests lie there too, if their producer partitions as the workers do.
  private func partitions(of target: Name?, _ count: Int) -> Set<Int32> {
    guard let target, count > 0 else { return [] }
    var keys = [target]
    if let token = target.token { keys.append(Name(token.text)) }
    return Set(keys.map { TopicPartition.number(ofKey: $0.text, of: count) })
  }

  private func readEvents(_ stretches: [TopicStretch]) async throws(KafkaError) {
    try await reader.read(stretches, "events") { [self] record in
      guard let id = record.header(EventHeader.subject.rawValue).flatMap(NotificationID.init(text:)), timelines[id] != nil,
        let event = try? Event(headers: record.texts, value: record.value ?? .empty), event.id == id
      else { return }
      timelines[id]?.add(event, at: SourceCoordinates(record))
    }
  }

  /// Reads the events since the publication.
  private func readEvents() async throws(KafkaError) {
    let all = try await admin.stretches(of: rules.topics.events, TimeRange(from: published.map { $0 - Self.clocks }))
    // A person's devices may lie in any partition.
    let targets = timelines.values.flatMap(\.targets)
    let isOnDevices = !targets.isEmpty && targets.allSatisfy { $0.token != nil }
    let wanted = targets.reduce(into: Set<Int32>()) { $0.formUnion(partitions(of: $1, all.count)) }
    try await readEvents(all.filter { !isOnDevices || wanted.contains($0.partition.partition) })
  }

  // MARK: Requests

  /// Finds the newest requests with one of these targets.
  private func searchRequests(_ targets: Set<Name>, _ application: Name?, _ limit: Int, _ range: TimeRange) async throws(KafkaError) {
    try await searchRequests(range, atMost: limit) { [rules] record in
      let written = Name(record.header(.target) ?? record.key ?? .empty)
      // A token counts in either case.
      let target = written.token.map { "device:\($0)" } ?? written
      return targets.contains(target) && (application == nil || PublishedRequest(record, rules).application == application)
    }
  }

  /// Goes back in time until enough requests are found and no newer ones can be left.
  ///
  /// - Parameter onlyNewest: whether to stop after a round that has found some.
  private func searchRequests(
    _ range: TimeRange, in given: [TopicStretch]? = nil, atMost limit: Int, onlyNewest: Bool = false,
    _ isWanted: @escaping (RecordView) -> Bool
  ) async throws(KafkaError) {
    let stretches = if let given { given } else { try await admin.stretches(of: rules.topics.requests, range) }
    var rounds = Backwards(stretches)
    let found = Gathered(LatestRequests(limit))
    /// The earliest time that was read, by partition.
    let oldest = Gathered([TopicPartition: Int64]())
    while let round = rounds.next() {
      let isEnough = { onlyNewest && limit == 1 && !found.value.newest.isEmpty }
      try await reader.read(round, "requests", in: nil, until: isEnough) { [rules] record in
        let partition = TopicPartition(record.topic, record.partition)
        oldest.value[partition] = min(oldest.value[partition] ?? .max, record.timestamp)
        if range.contains(record.timestamp), isWanted(record) { found.value.add(PublishedRequest(record, rules)) }
      }
      if onlyNewest, !found.value.newest.isEmpty { break }
      if let horizon = found.value.horizon { rounds.leaveOut { oldest.value[$0].map { $0 < horizon } ?? false } }
    }
    for request in found.value.newest { timelines[request.id, default: Timeline(request.id)].add(request) }
    note(rules.topics.requests, stretches)
  }

  /// Whether a record has a wanted id, or a wanted id derives from its place.
  private func isWanted(_ record: RecordView) -> Bool {
    if let id = givenID(record) { return timelines[id] != nil }
    return rules.withRecord(record) { timelines[RequestEnvelope($0).id] != nil }
  }

  private func givenID(_ record: RecordView) -> NotificationID? {
    record.header(.id).flatMap(NotificationID.init(text:))
  }

  /// Reads the requests that events name, at their places. They may be deleted, or their topic may be.
  private func readRequests() async throws(KafkaError) {
    let topic = rules.topics.requests
    var asking: [SourcePosition: [NotificationID]] = [:]
    for (id, timeline) in timelines {
      for source in timeline.unreadSources(in: topic) { asking[source.place, default: []].append(id) }
    }
    let places = try await admin.places(of: Array(asking.keys), in: topic)
    try await reader.read(at: places, "requests") { [self] record in
      let request = PublishedRequest(record, rules)
      for id in asking[request.source.position.place] ?? [] { timelines[id]?.add(request) }
    }
  }

  // MARK: Dead letters and routes

  private func readDeadLetters() async throws(KafkaError) {
    let open = timelines.filter(\.value.mayBeDead)
    guard !open.isEmpty else { return }
    let topic = rules.topics.deadLetters
    let since = open.values.compactMap(\.published).min()
    let stretches = try await admin.stretches(of: topic, TimeRange(from: since.map { $0 - Self.clocks }))
    try await reader.read(stretches, "dead letters") { [self] record in
      let headers = record.texts
      guard let letter = DeadLetter(headers: headers) else {
        if let state = LetterState(headers: headers), let id = state.id, open[id] != nil { timelines[id]?.add(TimelineStep(state, record)) }
        return
      }
      // The id may derive from the letter's source.
      let id = rules.withRecord(record, from: letter.source) { RequestEnvelope($0).id }
      if open[id] != nil { timelines[id]?.add(TimelineStep(letter, record)) }
    }
  }

  /// Finds the applications that the targets have devices for, if the request had no recipient. It probably names the wrong one.
  private func readRegistrations() async throws(KafkaError) {
    let targets = Set(timelines.values.compactMap(\.targetWithoutDevice))
    guard !targets.isEmpty else { return }
    var devices = TargetDevices(of: targets)
    try await devices.read(rules.topics.devices, reader, admin)
    for (id, timeline) in timelines {
      if let target = timeline.targetWithoutDevice { timelines[id]?.registered = devices.applications(of: target) }
    }
  }

  /// Reads the deliveries to lanes. They are kept only for minutes, so most are gone.
  private func readRoutes() async throws(KafkaError) {
    guard let published else { return }
    let topic = rules.topics.deliveries
    let range = TimeRange(from: published - Self.routes.before, to: published + Self.routes.after)
    try await reader.read(try await admin.stretches(of: topic, range), "deliveries") { [self] record in
      guard let id = record.value.flatMap({ DeliveryRecord($0) })?.entry?.id else { return }
      timelines[id]?.add(TimelineStep(routed: record))
    }
  }

  private func note(_ topic: String, _ stretches: [TopicStretch]) {
    let count = stretches.reduce(0) { $0 + Int64($1.offsets.count) }
    let numbers = stretches.map { String($0.partition.partition) }.joined(separator: ",")
    searched.append("\(topic), \(stretches.count == 1 ? "partition" : "partitions") \(numbers): \(ReadableText.count(count, "offset"))")
  }
}

extension SourcePosition {
  /// Its place, without its time.
  fileprivate var place: SourcePosition { SourcePosition(partition: partition, offset: offset, timestamp: 0) }
}

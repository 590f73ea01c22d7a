import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Finds the requests of a range that have not come to their end: of one of their devices there is neither an outcome nor an entry in its mailbox.
/// Loop-confined.
///
/// What the topics tell is judged as an audit judges it, so what a newer one has taken the place of, and what has expired, is no concern. Of the
/// rest, which is to wait in a mailbox, the tokens are read once more, and Redis is asked.
final class UnfinishedSearch: ReadingPace {
  /// One request that is to be in the mailbox of one device.
  private struct Waiting {
    /// The hash of the device's token.
    let device: UInt64
    let revision: Revision
  }

  private struct Place: Hashable {
    let partition: Int32
    let offset: Int64
  }

  /// Of how many it is looked for at most: some 100 bytes each.
  static let maximum = 4_000_000
  /// Questions to Redis that are open at most.
  private static let maximumOpen = 4_096

  private let rules: RequestRules
  private let settings: AuditSettings
  private let admin: Admin
  private let reader: TopicReader
  private let mailboxes: Mailboxes
  private var waiting: [Place: [Waiting]] = [:]
  private var count = 0
  private var open = 0
  private var failure: StoreError?
  private var whenAnswered: CheckedContinuation<Void, Never>?
  private(set) var found = UnfinishedRequests()

  init(_ rules: RequestRules, _ settings: AuditSettings, _ admin: Admin, _ reader: TopicReader, _ shards: Shards) {
    (self.rules, self.settings, self.admin, self.reader) = (rules, settings, admin, reader)
    mailboxes = Mailboxes(shards)
  }

  /// Looks for them.
  func run(_ onProgress: @escaping (ReadingProgress) -> Void) async throws {
    let audit = try await AuditRun(rules, settings, admin)
    try await audit.read(reader)
    try audit.judge(
      onProgress, onLost: { [self] in found.insert($0.sourcePartition, $0.sourceOffset) },
      onWaiting: { [self] fact in
        count += 1
        guard count <= Self.maximum else { return }
        let place = Place(partition: fact.sourcePartition, offset: fact.sourceOffset)
        waiting[place, default: []].append(Waiting(device: fact.device, revision: fact.order))
      })
    guard count <= Self.maximum else { throw TooManyWaiting(maximum: Self.maximum) }
    try await askRedis()
  }

  // MARK: The mailboxes

  private func askRedis() async throws {
    let partitions = Set(waiting.keys.map(\.partition))
    guard !partitions.isEmpty else { return }
    let topics = [rules.topics.requests, rules.topics.journal]
    var stretches: [TopicStretch] = []
    for topic in topics {
      let range = TimeRange(from: settings.published.from.map { $0 - settings.clockSlack })
      stretches += try await admin.stretches(of: topic, range).filter { partitions.contains($0.partition.partition) }
    }
    let journal = rules.topics.journal
    try await reader.read(stretches, "the devices of those that wait", in: self) { [self] record in
      if record.topic == journal { takeJournal(record) } else { takeRequest(record) }
    }
    await answers()
    if let failure { throw failure }
  }

  private func takeRequest(_ record: RecordView) {
    let place = Place(partition: record.partition, offset: record.offset)
    guard let devices = waiting[place] else { return }
    rules.withReading(of: record) { reading in
      guard case .accepted(let view) = reading, case .device(let token) = view.target,
        let token = DeviceToken(token.characters)
      else { return }
      for device in devices where max(1, token.hash64()) == device.device { ask(token.text, device.revision, place) }
    }
  }

  private func takeJournal(_ record: RecordView) {
    guard let value = record.value, let journal = try? JournalRecord(headers: record.texts, value: value) else { return }
    try? journal.forEachEntry(in: value, partition: record.partition) { entry in
      let place = Place(partition: record.partition, offset: entry.offset)
      guard case .page(let page) = entry.content, let devices = waiting[place] else { return }
      for told in page.devices {
        let hash = max(1, told.token.hash64())
        for device in devices where device.device == hash { ask(told.token.text, device.revision, place) }
      }
    }
  }

  private func ask(_ token: String, _ revision: Revision, _ place: Place) {
    guard failure == nil else { return }
    open += 1
    mailboxes.contains(revision, of: token) { [self] answer in
      open -= 1
      switch answer {
      case .success(true): break
      case .success(false): found.insert(place.partition, place.offset)
      case .failure(let error): failure = failure ?? error
      }
      guard open == 0, let waiting = whenAnswered else { return }
      whenAnswered = nil
      waiting.resume()
    }
  }

  private func answers() async {
    guard open > 0 else { return }
    await withCheckedContinuation { continuation in
      // Asked here, for the loop may turn between a question and an await.
      if open == 0 { continuation.resume() } else { whenAnswered = continuation }
    }
  }

  func ended(_ partition: TopicPartition) {}
  func waits(_ partition: TopicPartition) -> Bool { false }
  var isHeld: Bool { open >= Self.maximumOpen }
}

import Kafka
import Notifications
import Store
import Worker

/// Holds back the requests of a rebuild until the pipeline may judge them, and then removes those that have ended from the mailboxes.
///
/// A request waits for its entry of the journal, which is read ahead of the requests. A redriven one also waits until the mailboxes are as
/// it found them.
final class RebuiltRequests {
  /// One item that was read.
  private enum Item {
    /// A record of a batch.
    case record(RecordBatch, Int)
    /// An unreadable stretch, with its last offset.
    case unreadable(through: Int64)
    /// The end of the partition at that time.
    case end(Int64)
  }

  private let progress: RebuildProgress
  private let pipeline: Pipeline
  private let verdicts: JournaledVerdicts
  private let rates: RateLimits
  private let topics: Topics
  /// What events say of the requests.
  private let endings: Endings
  private var ahead = JournalAhead()
  /// What was read of each partition and is not judged yet.
  private var held: [Int: ArraySlice<Item>] = [:]
  /// Counts the requests of each partition, for those that the journal does not tell of.
  private var counters: [Int32: RateCounter] = [:]

  /// Maximum number of kept endings, about 170 bytes each; at the limit the events wait for the requests.
  private static let endingsMaximum = 200_000
  /// How far the clocks of two brokers may be apart.
  private static let slackMilliseconds: Int64 = 5_000

  init(
    _ progress: RebuildProgress, _ pipeline: Pipeline, _ verdicts: JournaledVerdicts, _ rates: RateLimits, _ mailboxes: Mailboxes,
    _ topics: Topics
  ) {
    (self.progress, self.pipeline, self.verdicts, self.rates, self.topics) = (progress, pipeline, verdicts, rates, topics)
    endings = Endings(mailboxes, verdicts)
  }

  /// Called when Redis has answered a deletion.
  var onAnswer: (StoreError?) -> Void {
    get { endings.onAnswer }
    set { endings.onAnswer = newValue }
  }

  /// Begins these ranges of requests, with these of the journal.
  func expect(_ ranges: [(TopicPartition, Range<Int64>)], ahead journal: [(TopicPartition, Range<Int64>)]) {
    ahead = JournalAhead()
    let ends = Dictionary(journal.map { ($0.0.partition, $0.1.upperBound) }) { first, _ in first }
    for (name, range) in ranges where name.topic == topics.requests {
      ahead.add(
        name.partition, from: range.lowerBound, incarnation: progress.markers.incarnations[name] ?? 0, journal: ends[name.partition])
    }
  }

  /// Drops what is held, with the batches that it keeps.
  func drop() { held = [:] }

  // MARK: What is read

  /// Takes a record of the journal.
  func takeJournal(_ record: RecordView, headers: [(name: String, value: String)]) {
    ahead.take(record.partition, offset: record.offset, headers: headers, record.value)
  }

  /// The journal's partition is read up to an offset.
  func journalReached(_ partition: Int32, _ offset: Int64) { ahead.reached(partition, offset) }

  /// Takes an event of the time of its record.
  func take(_ event: Event, at time: Int64) { if endings.take(event, at: time) { progress.report.endings += 1 } }

  /// Takes a request, which waits.
  func take(_ batch: RecordBatch, _ index: Int) { held[batch[index].partitionIndex, default: []].append(.record(batch, index)) }

  /// Notes an unreadable stretch of requests.
  func foundUnreadable(_ index: Int, through last: Int64) { held[index, default: []].append(.unreadable(through: last)) }

  /// Notes the end of a partition of requests.
  func reachedEnd(_ index: Int, at offset: Int64) {
    if held[index] != nil { held[index]?.append(.end(offset)) } else { progress.passed(index, below: offset) }
  }

  // MARK: What is judged

  /// Whether all requests and endings that were taken are applied.
  var isIdle: Bool { endings.count == 0 && endings.deletions == 0 && pipeline.isIdle }

  /// How many deletions are under way.
  var deletions: Int { endings.deletions }

  /// Whether nothing more may be read before the requests under way are applied.
  var mustWait: Bool { endings.count > Self.endingsMaximum && !pipeline.isIdle }

  /// Pauses partitions with held requests, and chooses those of the journal to read.
  func decide(_ wait: inout [Int], _ goOn: inout [Int]) {
    goOn.removeAll { held[$0] != nil }
    wait += held.keys
    let awaited = Set(held.keys.compactMap { progress.names[$0]?.partition })
    for (index, name) in progress.names where name.topic == topics.journal {
      if ahead.wantsMore(name.partition, isAwaited: awaited.contains(name.partition)) { goOn.append(index) } else { wait.append(index) }
    }
    guard endings.count > Self.endingsMaximum else { return }
    // Except the slowest of all partitions, since requests may wait for it, too.
    let last = progress.step.last
    let events = goOn.filter { progress.names[$0]?.topic == topics.events && $0 != last }
    wait += events
    goOn.removeAll { events.contains($0) }
  }

  /// Begins the requests that may be judged now, and applies the endings of those that are applied.
  func advance() {
    applyEndings()
    var hasGoneOn = true
    while hasGoneOn { hasGoneOn = held.keys.map { beginHeld(of: $0) }.contains(true) }
    // The endings may have waited for requests that were just skipped.
    applyEndings()
  }

  /// Applies the endings whose requests are applied: those before the time that the slowest partition of requests has reached.
  private func applyEndings() {
    // In rounds, since each round looks at all endings.
    guard endings.count > 0, endings.deletions == 0, pipeline.isIdle else { return }
    let reached = progress.step.earliest(of: progress.names.filter { $0.value.topic == topics.requests }.keys)
    guard reached != .min else { return }
    endings.apply(through: reached == .max ? .max : reached - Self.slackMilliseconds, maximum: RebuildProgress.inFlightMaximum)
  }

  /// Begins a partition's held requests. Returns whether there was progress.
  private func beginHeld(of index: Int) -> Bool {
    var hasGoneOn = false
    var (batch, begun): (RecordBatch?, [BegunRecord]) = (nil, [])
    func handOver() {
      if let batch, !begun.isEmpty { pipeline.take(batch, begun) }
      begun = []
    }
    while progress.inFlight <= RebuildProgress.inFlightMaximum, let item = held[index]?.first {
      switch item {
      case .end(let offset): progress.passed(index, below: offset)
      case .unreadable(let last): progress.skip(index, through: last)
      case .record(let next, let place):
        let answer = answer(on: next[place])
        if case .wait = answer {
          handOver()
          return hasGoneOn
        }
        if next !== batch {
          handOver()
          batch = next
        }
        if let record = begin(next[place], at: place, answer) { begun.append(record) }
      }
      held[index]?.removeFirst()
      if held[index]?.isEmpty == true { held[index] = nil }
      hasGoneOn = true
    }
    handOver()
    return hasGoneOn
  }

  /// The journal's facts about a request, or that it has to wait for them.
  private func answer(on record: RecordView) -> JournalAhead.Answer {
    guard let end = progress.step.end(of: record.partitionIndex), record.offset < end else { return .untold }
    if record.isRedriven, !isRestored(upTo: record) { return .wait }
    return ahead.tell(of: record.partition, offset: record.offset, timestamp: record.timestamp)
  }

  /// Whether the mailboxes are as a redriven request found them. Such a request is delivered again only if no entry of it waits.
  private func isRestored(upTo record: RecordView) -> Bool {
    let time = record.timestamp + Self.slackMilliseconds
    progress.reached(record.partitionIndex, time)
    return progress.step.earliest >= time && endings.earliest > record.timestamp && endings.deletions == 0
  }

  /// Gives a request its ticket; nil if it came to no mailbox, or is not processed.
  private func begin(_ record: RecordView, at index: Int, _ answer: JournalAhead.Answer) -> BegunRecord? {
    guard progress.take(record) else { return nil }
    progress.report.requests += 1
    progress.note(record)
    let excess = rates.isActive ? rates.count(record, in: &counters[record.partition, default: RateCounter()]) : nil
    guard case .told(let telling) = answer else {
      return excess == nil ? progress.begin(record, at: index) : nil
    }
    guard !telling.isKeptNowhere, let begun = progress.begin(record, at: index) else { return nil }
    verdicts.begin(begun.ticket, telling)
    return begun
  }
}

extension RecordView {
  private static let origin = RequestHeader.origin.name.description

  /// Whether the record is a redriven request.
  fileprivate var isRedriven: Bool { header(Self.origin).flatMap { Origin($0) }?.purpose == .redrive }
}

import EventLoop
import Kafka
import Notifications
import Worker

/// Selects records of a range, and writes them again.
final class ReplaySource {
  private(set) var plan: ReplayPlan
  private let run: RepublishingRun
  private let rules: RequestRules
  private let forecast: ReplayForecast
  private var places: [Int32: Int] = [:]
  /// The selected records; nil for all.
  private let only: Set<RecordPlace>?

  /// The most records that are read and not finished, much more than a broker's rate needs.
  private static let maximumRecords = 100_000

  init(_ plan: ReplayPlan, _ run: RepublishingRun, _ forecast: ReplayForecast, only: Set<RecordPlace>?) {
    (self.plan, self.run, rules, self.forecast, self.only) = (plan, run, forecast.rules, forecast, only)
    for (place, partition) in plan.partitions.enumerated() { places[partition.partition] = place }
    run.isFull = { [unowned self] in self.plan.partitions.reduce(0) { $0 + $1.open } >= Self.maximumRecords }
    run.writer?.onWritten = { [unowned self] report in
      if let place = places[Int32(report.opaque)] { self.plan.partitions[place].acknowledged(at: report.offset) }
    }
    run.writer?.onTooLarge = { [unowned self] opaque in
      if let place = places[Int32(opaque)] { self.plan.partitions[place].refuse() }
    }
  }

  /// Notes that all records were read.
  func end() { for place in plan.partitions.indices { plan.partitions[place].end() } }

  /// Takes the next record of a partition.
  func take(_ record: RecordView) {
    // Records that were fetched already are read again by the continuation.
    guard !run.isStopping, let place = places[record.partition] else { return }
    let decision = decision(on: record)
    let writer = decision.kind == .written ? run.writer : nil
    plan.partitions[place].read(record.offset, decision.kind, decision.effect, isAwaited: writer != nil)
    guard let writer else { return }
    run.wrote()
    switch decision {
    case .skip: break
    case .new(let new): writer.begin(new)
    case .same(let source, _):
      let isUnfinished = plan.selection.isOfUnfinished
      writer.begin(record, from: source, why: isUnfinished ? .redrive : .replay, isUnfinished: isUnfinished)
    }
    writer.headers.append(ReplayHeader.name, text: "\(plan.run)/\(record.offset)")
    writer.write(key: record.key, value: record.value, to: record.partition, opaque: UInt64(record.partition))
  }

  /// What becomes of a record.
  private enum Decision {
    /// It is not written, for this reason.
    case skip(RunCount)
    /// It is written unchanged, with its first place, and probably has this effect.
    case same(SourceCoordinates, RunCount?)
    /// It is written as a new request.
    case new(StoredRecord)

    var kind: RunCount { if case .skip(let reason) = self { reason } else { .written } }
    var effect: RunCount? { if case .same(_, let effect) = self { effect } else { nil } }
  }

  private func decision(on record: RecordView) -> Decision {
    let selection = plan.selection
    if only?.contains(RecordPlace(partition: record.partition, offset: record.offset)) == false { return .skip(.passedOver) }
    if ReplayHeader.isThere(record) { return .skip(.ofReplays) }
    guard selection.published.contains(record.timestamp), selection.filter.matches(record, rules) else { return .skip(.passedOver) }
    if selection.isNew { return isOfSchedule(record) ? .skip(.ofSchedules) : .new(StoredRecord(record, asNewIn: plan.run)) }
    guard let source = source(of: record) else { return .skip(.fromElsewhere) }
    return .same(source, selection.isForecast ? forecast.effect(of: record, from: source, now: WallClock.milliseconds()) : nil)
  }

  /// Whether a record has scheduled something, or fires an occurrence.
  ///
  /// As a new request, the one would be scheduled twice. The other would be rejected, since its apns-id is that of the occurrence.
  private func isOfSchedule(_ record: RecordView) -> Bool {
    rules.withReading(of: record) { reading in
      switch reading {
      case .accepted(let view): view.timing.isOfSchedule
      case .rejected: record.header(.firing) != nil
      }
    }
  }

  /// The first place of a request; nil if the workers have rejected its origin, or would reject the new one.
  private func source(of record: RecordView) -> SourceCoordinates? {
    let first: SourceCoordinates? = rules.withRecord(record) { request in
      // Workers have rejected a record with two origins.
      if request.headers.duplicate == .origin { return nil }
      return request.headers[.origin] == nil ? SourceCoordinates(record) : RequestEnvelope(request).origin?.place
    }
    let written = SourcePosition(partition: record.partition, offset: .max, timestamp: WallClock.milliseconds())
    guard let first, Origin.brokenRule(of: first.position, for: written) == nil else { return nil }
    return first
  }
}

extension StoredRecord {
  /// Makes a new request from a record: without its first place, and with another apns-id.
  ///
  /// The id derives from the replay's name and the place, so a record that an interrupted replay writes twice is a repeat.
  fileprivate init(_ record: RecordView, asNewIn run: String) {
    self.init(record)
    let position = SourcePosition(record)
    var run = run
    let id = run.withUTF8 { NotificationID.derived(topic: UnsafeRawBufferPointer($0), source: position) }
    RequestEdits(asNew: id).apply(to: &self)
  }
}

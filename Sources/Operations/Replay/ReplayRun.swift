import EventLoop
import Glibc
package import Kafka
import Notifications
import Worker

/// The limits of a replay.
package struct ReplaySettings: Sendable {
  /// Records per second; nil for no limit.
  package var recordsPerSecond: Int?
  /// Bytes of keys and values per second; nil for no limit.
  package var bytesPerSecond: Int?
  /// The replay waits while the workers' group is further behind, in milliseconds; nil for never.
  package var maximumBehind: Int64?
  /// The workers' group.
  package var group = "carillon-transform"
  /// Whether nothing is written.
  package var isDryRun = false
  /// The brokers' limits for writes to the destination.
  package var limits = WriteLimits()
  /// A younger request is in progress and does not count as unfinished, in milliseconds.
  package var grace: Int64 = 30_000
  /// The folder for facts that do not fit into memory, for the search of unfinished requests.
  package var spillFolder = "/tmp"

  /// Makes settings without limits.
  package init() {}
}

/// Reads the selected records and writes them again. Loop-confined.
final class ReplayRun: ReadingPace {
  private let loop: EventLoop
  private let rules: RequestRules
  /// Nil if nothing is written.
  private let republisher: Republisher?
  private(set) var plan: ReplayPlan
  private let selection: ReplaySelection
  private var places: [Int32: Int] = [:]
  /// The selected records; nil for all.
  private let only: Set<RecordPlace>?
  private let forecast: ReplayForecast
  private var rate: ReplayRate
  /// The bytes of headers that were written since no record was in flight.
  private var headerBytes = 0
  /// Whether the workers are behind.
  var isBehind = false
  /// Whether it must end early.
  private(set) var isStopping = false
  private(set) var failure: KafkaError?

  /// The most records that are read and not finished, and the most bytes in flight. Both are much more than a broker's rate needs.
  private static let (maximumRecords, maximumBytes) = (100_000, 32 << 20)

  init(
    on loop: EventLoop, _ plan: ReplayPlan, _ settings: ReplaySettings, _ forecast: ReplayForecast, only: Set<RecordPlace>?,
    _ republisher: Republisher?
  ) {
    (self.loop, self.plan, self.forecast, self.only, self.republisher) = (loop, plan, forecast, only, republisher)
    (rules, selection) = (forecast.rules, plan.selection)
    rate = ReplayRate(records: settings.recordsPerSecond, bytes: settings.bytesPerSecond)
    for (place, partition) in plan.partitions.enumerated() { places[partition.partition] = place }
    republisher?.onWritten = { [unowned self] in written($0) }
    republisher?.onTooLarge = { [unowned self] opaque in
      if let place = places[Int32(opaque)] { self.plan.partitions[place].refuse() }
    }
    republisher?.onFailure = { [unowned self] error in
      failure = error
      isStopping = true
    }
  }

  /// Ends early: records that were read are written, and no more are read.
  func stop() { isStopping = true }

  // MARK: Input

  /// Takes the next record of a partition.
  func take(_ record: RecordView) {
    // Records that were fetched already are read again by the continuation.
    guard !isStopping, let place = places[record.partition] else { return }
    let headers = Headers(record)
    let (fate, again) = fate(of: record, headers)
    plan.partitions[place].read(record.offset, fate, isAwaited: fate.isWritten && republisher != nil)
    guard case .written(let bytes, _) = fate, let again, republisher != nil else { return }
    rate.wrote(bytes: bytes + headers.bytes)
    headerBytes += headers.bytes
    write(record, again)
  }

  /// How a record is published again.
  private enum Again {
    /// Unchanged, with its first place.
    case same(SourceCoordinates)
    /// As a new request.
    case new(StoredRecord)
  }

  /// Facts about a record's headers.
  private struct Headers {
    /// The bytes of names and values.
    var bytes = 0
    var origins = 0

    init(_ record: RecordView) {
      record.forEachHeader { name, value in
        let count = strlen(name)
        bytes += count + (value?.count ?? 0)
        if RequestHeader.named(name) == .origin { origins += 1 }
      }
    }
  }

  private func fate(of record: RecordView, _ headers: Headers) -> (ReplayFate, Again?) {
    if let only, !only.contains(RecordPlace(partition: record.partition, offset: record.offset)) { return (.skipped(.passedOver), nil) }
    if ReplayHeader.isThere(record) { return (.skipped(.ofReplays), nil) }
    guard selection.published.contains(record.timestamp), !selection.isOfRequests || selection.filter.matches(record, rules) else {
      return (.skipped(.passedOver), nil)
    }
    let bytes = (record.key?.count ?? 0) + (record.value?.count ?? 0)
    if selection.isNew {
      if isOfSchedule(record) { return (.skipped(.ofSchedules), nil) }
      let new = StoredRecord(record, asNewIn: plan.run)
      return (.written(bytes: bytes, forecast.effect(ofNew: new, partition: record.partition, now: WallClock.milliseconds())), .new(new))
    }
    // Workers have rejected a record with two origins.
    guard headers.origins < 2 || !selection.isOfRequests, let source = source(of: record) else {
      return (.skipped(.fromElsewhere), nil)
    }
    let effect = selection.isForecast ? forecast.effect(of: record, from: source, now: WallClock.milliseconds()) : nil
    return (.written(bytes: bytes, effect), .same(source))
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

  private func write(_ record: RecordView, _ again: Again) {
    guard let republisher else { return }
    switch again {
    case .new(let new): republisher.begin(new)
    case .same(let source) where selection.isOfRequests:
      republisher.begin(
        record, from: source, why: selection.isOfUnfinished ? .redrive : .replay, isUnfinished: selection.isOfUnfinished)
    case .same: republisher.headers.copy(from: record)
    }
    republisher.headers.append(ReplayHeader.name, text: "\(plan.run)/\(record.offset)")
    republisher.write(key: record.key, value: record.value, to: record.partition, opaque: UInt64(record.partition))
  }

  /// The first place of a request; nil if the workers have rejected its origin, or would reject the new one.
  private func source(of record: RecordView) -> SourceCoordinates? {
    let own = SourceCoordinates(
      topic: selection.topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp)
    guard selection.isOfRequests else { return own }
    let first = rules.withRecord(record) { request in
      request.headers[.origin] == nil ? own : RequestEnvelope(request).origin?.place
    }
    let written = SourcePosition(partition: record.partition, offset: .max, timestamp: WallClock.milliseconds())
    guard let first, Origin.brokenRule(of: first.position, for: written) == nil else { return nil }
    return first
  }

  // MARK: Output

  private func written(_ report: DeliveryReport) {
    if republisher?.inFlight == 0 { headerBytes = 0 }
    if let place = places[Int32(report.opaque)] { plan.partitions[place].acknowledged(at: report.offset) }
  }

  // MARK: Pace

  func ended(_ partition: TopicPartition) {
    guard !isStopping, let place = places[partition.partition] else { return }
    plan.partitions[place].end()
  }

  func waits(_ partition: TopicPartition) -> Bool { false }

  var isHeld: Bool {
    guard !isStopping, let republisher else { return false }
    return isBehind || republisher.bytesInFlight + headerBytes >= Self.maximumBytes
      || plan.partitions.reduce(0, { $0 + $1.open }) >= Self.maximumRecords
      || !rate.allows(at: loop.milliseconds())
  }
}

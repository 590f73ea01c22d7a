import EventLoop
import Glibc
public import Kafka
import Notifications

/// How fast a replay may be.
public struct ReplaySettings: Sendable {
  /// Records in a second; nil: as many as there are.
  public var recordsPerSecond: Int?
  /// Bytes of keys and values in a second; nil: as many as there are.
  public var bytesPerSecond: Int?
  /// It waits while the workers' group is behind by more, in milliseconds; nil: it does not ask.
  public var maximumBehind: Int64?
  /// The workers' group.
  public var group = "carillon-transform"
  /// Nothing is written.
  public var isDryRun = false
  /// What the brokers take as one batch of the topic that is written to.
  public var limits = WriteLimits()
  /// A request so young is under way, and not unfinished, in milliseconds.
  public var grace: Int64 = 30_000
  /// Where facts are put that do not fit into memory, to find out what has not come to its end.
  public var spillFolder = "/tmp"

  /// As fast as it goes.
  public init() {}
}

/// Reads what is to be replayed, and writes it again. Loop-confined.
final class ReplayRun: ReadingPace {
  private let loop: EventLoop
  private let rules: RequestRules
  /// Nil where nothing is written.
  private let republisher: Republisher?
  private(set) var plan: ReplayPlan
  private var places: [Int32: Int] = [:]
  /// The records that are meant; nil: all.
  private let only: Set<RecordPlace>?
  private let forecast: ReplayForecast
  private var rate: ReplayRate
  /// Bytes of headers that were written since the last time that nothing was on its way.
  private var headerBytes = 0
  /// The workers are behind.
  var isBehind = false
  /// It is to come to its end early.
  private(set) var isStopping = false
  private(set) var failure: KafkaError?

  /// What may be read and not done before reading waits, and the bytes of it that are on their way to Kafka: much more than what is under way
  /// at any rate that a broker takes.
  private static let (maximumRecords, maximumBytes) = (100_000, 32 << 20)

  init(
    on loop: EventLoop, _ plan: ReplayPlan, _ settings: ReplaySettings, _ forecast: ReplayForecast, only: Set<RecordPlace>?,
    _ republisher: Republisher?
  ) {
    (self.loop, self.plan, self.forecast, self.only, self.republisher) = (loop, plan, forecast, only, republisher)
    rules = forecast.rules
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

  /// Comes to its end soon: what is read is written, and nothing more is read.
  func stop() { isStopping = true }

  // MARK: In

  /// Takes the next record of a partition.
  func take(_ record: RecordView) {
    // What was fetched already is read again when it goes on.
    guard !isStopping, let place = places[record.partition] else { return }
    let headers = Headers(record)
    let (fate, again) = fate(of: record, headers)
    plan.partitions[place].read(record.offset, fate, isAwaited: fate.isWritten && republisher != nil)
    guard case .written(let bytes, _) = fate, let again, republisher != nil else { return }
    rate.wrote(bytes: bytes + headers.bytes)
    headerBytes += headers.bytes
    write(record, again)
  }

  /// How a record comes again.
  private enum Again {
    /// As it is, from where it was first.
    case same(SourceCoordinates)
    /// As a request of its own.
    case new(StoredRecord)
  }

  /// What a record's headers say of it.
  private struct Headers {
    /// Of names and values.
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
    if let only, !only.contains(RecordPlace(partition: record.partition, offset: record.offset)) { return (.passedOver, nil) }
    if ReplayHeader.isThere(record) { return (.ofReplay, nil) }
    guard plan.published.contains(record.timestamp), !plan.isOfRequests || plan.filter.matches(record, rules) else {
      return (.passedOver, nil)
    }
    let bytes = (record.key?.count ?? 0) + (record.value?.count ?? 0)
    if plan.isNew {
      let new = StoredRecord(record, asNewIn: plan.run)
      return (.written(bytes: bytes, forecast.effect(ofNew: new, partition: record.partition, now: WallClock.milliseconds())), .new(new))
    }
    // Two are a fault for which the workers have rejected it.
    guard headers.origins < 2 || !plan.isOfRequests, let source = source(of: record) else { return (.fromElsewhere, nil) }
    let effect =
      plan.isForecast ? forecast.effect(of: record, from: source, now: WallClock.milliseconds()) : .possible
    return (.written(bytes: bytes, effect), .same(source))
  }

  private func write(_ record: RecordView, _ again: Again) {
    guard let republisher else { return }
    switch again {
    case .new(let new): republisher.begin(new)
    case .same(let source) where plan.isOfRequests:
      republisher.begin(record, from: source, why: plan.isOfUnfinished ? .redrive : .replay, isUnfinished: plan.isOfUnfinished)
    case .same: republisher.headers.copy(from: record)
    }
    republisher.headers.append(ReplayHeader.name, text: "\(plan.run)/\(record.offset)")
    let isTaken = republisher.write(key: record.key, value: record.value, to: record.partition, opaque: UInt64(record.partition))
    // Reading waits long before there is no room, unless settings of the client leave it none.
    if !isTaken {
      failure = KafkaError(
        .queueFull, "write to \(plan.destination)", message: "the client takes too little at a time: see --kafka-property")
      isStopping = true
    }
  }

  /// Where a request was first; nil where the workers have rejected its origin, or would reject the one that it would be given.
  private func source(of record: RecordView) -> SourceCoordinates? {
    let own = SourceCoordinates(topic: plan.topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp)
    guard plan.isOfRequests else { return own }
    let first = rules.withRecord(record) { request in
      request.headers.origin == nil ? own : RequestEnvelope(request).origin?.place
    }
    let written = SourcePosition(partition: record.partition, offset: .max, timestamp: WallClock.milliseconds())
    guard let first, Origin.brokenRule(of: first.position, for: written) == nil else { return nil }
    return first
  }

  // MARK: Out

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

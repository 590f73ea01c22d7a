import Calendars
import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Produces the firings of the schedules that are due in the partitions of a lane. Loop-confined.
///
/// A firing only asks: whoever judges it looks whether the schedule stands as the firing says. So one too many does no harm, and one that is
/// lost is produced again.
final class Firings {
  private let loop: EventLoop
  private let schedules: Schedules
  private let writer: ScheduleWriter
  private let metrics: TransformMetrics
  private var table: DueTable
  private let timer: Timer
  /// Whether Redis is known to have all that was scheduled, replaced and canceled. Before that nothing fires.
  private(set) var isHeld = true
  /// When firings were produced that are not judged yet, in milliseconds of the loop.
  private var underWay: [ScheduleKey: UInt64] = [:]
  /// The schedules whose firings have reports to come.
  private var reports: [UInt32: ScheduleKey] = [:]
  private var last: UInt32 = 0
  private var isLooking = false
  /// Called where Redis has lost a bucket, or takes no writes.
  var onError: (StoreError) -> Void = { _ in }

  /// - Parameter buckets: how many the cluster has.
  init(on loop: EventLoop, _ schedules: Schedules, _ writer: ScheduleWriter, buckets: Int, _ metrics: TransformMetrics) {
    (self.loop, self.schedules, self.writer, self.metrics) = (loop, schedules, writer, metrics)
    table = DueTable(buckets: buckets)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in look() }
  }

  func close() { timer.close() }

  // MARK: The partitions

  /// The partitions of requests that the lane has now.
  func owns(_ partitions: Set<Int32>) {
    table.keep(partitions)
    look()
  }

  /// Redis may have lost something.
  func hold() {
    isHeld = true
    table.forgetAll()
    underWay = [:]
  }

  /// Redis has all that was scheduled, replaced and canceled.
  func goOn() {
    isHeld = false
    look()
  }

  // MARK: What is due

  /// A request or a firing was applied to a schedule.
  func applied(_ applied: ScheduleApplier.Applied, _ job: ScheduleJob) {
    if case .firing = job.purpose { underWay[job.key] = nil }
    guard let record = applied.standing, let due = record.pending?.earliest?.due else { return }
    var next = due
    // A firing whose time had not come by the broker's clock, or that was another's, is produced again; but not at once.
    if case .ignored = applied.verdict { next = max(due, loop.wallMilliseconds() + Int64(Self.againMilliseconds)) }
    table.written(next, at: place(of: job.key, record))
    look()
  }

  private func place(of key: ScheduleKey, _ record: ScheduleRecord) -> DueTable.Place {
    DueTable.Place(partition: Int32(record.newest.revision.sourcePartition), bucket: schedules.bucket(of: key))
  }

  private func look() {
    guard !isHeld, !isLooking else { return }
    isLooking = true
    defer { isLooking = false }
    while true {
      switch table.step(at: loop.wallMilliseconds()) {
      case .ask(let questions): for question in questions { ask(question) }
      case .wait(let until):
        return timer.start(after: Int(min(max(1, until - loop.wallMilliseconds()), Self.longestWait)))
      case .idle: return
      }
    }
  }

  private func ask(_ question: DueTable.Question) {
    let now = loop.wallMilliseconds()
    let place = question.place
    schedules.due(in: place.bucket, of: UInt32(place.partition), until: now, count: Self.page) { [self] answer in
      switch answer {
      case .failure(let error):
        onError(error)
        table.failed(question)
        timer.start(noLaterThan: Self.againMilliseconds)
      case .success(let due):
        if !due.unreadable.isEmpty { schedules.remove(unreadable: due.unreadable, in: place.bucket, of: UInt32(place.partition)) { _ in } }
        came(due, to: question, now)
      }
    }
  }

  private func came(_ due: Schedules.Due, to question: DueTable.Question, _ now: Int64) {
    let outdated = loop.milliseconds() - min(loop.milliseconds(), UInt64(Self.lostMilliseconds))
    var next = due.next
    for (key, _) in due.schedules {
      // One that is under way for long is lost.
      if let since = underWay[key], since > outdated {
        next = min(next ?? .max, now + Int64(Self.againMilliseconds))
      } else {
        underWay[key] = loop.milliseconds()
        schedules.read(key) { [self] state in fire(key, state) }
      }
    }
    table.answered(due.schedules.count + due.unreadable.count < Self.page ? next : now + 1, to: question)
    look()
  }

  private func fire(_ key: ScheduleKey, _ state: Result<Schedules.State, StoreError>) {
    let now = loop.wallMilliseconds()
    guard !isHeld, case .success(let state) = state, let record = state.record, let pending = record.pending else {
      if case .failure(let error) = state { onError(error) }
      underWay[key] = nil
      return
    }
    for time in pending.dueTimes where time.due <= now {
      last &+= 1
      guard writer.fire(time, of: key, record, pending, now: now, .firing(last)) else { return again(key, record) }
      reports[last] = key
      metrics.firings.increment()
    }
  }

  /// Kafka has a firing, or has not.
  func reported(_ number: UInt32, failed: Bool) {
    guard let key = reports.removeValue(forKey: number), failed else { return }
    schedules.read(key) { [self] state in
      if case .success(let state) = state, let record = state.record { again(key, record) } else { underWay[key] = nil }
    }
  }

  private func again(_ key: ScheduleKey, _ record: ScheduleRecord) {
    underWay[key] = nil
    table.written(loop.wallMilliseconds() + Int64(Self.againMilliseconds), at: place(of: key, record))
    look()
  }

  /// How many schedules are asked for at once.
  private static let page = 256
  /// When something is tried again.
  private static let againMilliseconds = 200
  /// A firing that was not judged for so long is produced again.
  private static let lostMilliseconds = 30_000
  /// The clock may be set meanwhile.
  private static let longestWait: Int64 = 10_000
}

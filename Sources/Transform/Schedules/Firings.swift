import Calendars
import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Produces the firings of the schedules that are due in the partitions of a lane, and finds the ended ones that are to be followed up.
/// Loop-confined.
///
/// A firing only asks: whoever judges it looks whether the schedule stands as the firing says. So one too many does no harm, and one that is
/// lost is produced again.
final class Firings {
  private let loop: EventLoop
  private let schedules: Schedules
  private let writer: ScheduleWriter
  private let followUps: ScheduleFollowUps
  private let metrics: TransformMetrics
  private let logger: Logger
  private var table: DueTable
  private var damaged = DamagedSchedules()
  /// Places whose due times are being restored.
  private var restoring: Set<DueTable.Place> = []
  private let timer: Timer
  /// Whether Redis is known to have all that was scheduled, replaced and canceled. Before that nothing fires.
  private(set) var isHeld = true
  /// Whether Redis has not answered, and is not asked for a moment.
  private var isResting = false
  /// Schedules whose firings are not judged yet.
  private var underWay: [ScheduleKey: UnderWay] = [:]
  /// The schedules whose firings have reports to come.
  private var reports: [UInt32: (key: ScheduleKey, place: DueTable.Place)] = [:]
  private var last: UInt32 = 0
  private var isLooking = false

  /// The firings of one schedule that are not judged yet.
  private struct UnderWay {
    let partition: Int32
    /// When it was found to be due, in milliseconds of the loop.
    let since: UInt64
    /// How many were written.
    var firings = 0
  }

  /// Called where Redis has lost a bucket, or takes no writes.
  var onError: (StoreError) -> Void = { _ in }
  /// Called with what keeps schedules from firing, each time that it changes; nil where nothing does.
  var onDamage: (String?) -> Void = { _ in }
  private var toldDamage: String?

  /// - Parameter buckets: how many the cluster has.
  init(
    on loop: EventLoop, _ schedules: Schedules, _ writer: ScheduleWriter, _ followUps: ScheduleFollowUps, buckets: Int,
    _ metrics: TransformMetrics, _ logger: Logger
  ) {
    (self.loop, self.schedules, self.writer, self.followUps) = (loop, schedules, writer, followUps)
    (self.metrics, self.logger) = (metrics, logger)
    table = DueTable(buckets: buckets)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in
      isResting = false
      look()
    }
  }

  func close() { timer.close() }

  // MARK: The partitions

  /// The partitions of requests that the lane has now.
  func owns(_ partitions: Set<Int32>) {
    table.keep(partitions)
    underWay = underWay.filter { partitions.contains($0.value.partition) }
    damaged.keep(partitions)
    tellDamage()
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
  func applied(_ applied: ScheduleApplier.Applied, to key: ScheduleKey, isFiring: Bool) {
    if isFiring, let firings = underWay[key]?.firings {
      underWay[key]?.firings = firings - 1
      if firings <= 1 { underWay[key] = nil }
    }
    guard let record = applied.standing else { return }
    if let followUp = applied.followUp { table.written(followUp, at: place(of: key, record)) }
    if let due = record.pending?.earliest?.due {
      var next = due
      // A firing whose time had not come by the broker's clock, or that was another's, is produced again; but not at once.
      if case .ignored = applied.verdict { next = max(due, loop.wallMilliseconds() + Int64(Self.againMilliseconds)) }
      table.written(next, at: place(of: key, record))
    }
    look()
  }

  /// Something is to be done now in a place.
  func looksAgain(at place: DueTable.Place) {
    table.written(loop.wallMilliseconds(), at: place)
    look()
  }

  private func place(of key: ScheduleKey, _ record: ScheduleRecord) -> DueTable.Place {
    DueTable.Place(partition: Int32(record.newest.revision.sourcePartition), bucket: schedules.bucket(of: key))
  }

  private func look() {
    guard !isLooking else { return }
    isLooking = true
    defer { isLooking = false }
    // A question that cannot be sent fails within this loop.
    while !isHeld, !isResting {
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
      case .failure(let error) where error.code == .faulty:
        // Only this place is concerned. The others go on.
        onError(error)
        found(.dueTimes, at: place, error)
        table.answered(now + Int64(Self.damagedMilliseconds), to: question)
        look()
      case .failure(let error):
        onError(error)
        table.failed(question)
        isResting = true
        timer.start(after: Self.againMilliseconds)
      case .success(let due): came(due, to: question, now)
      }
    }
  }

  private func came(_ due: Schedules.Due, to question: DueTable.Question, _ now: Int64) {
    let outdated = loop.milliseconds() - min(loop.milliseconds(), UInt64(Self.lostMilliseconds))
    var hasFired = false
    remove(due.unreadable, at: question.place)
    remove(due.unreadableFollowUps, amongFollowUps: true, at: question.place)
    for key in due.followUps { followUps.begin(key, at: question.place) }
    if due.areMissing { restore(question.place) } else { mended(.dueTimes, at: question.place) }
    damaged.keep(Set(due.schedules.map(\.key) + due.followUps), at: question.place)
    tellDamage()
    for (key, _) in due.schedules {
      // One that is under way for long is lost.
      if let known = underWay[key], known.since > outdated { continue }
      hasFired = true
      underWay[key] = UnderWay(partition: question.place.partition, since: loop.milliseconds())
      schedules.read(key) { [self] state in fire(key, state, question.place) }
    }
    // What was due is looked at again: its firings may be lost, or come to nothing.
    var next = due.next ?? .max
    if !due.schedules.isEmpty || !due.followUps.isEmpty { next = min(next, now + Int64(Self.lostMilliseconds)) }
    if due.areMissing { next = min(next, now + Int64(Self.damagedMilliseconds)) }
    if due.schedules.count + due.unreadable.count >= Self.page {
      next = now + Int64(hasFired ? 1 : Self.againMilliseconds)
    } else if due.followUps.count + due.unreadableFollowUps.count >= Self.page {
      next = min(next, now + Int64(Self.againMilliseconds))
    }
    table.answered(next == .max ? nil : next, to: question)
    look()
  }

  private func fire(_ key: ScheduleKey, _ state: Result<Schedules.State, StoreError>, _ place: DueTable.Place) {
    let now = loop.wallMilliseconds()
    switch state {
    case .failure(let error) where error.code == .faulty:
      // It stays under way, so that it is looked at again when it counts as lost.
      onError(error)
      found(.schedule(key), at: place, error)
    case .failure(let error):
      onError(error)
      again(key, place)
    case .success(let state):
      mended(.schedule(key), at: place)
      guard let record = state.record, let pending = record.pending else {
        underWay[key] = nil
        if state.isUnreadable {
          logger.error(
            "the state of a schedule cannot be read, so it does not fire: a newer request with its identifier writes it again",
            ["key": schedules.name(of: key), "identifier": "\(key.identifier)"])
        }
        return schedules.removeDueTime(of: key, UInt32(place.partition))
      }
      for time in pending.dueTimes where time.due <= now && !time.isOver && !isHeld {
        last &+= 1
        guard writer.fire(time, of: key, record, pending, now: now, .firing(last)) else { return again(key, place) }
        reports[last] = (key, place)
        underWay[key]?.firings += 1
        metrics.firings.increment()
      }
      // It has changed since it was found to be due, or its due time in Redis is not its own.
      if underWay[key]?.firings == 0 {
        underWay[key] = nil
        schedules.write(record, of: key, replacing: state, now: now) { _ in }
      }
    }
  }

  // MARK: What is damaged

  /// Redis has something else in the place of what is due.
  func found(_ subject: DamagedSchedules.Subject, at place: DueTable.Place, _ error: StoreError) {
    if damaged.found(subject, at: place, error.message) {
      logger.warning(
        "schedules do not fire or are not forgotten, since Redis has something else in their place",
        ["partition": place.partition, "reason": error.message])
    }
    tellDamage()
  }

  private func mended(_ subject: DamagedSchedules.Subject, at place: DueTable.Place) {
    guard damaged.mended(subject, at: place) else { return }
    logger.info("schedules fire again", ["partition": place.partition])
    tellDamage()
  }

  private func tellDamage() {
    let reason = damaged.reason
    guard reason != toldDamage else { return }
    toldDamage = reason
    onDamage(reason)
  }

  private func remove(_ unreadable: [[UInt8]], amongFollowUps: Bool = false, at place: DueTable.Place) {
    guard !unreadable.isEmpty else { return }
    logger.warning(
      "names that are none of schedules are removed from the due times",
      ["key": schedules.nameOfDueTimes(place.bucket, UInt32(place.partition)), "names": unreadable.count])
    schedules.remove(
      unreadable: unreadable, amongFollowUps: amongFollowUps, in: place.bucket, of: UInt32(place.partition)
    ) { _ in }
  }

  /// Has the due times of a place written again from the schedules. Those that are there fire meanwhile.
  private func restore(_ place: DueTable.Place) {
    guard restoring.insert(place).inserted else { return }
    let key = schedules.nameOfDueTimes(place.bucket, UInt32(place.partition))
    found(.dueTimes, at: place, StoreError(.faulty, "\(key) is restored from the schedules, since it held something else"))
    schedules.restoreDueTimes(in: place.bucket, of: UInt32(place.partition), now: loop.wallMilliseconds()) { [self] error in
      restoring.remove(place)
      if let error {
        onError(error)
        let reason = "\(key) held something else, and cannot be restored from the schedules: \(error)"
        logger.warning("due times cannot be restored", ["partition": place.partition, "reason": reason])
        return found(.dueTimes, at: place, StoreError(error.code, reason))
      }
      looksAgain(at: place)
    }
  }

  /// Kafka has a firing, or has not.
  func reported(_ number: UInt32, failed: Bool) {
    if let (key, place) = reports.removeValue(forKey: number), failed { again(key, place) }
  }

  private func again(_ key: ScheduleKey, _ place: DueTable.Place) {
    underWay[key] = nil
    table.written(loop.wallMilliseconds() + Int64(Self.againMilliseconds), at: place)
    look()
  }

  /// How many schedules are asked for at once.
  private static let page = 256
  /// When something is tried again.
  private static let againMilliseconds = 200
  /// A firing that was not judged for so long is produced again.
  private static let lostMilliseconds = 30_000
  /// When a place is looked at again whose due times cannot be read.
  private static let damagedMilliseconds = 5_000
  /// The clock may be set meanwhile.
  private static let longestWait: Int64 = 10_000
}

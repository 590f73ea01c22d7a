import Calendars
import EventLoop
import Notifications
import Store
import Worker

/// Produces the firings of due schedules, and begins the follow-ups of ended schedules.
///
/// It does so in the lane's partitions of `requests`.
///
/// A firing only asks. The rules accept it only if it fits the state of the schedule, so an extra firing is harmless. A lost firing is
/// produced again.
final class Firings {
  private let loop: EventLoop
  private let schedules: Schedules
  private let writer: ScheduleWriter
  private let followUps: ScheduleFollowUps
  private let zoneData: ZoneDataUpdate
  private let metrics: TransformMetrics
  private let logger: Logger
  private var table: DueTable
  /// What keeps schedules from firing.
  let condition: ScheduleCondition
  private let repair: DueTimesRepair
  private let timer: Timer
  /// Whether firings are held back: Redis may lack schedules, replacements or cancels.
  private(set) var isHeld = true
  /// Whether Redis failed to answer, and the lane pauses its questions for a moment.
  private var isResting = false
  /// Schedules whose firings are not judged yet.
  private var underWay: [ScheduleKey: UnderWay] = [:]
  private var ignored = IgnoredFirings()
  /// The firings that Kafka has not reported yet.
  private var reports: [UInt32: (key: ScheduleKey, place: DueTable.Place)] = [:]
  private var last: UInt32 = 0
  private var isLooking = false
  /// The size of the next answer, of places whose first page had only schedules that cannot fire now.
  private var pages: [DueTable.Place: Int] = [:]

  /// The firings of one schedule that are not judged yet.
  private struct UnderWay {
    let partition: Int32
    /// When the schedule was found to be due, in milliseconds of the loop's clock.
    let since: UInt64
    /// The number of firings that were written and not judged.
    var firings = 0
    /// The number of those that Kafka has not reported. The others are in the log, and the lane will read them.
    var unreported = 0
  }

  /// Called with each error of Redis, such as a lost bucket or a refused write.
  var onError: (StoreError) -> Void = { _ in } { didSet { (zoneData.onError, repair.onError) = (onError, onError) } }
  /// Whether a request is being applied to a schedule.
  var isChanging: (ScheduleKey) -> Bool = { _ in false }

  /// - Parameter buckets: the number of buckets in the cluster.
  init(
    on loop: EventLoop, _ schedules: Schedules, _ writer: ScheduleWriter, _ followUps: ScheduleFollowUps, _ zoneData: ZoneDataUpdate,
    _ condition: ScheduleCondition, buckets: Int, _ metrics: TransformMetrics, _ logger: Logger
  ) {
    (self.loop, self.schedules, self.writer, self.followUps, self.zoneData) = (loop, schedules, writer, followUps, zoneData)
    (self.condition, self.metrics, self.logger) = (condition, metrics, logger)
    table = DueTable(buckets: buckets)
    timer = Timer(on: loop)
    repair = DueTimesRepair(on: loop, schedules, condition, logger)
    repair.onRestored = { [unowned self] in looksAgain(at: $0) }
    zoneData.number = { [unowned self] in
      last &+= 1
      return last
    }
    timer.handler = { [unowned self] in
      isResting = false
      if isFull { forgetLost() }
      look()
    }
  }

  func close() { timer.close() }

  // MARK: The partitions

  /// Sets the partitions of `requests` that the lane owns.
  func owns(_ partitions: Set<Int32>) {
    table.keep(partitions)
    underWay = underWay.filter { partitions.contains($0.value.partition) }
    ignored.keep(partitions)
    condition.keep(partitions)
    zoneData.keep(partitions)
    pages = pages.filter { partitions.contains($0.key.partition) }
    look()
  }

  /// Stops all firings, because Redis may have lost something.
  func hold() {
    isHeld = true
    table.forgetAll()
    zoneData.keep([])
    (underWay, ignored) = ([:], IgnoredFirings())
  }

  /// Starts firing: Redis has all schedules, replacements and cancels.
  func goOn() {
    isHeld = false
    look()
  }

  // MARK: Due schedules

  /// Notes a schedule's due time after a request or a firing was applied.
  func applied(_ applied: ScheduleApplier.Applied, to key: ScheduleKey, isFiring: Bool) {
    var isOwn = false
    if isFiring, let firings = underWay[key]?.firings, firings > 0 {
      isOwn = true
      underWay[key]?.firings = firings - 1
      if firings <= 1 { underWay[key] = nil }
    }
    guard let record = applied.standing else { return ignored.took(key) }
    let place = place(of: key, record)
    if let followUp = applied.followUp { table.written(followUp, at: place) }
    let due = record.pending?.earliest?.due
    if let due {
      var isIgnored = false
      if case .ignored = applied.verdict { isIgnored = true }
      let next = ignored.judged(isIgnored: isIgnored, isOwn: isOwn, key, due: due, at: place, now: loop.wallMilliseconds())
      if next.isSlower {
        logger.warning(
          "the firings of a schedule have no effect, so they are repeated at a slower pace",
          ["key": schedules.name(of: key), "identifier": "\(key.identifier)", "partition": place.partition])
      }
      table.written(max(due, next.until), at: place)
    } else {
      ignored.took(key)
    }
    look()
  }

  /// Looks for due schedules in a place now.
  func looksAgain(at place: DueTable.Place) {
    table.written(loop.wallMilliseconds(), at: place)
    look()
  }

  /// The place of a schedule's due times.
  func place(of key: ScheduleKey, _ record: ScheduleRecord) -> DueTable.Place {
    DueTable.Place(partition: Int32(record.newest.revision.sourcePartition), bucket: schedules.bucket(of: key))
  }

  private func look() {
    guard !isLooking else { return }
    isLooking = true
    defer { isLooking = false }
    // A question that cannot be sent fails inside this loop, and `isResting` ends the loop.
    while !isHeld, !isResting {
      if isFull { return timer.start(noLaterThan: Self.fullMilliseconds) }
      switch table.step(at: loop.wallMilliseconds()) {
      case .ask(let questions): for question in questions { ask(question) }
      case .wait(let until):
        return timer.start(after: Int(min(max(1, until - loop.wallMilliseconds()), Self.longestWait)))
      case .idle: return
      }
    }
  }

  /// Whether no more schedules are read before some firings are judged.
  private var isFull: Bool { underWay.count >= Self.maximumUnderWay }

  /// Forgets the firings that count as lost. Their schedules are found again.
  private func forgetLost() {
    underWay = underWay.filter { !isLost($0.value) }
  }

  /// Whether the firings of a schedule count as lost.
  ///
  /// A firing that Kafka has is judged when the lane reads it, which takes as long as the lane is behind.
  private func isLost(_ known: UnderWay) -> Bool {
    let patience = known.firings > 0 && known.unreported == 0 ? Self.writtenMilliseconds : Self.lostMilliseconds
    return known.since + UInt64(patience) <= loop.milliseconds()
  }

  private func ask(_ question: DueTable.Question) {
    let now = loop.wallMilliseconds()
    let place = question.place
    schedules.due(in: place.bucket, of: UInt32(place.partition), until: now, count: pages[place] ?? Self.page, zoneData: zoneData.version) {
      [self] answer in
      switch answer {
      case .failure(let error) where error.code == .faulty:
        // The error concerns only this place. The other places continue.
        onError(error)
        condition.found(.dueTimes(place), at: place, error)
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
    let place = question.place
    var hasFired = false
    repair.remove(due.unreadable, at: place)
    repair.remove(due.unreadableFollowUps, amongFollowUps: true, at: place)
    for key in due.followUps { followUps.begin(key, at: place) }
    if due.areMissing { repair.restore(place) } else { condition.mended(.dueTimes(place)) }
    if due.areOutdated { zoneData.begin(place) }
    condition.keep(Set(due.schedules + due.followUps), at: place)
    ignored.keep(Set(due.schedules), at: place)
    var nextIgnored = Int64.max
    for key in due.schedules {
      if let until = ignored.pause(of: key), until > now {
        nextIgnored = min(nextIgnored, until)
        continue
      }
      if let known = underWay[key], !isLost(known) { continue }
      hasFired = true
      underWay[key] = UnderWay(partition: place.partition, since: loop.milliseconds())
      schedules.read(key) { [self] state in fire(key, state, place) }
    }
    // The lane looks at due schedules once more later: their firings may be lost or ignored.
    var next = due.next ?? .max
    if !due.schedules.isEmpty || !due.followUps.isEmpty { next = min(next, nextIgnored, now + Int64(Self.lostMilliseconds)) }
    if due.areMissing || due.areOutdated { next = min(next, now + Int64(Self.damagedMilliseconds)) }
    if due.isFull {
      // Schedules that cannot fire now must not hide the later ones.
      if !hasFired { pages[place] = min(2 * (pages[place] ?? Self.page), Self.maximumUnderWay) }
      next = now + Int64(hasFired ? 1 : Self.againMilliseconds)
    } else if due.hasMoreFollowUps {
      next = min(next, now + Int64(Self.againMilliseconds))
    } else {
      pages[place] = nil
    }
    table.answered(next == .max ? nil : next, to: question)
    look()
  }

  private func fire(_ key: ScheduleKey, _ state: Result<Schedules.State, StoreError>, _ place: DueTable.Place) {
    let now = loop.wallMilliseconds()
    switch state {
    case .failure(let error) where error.code == .faulty:
      // The schedule stays in `underWay`. The lane reads it again when its firing counts as lost.
      onError(error)
      condition.found(.schedule(key), at: place, error)
    case .failure(let error):
      onError(error)
      again(key, place)
    case .success(let state) where state.isUnreadable || state.newerVersion != nil:
      // As above. The due time stays, so that the lane finds the schedule again.
      if let newer = schedules.newer(state, of: key) {
        onError(newer)
        underWay[key] = nil
        ignored.leaveToNewer(key, at: place, now: now)
        return condition.found(.schedule(key), at: place, newer)
      }
      let reason = "the state of the schedule '\(key.identifier)' cannot be read; a cancel, or a request with a trigger, replaces it"
      condition.found(.schedule(key), at: place, StoreError(.faulty, reason).about(schedules.name(of: key)))
    case .success(let state):
      condition.mended(.schedule(key))
      guard let record = state.record, let pending = record.pending else {
        // A request that is being applied may write a due time before this removal reaches Redis.
        guard !isChanging(key) else { return again(key, place) }
        underWay[key] = nil
        return schedules.removeDueTime(of: key, UInt32(place.partition))
      }
      for time in pending.dueTimes where time.due <= now && !time.isOver && !isHeld {
        last &+= 1
        guard writer.fire(time, of: key, record, pending, now: now, OutcomePurpose(.firing, last)) else { return again(key, place) }
        reports[last] = (key, place)
        underWay[key]?.firings += 1
        underWay[key]?.unreported += 1
        metrics.firings.increment()
      }
      // No due time of the schedule has come: it changed meanwhile, or Redis has a wrong due time. This write corrects Redis.
      if underWay[key]?.firings == 0 {
        underWay[key] = nil
        schedules.write(record, of: key, replacing: state, now: now) { _ in }
      }
    }
  }

  /// Takes Kafka's report of a firing. A firing that failed is produced again.
  func reported(_ number: UInt32, failed: Bool) {
    if zoneData.reported(number, failed: failed) { return }
    guard let (key, place) = reports.removeValue(forKey: number) else { return }
    if failed { again(key, place) } else { underWay[key]?.unreported -= 1 }
  }

  private func again(_ key: ScheduleKey, _ place: DueTable.Place) {
    underWay[key] = nil
    table.written(loop.wallMilliseconds() + Int64(Self.againMilliseconds), at: place)
    look()
  }

  /// Above this number of schedules whose firings are not judged, no place is asked. Answers that are under way may bring some more.
  private static let maximumUnderWay = 10_000
  /// How soon lost firings are looked for then.
  private static let fullMilliseconds = 1_000
  /// The maximum number of schedules in one answer, at first.
  private static let page = 256
  /// The pause before a retry.
  private static let againMilliseconds = Int(IgnoredFirings.shortest)
  /// A firing that Kafka has not reported after this time is produced again.
  private static let lostMilliseconds = 30_000
  /// A firing that Kafka has, and that is not judged after this time, is produced again.
  private static let writtenMilliseconds = 600_000
  /// The pause before the lane reads damaged due times again.
  private static let damagedMilliseconds = 5_000
  /// The longest wait of the timer, since the wall clock may be set meanwhile.
  private static let longestWait: Int64 = 10_000
}

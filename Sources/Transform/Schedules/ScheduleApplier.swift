import Calendars
import Notifications
import Store

/// Applies requests and firings to the schedules in Redis.
///
/// It reads the state of a schedule, asks the rules, and replaces the state that it read. If another worker wrote meanwhile, it decides
/// again on the newer state.
final class ScheduleApplier {
  /// The result of a request or a firing.
  struct Applied {
    var verdict: ScheduleRules.Verdict
    /// The pending request that was superseded.
    var superseded: JournalReference?
    /// The location request that the devices have to drop.
    var withdrawn: JournalReference?
    /// The state of the schedule now; nil if there is none.
    var standing: ScheduleRecord?
    /// The state after a firing that others followed in the same write; nil if none did.
    var interim: ScheduleRecord?
    /// Whether the zones of the devices were read after the write.
    var hasComparedZones = false
    /// Whether Kafka must have the state before the record is committed. It was written now, or by a worker that may have died before it
    /// wrote to Kafka.
    var isToBeWritten = false
    /// The schedule to evict, because its target has too many.
    var overflow: Overflow?
    /// When a follow-up is due, of this or another ended schedule of the target.
    var followUp: Int64?
  }

  /// The oldest schedule of a target that has too many. The next request that schedules something for the target finds it again.
  struct Overflow {
    var schedule: Schedules.Schedule
    /// Its end in Redis, until the eviction is emitted.
    var end: ScheduleRecord
  }

  /// The number of decisions for one record, after which it fails. Each further decision follows a write by another worker.
  static let maximumTries = 32

  private let schedules: Schedules
  private var rules: ScheduleRules
  /// Returns the time in milliseconds since 1970.
  private let wallClock: () -> Int64
  /// How far a firing's record may be ahead of the wall clock, in milliseconds. A producer may give its records any time.
  private let clockTolerance: Int64

  init(
    _ schedules: Schedules, _ rules: ScheduleRules, wallClock: @escaping () -> Int64,
    clockTolerance: Int64 = 0
  ) {
    (self.schedules, self.rules, self.wallClock, self.clockTolerance) = (schedules, rules, wallClock, clockTolerance)
  }

  /// Reads the time zones of a schedule's devices; none if there is no device.
  typealias ZonesReader = (@escaping (Result<[Name], StoreError>) -> Void) -> Void

  /// Applies a request.
  ///
  /// - Parameter place: the place of its record. A record that there was no room for is refused when it is read again, too.
  func apply(
    _ request: ScheduleRules.Request, at place: Revision? = nil, to key: ScheduleKey,
    _ then: @escaping (Result<Applied, StoreError>) -> Void
  ) {
    begin(key, at: place, zones: nil, then) { [unowned self] state, _ in rules.decide(request, state.record, floor: state.floor) }
  }

  /// Applies a request whose due times depend on the zones of its devices.
  func apply(
    _ reference: JournalReference, scheduling content: ScheduleRecord.Pending, at place: Revision, to key: ScheduleKey,
    zones: @escaping ZonesReader, _ then: @escaping (Result<Applied, StoreError>) -> Void
  ) {
    begin(key, at: place, zones: zones, then) { [unowned self] state, zones in
      rules.decide(.init(reference, .timed(content: content, zones: zones ?? [])), state.record, floor: state.floor)
    }
  }

  /// Applies a firing without a look at the zones of the devices.
  func apply(_ firing: ScheduleRules.Firing, to key: ScheduleKey, _ then: @escaping (Result<Applied, StoreError>) -> Void) {
    apply([firing], to: key, zones: nil) { then($0.map { $0[0] }) }
  }

  /// Applies firings of one schedule in their order, with one write.
  ///
  /// - Parameters:
  ///   - zones: reads the zones of the devices; nil if the due times do not depend on them.
  ///   - then: gets the result of each. Only one of them writes the state to Kafka: the first that changes it. So the ones after it may not be
  ///     committed before it.
  func apply(
    _ firings: [ScheduleRules.Firing], to key: ScheduleKey, zones: ZonesReader?,
    _ then: @escaping (Result<[Applied], StoreError>) -> Void
  ) {
    let latest = wallClock() + clockTolerance
    let firings = firings.map { firing in
      var firing = firing
      firing.at = min(firing.at, latest)
      return firing
    }
    var (decisions, former): ([ScheduleRules.Decision], ScheduleRecord?) = ([], nil)
    func each(_ all: Applied) -> [Applied] {
      // There was no room for its due time, and nothing was written.
      if case .rejected = all.verdict { return decisions.map { _ in all } }
      let writer = decisions.firstIndex { $0.record != nil || $0.isAgain } ?? 0
      return decisions.indices.map { number in
        var applied = all
        applied.verdict = decisions[number].verdict
        former = decisions[number].record ?? former
        if number < decisions.count - 1 { applied.interim = former }
        if number != writer { (applied.isToBeWritten, applied.followUp) = (false, nil) }
        return applied
      }
    }
    begin(key, zones: zones, { then($0.map(each)) }) { [unowned self] state, zones in
      decisions = rules.decide(firings, state.record, zones: zones, floor: state.floor)
      former = state.record
      var all = ScheduleRules.Decision(.ignored)
      (all.record, all.isAgain) = (decisions.last { $0.record != nil }?.record, decisions.contains { $0.isAgain })
      return all
    }
  }

  /// Adapts a pending schedule to the zones of its devices.
  func adapt(_ key: ScheduleKey, zones: @escaping ZonesReader, _ then: @escaping (Result<Applied, StoreError>) -> Void) {
    begin(key, zones: zones, then) { _, _ in .init(.ignored) }
  }

  /// One record that is being read, decided and written.
  private struct Passage {
    let key: ScheduleKey
    let place: Revision?
    let zones: ZonesReader?
    let decide: (Schedules.State, [Name]?) -> ScheduleRules.Decision
    let then: (Result<Applied, StoreError>) -> Void
    var tries = 0
  }

  private func begin(
    _ key: ScheduleKey, at place: Revision? = nil, zones: ZonesReader?, _ then: @escaping (Result<Applied, StoreError>) -> Void,
    _ decide: @escaping (Schedules.State, [Name]?) -> ScheduleRules.Decision
  ) {
    let passage = Passage(key: key, place: place, zones: zones, decide: decide, then: then)
    schedules.read(key) { [self] in
      if let state = $0.value(orFail: then) { read(passage, on: state) }
    }
  }

  private func read(_ passage: Passage, on state: Schedules.State) {
    if let newer = schedules.newer(state, of: passage.key) { return passage.then(.failure(newer)) }
    if state.record?.phase == .ended(.evicting) {
      return passage.then(.failure(StoreError(.overloaded, "the eviction of a schedule is being told")))
    }
    guard let zones = passage.zones else { return decided(passage, nil, on: state) }
    zones { [self] in
      if let zones = $0.value(orFail: passage.then) { decided(passage, zones, on: state) }
    }
  }

  private func decided(_ passage: Passage, _ zones: [Name]?, on state: Schedules.State) {
    let decision = passage.decide(state, zones)
    let standing = decision.record ?? state.record
    var applied = Applied(
      verdict: decision.verdict, superseded: decision.superseded, withdrawn: decision.withdrawn, standing: standing,
      isToBeWritten: (decision.record != nil || decision.isAgain) && standing?.isPublished != false)
    // An unchanged schedule is written once more: the answer tells whether its target has too many.
    guard let record = decision.record ?? (decision.verdict.isScheduled ? state.record : nil) else {
      return ended(passage, applied)
    }
    let now = wallClock()
    schedules.write(record, of: passage.key, replacing: state, now: now, place: passage.place) { [self] answer in
      switch answer {
      case .success(.written(let oldest, let isDue)):
        applied.overflow = oldest.flatMap(overflow)
        applied.followUp = followUp(of: record, isDue: isDue, at: now)
        ended(passage, applied)
      case .success(.changed(let state)): again(passage) { self.read($0, on: state) }
      case .success(.full(let isKnown)):
        let whose = isKnown ? "of the application" : "for targets that no device is registered for"
        let rejection = Rejection(
          .tooManyRequests, field: "trigger", rule: "The cluster has room for a number of pending requests \(whose), which is reached.")
        passage.then(.success(Applied(verdict: .rejected(rejection), standing: state.record)))
      case .failure(let error): passage.then(.failure(error))
      }
    }
  }

  /// Returns when the target's next follow-up is due after a write.
  private func followUp(of record: ScheduleRecord, isDue: Bool, at now: Int64) -> Int64? {
    if isDue { return now }
    return record.pending == nil ? now + schedules.limits.lifetimeMilliseconds : nil
  }

  // MARK: Zones

  /// Compares the zones of the devices once more, and adapts the schedule if they differ.
  ///
  /// A registration changes the zone first, and then looks for pending schedules. It finds a schedule that was written before. A schedule
  /// that is written later finds the new zone here.
  private func ended(_ passage: Passage, _ applied: Applied) {
    guard let zones = passage.zones, let standing = applied.standing, standing.pending != nil else {
      return passage.then(.success(applied))
    }
    schedules.read(passage.key) { [self] answer in
      guard let state = answer.value(orFail: passage.then) else { return }
      // The worker of a newer request has compared the zones itself. A schedule below the floor ends soon.
      guard let record = state.record, record.newest == standing.newest,
        !(state.floor.map { record.newest.revision.isOlder(than: $0.revision) } ?? false)
      else { return passage.then(.success(applied)) }
      zones { [self] answer in
        guard let zones = answer.value(orFail: passage.then) else { return }
        var applied = applied
        applied.hasComparedZones = true
        guard let adapted = rules.adapt(record, toZones: zones, at: wallClock()) else { return passage.then(.success(applied)) }
        adapt(passage, applied, adapted, replacing: state)
      }
    }
  }

  private func adapt(_ passage: Passage, _ applied: Applied, _ adapted: ScheduleRecord, replacing state: Schedules.State) {
    let now = wallClock()
    schedules.write(adapted, of: passage.key, replacing: state, now: now) { [self] answer in
      guard let written = answer.value(orFail: passage.then) else { return }
      var applied = applied
      if case .written(_, let isDue) = written {
        (applied.standing, applied.isToBeWritten) = (adapted, true)
        applied.followUp = followUp(of: adapted, isDue: isDue, at: now) ?? applied.followUp
      }
      again(passage) { self.ended($0, applied) }
    }
  }

  private func overflow(_ oldest: Schedules.Schedule) -> Overflow? {
    oldest.state.record.flatMap { rules.end($0, .evicting) }.map { Overflow(schedule: oldest, end: $0) }
  }

  /// The result of an eviction.
  enum Evicted {
    /// The schedule has ended. `next` is the next one to evict, if the target still has too many.
    case ended(next: Overflow?)
    /// The schedule changed meanwhile and stays. If the target still has too many, its next request finds the oldest.
    case stays
  }

  /// Ends a schedule in Redis if its state is still the one that was read.
  func evict(_ overflow: Overflow, _ then: @escaping (Result<Evicted, StoreError>) -> Void) {
    schedules.write(overflow.end, of: overflow.schedule.key, replacing: overflow.schedule.state, now: wallClock()) { [self] answer in
      then(
        answer.map { written in
          switch written {
          case .written(let oldest, _): .ended(next: oldest.flatMap(self.overflow))
          case .changed, .full: .stays
          }
        })
    }
  }

  // MARK: All of a target

  /// Cancels all pending schedules of a target for an application.
  ///
  /// It also looks at ended schedules. When the request's record is read again, they tell which of them it canceled.
  ///
  /// - Parameter then: gets the schedules that it canceled; none for a duplicate of an earlier cancel.
  func cancelAll(
    _ request: JournalReference, in scope: ScheduleKey,
    _ then: @escaping (Result<[(key: ScheduleKey, applied: Applied)], StoreError>) -> Void
  ) {
    schedules.cancelAll(in: scope, request) { [self] in
      if let keys = $0.value(orFail: then) { cancel(keys[...], request, [], then) }
    }
  }

  private func cancel(
    _ keys: ArraySlice<ScheduleKey>, _ request: JournalReference, _ canceled: [(key: ScheduleKey, applied: Applied)],
    _ then: @escaping (Result<[(key: ScheduleKey, applied: Applied)], StoreError>) -> Void
  ) {
    guard let key = keys.first else { return then(.success(canceled)) }
    apply(.init(request, .cancelAll), to: key) { [self] result in
      guard let applied = result.value(orFail: then) else { return }
      let isEnded = if case .canceled = applied.verdict { true } else { false }
      cancel(keys.dropFirst(), request, isEnded ? canceled + [(key, applied)] : canceled, then)
    }
  }

  private func again(_ passage: Passage, _ body: (Passage) -> Void) {
    var passage = passage
    passage.tries += 1
    guard passage.tries < Self.maximumTries else {
      return passage.then(.failure(StoreError(.overloaded, "a schedule is written by others again and again")))
    }
    body(passage)
  }
}

extension ScheduleRules.Verdict {
  /// Whether the request is scheduled.
  fileprivate var isScheduled: Bool { if case .scheduled = self { true } else { false } }
}

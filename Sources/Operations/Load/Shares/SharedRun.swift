public import EventLoop
import Kafka
public import Notifications
import Worker

/// A run of several processes, as one of them takes part in it: an actor on a loop.
///
/// The first process calls `begin`, the others `join`. Then each calls `ready` when its devices are connected, `attend` while it publishes,
/// `finish` with its numbers, and `close`.
public actor SharedRun {
  /// The actor's loop.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// What a person should know at once.
  public enum Notice: Sendable {
    /// Nobody has begun the run, and this process waits for it.
    case absent
    /// A record has changed something.
    case news(LoadShares.News)
    /// This process waits for others.
    case waiting
    /// A record of this process is not in the topic.
    case unwritten(String)
  }

  private let place: LoadPlace
  private let run: String
  private let name: Name
  private let waitMilliseconds: Int
  private let onNotice: @Sendable (Notice, LoadShares) -> Void
  private var shares: LoadShares
  private var topic: LoadTopic?
  private var pulsing: Task<Void, Never>?
  /// When the last pulse of this process was read, by the steady clock.
  private var lastPulse: Int64 = 0
  private var isFollowing = false
  private var isStopped = false
  private var hasUnreadable = false
  /// Why this process has ended its share early.
  private var problem: LoadRefusal.SharedProblem?
  private var violations = 0
  /// The intervals that the topic has.
  private var sent: [LoadMeasures.Interval] = []

  /// How often this looks for changes, in milliseconds, and how often it tells that it waits.
  private static let (lookMilliseconds, noticeMilliseconds) = (50, 10_000 as Int64)
  /// How often numbers are sent, in milliseconds, and the intervals of a record.
  private static let (numbersMilliseconds, intervalsOfRecord) = (5_000 as Int64, 20)
  /// How far away the start is when it is written, and the difference of the machines' clocks that it allows, in milliseconds.
  private static let (leadMilliseconds, clockMilliseconds) = (5_000 as Int64, 10_000 as Int64)
  /// How long Kafka may take for a record of this process while nothing else goes on.
  private static let patienceMilliseconds: Int64 = 60_000
  /// The most violations that a process sends. Its numbers count all.
  private static let maximumViolations = 1_000

  /// Describes the part of this process, which does nothing until `begin` or `join`.
  ///
  /// - Parameters:
  ///   - run: the name of the run.
  ///   - name: the name of this process for a person.
  ///   - waitMilliseconds: how long it waits for the others, or for the run to begin.
  ///   - onNotice: gets notices at once, on the loop.
  public init(
    on loop: EventLoop, _ place: LoadPlace, run: String, name: Name, waitMilliseconds: Int,
    onNotice: @escaping @Sendable (Notice, LoadShares) -> Void
  ) {
    (self.loop, self.place, self.run, self.name) = (loop, place, run, name)
    (self.waitMilliseconds, self.onNotice) = (waitMilliseconds, onNotice)
    shares = LoadShares(observer: .random(in: 1...UInt64.max))
  }

  // MARK: Beginning

  /// Begins the run as its first process.
  ///
  /// - Throws: ``LoadRefusal/shared(_:_:)`` if it has begun already, or Kafka's error.
  public func begin(_ agreement: LoadAgreement) async throws {
    try await opening {
      try checkNotUnderWay()
      topic?.removeRecords(except: nil)
      try await write(.plan(agreement, by: name), of: shares.observer)
      guard shares.isFirst else { throw refusal(.isUnderWay) }
    }
  }

  /// Joins the run, and answers what was agreed and which share this process has. Waits for the run to begin.
  ///
  /// - Throws: ``LoadRefusal/shared(_:_:)`` if the run takes no more processes, or Kafka's error.
  public func join() async throws -> (agreement: LoadAgreement, share: Int) {
    try await opening {
      let begun = SteadyClock.milliseconds()
      if shares.phase == .absent { onNotice(.absent, shares) }
      while shares.phase == .absent {
        await loop.sleep(milliseconds: Self.lookMilliseconds)
        if SteadyClock.milliseconds() - begun > waitMilliseconds { throw refusal(.isAbsent(waited: waitMilliseconds)) }
      }
      if let problem = problemOfJoining { throw refusal(problem) }
      try await write(.join(by: name), of: shares.number)
    }
    guard let agreement = shares.agreement, let share = shares.own else {
      let problem = problemOfJoining ?? .isFull(shares.shares.count)
      await shut()
      throw refusal(problem)
    }
    return (agreement, share)
  }

  /// Why nobody can join the run any more; nil if it waits for processes.
  private var problemOfJoining: LoadRefusal.SharedProblem? {
    switch shares.phase {
    case .waiting, .absent: nil
    case .running: .hasStarted
    case .over: .isOver
    case .foreign(let version): .isForeign(version: version, own: LoadRecord.version)
    }
  }

  private func opening(_ body: () async throws -> Void) async throws {
    let topic = LoadTopic(on: loop, place, run: run) { self.take($0) }
    self.topic = topic
    do {
      try await topic.open()
      isFollowing = true
      try await body()
    } catch {
      await shut()
      throw error
    }
    lastPulse = SteadyClock.milliseconds()
    pulsing = Task(executorPreference: loop) { await self.pulse() }
  }

  private func take(_ reading: LoadRecord.Reading) {
    switch reading {
    case .other: break
    case .unreadable:
      guard isFollowing, !hasUnreadable else { return }
      hasUnreadable = true
      onNotice(.news(.unreadable), shares)
    case .record(let record):
      if record.process == shares.observer, record.content == .pulse { lastPulse = SteadyClock.milliseconds() }
      let news = shares.take(record)
      guard isFollowing else { return }
      for each in news {
        onNotice(.news(each), shares)
        if case .silent(let share) = each, shares.isFirst, shares.phase == .waiting, let process = shares.shares[share].process {
          topic?.put(self.record(.removed(process: process.id)))
        }
      }
    }
  }

  private func record(_ content: LoadRecord.Content) -> LoadRecord {
    LoadRecord(run: shares.number, process: shares.observer, content: content)
  }

  private func refusal(_ problem: LoadRefusal.SharedProblem) -> LoadRefusal { .shared(run, problem) }

  /// Writes a record, and returns when it was read.
  private func write(_ content: LoadRecord.Content, of number: UInt64? = nil) async throws {
    guard let topic else { throw KafkaError(.closed, "write to \(place.topics.load)") }
    let record = LoadRecord(run: number ?? shares.number, process: shares.observer, content: content)
    let offset = try await topic.write(record)
    let written = SteadyClock.milliseconds()
    while topic.position <= offset {
      await loop.sleep(milliseconds: Self.lookMilliseconds)
      guard SteadyClock.milliseconds() - written < Self.patienceMilliseconds else {
        throw KafkaError(.timedOut, "read \(place.topics.load)", message: "a record that Kafka has acknowledged was not read")
      }
    }
  }

  /// Shows the others that this process is there. One pulse is on its way at a time, so that an outage of Kafka makes nobody silent.
  private func pulse() async {
    while !Task.isCancelled, let agreement = shares.agreement, let topic {
      await loop.sleep(milliseconds: agreement.pulseMilliseconds)
      if !Task.isCancelled { _ = try? await topic.write(record(.pulse)) }
    }
  }

  /// Whether Kafka has not taken a pulse for so long that waiting for other processes makes no sense.
  private var isKafkaAway: Bool { SteadyClock.milliseconds() - lastPulse > Self.patienceMilliseconds }

  // MARK: The start

  /// Says that the devices of this process are connected, and answers when the schedule begins, in milliseconds since 1970.
  ///
  /// - Throws: ``LoadRefusal/shared(_:_:)`` if the run does not start with this process, or Kafka's error.
  public func ready() async throws -> Int64 {
    try await write(.ready)
    let begun = SteadyClock.milliseconds()
    var (told, hasWritten) = (begun, false)
    while true {
      if let problem = problemOfStart { throw refusal(problem) }
      if case .running(let start) = shares.phase { return try checked(start) }
      let now = SteadyClock.milliseconds()
      if isKafkaAway { throw KafkaError(.timedOut, "write to \(place.topics.load)") }
      if shares.isFirst {
        if shares.areAllReady, !hasWritten {
          hasWritten = true
          try await write(.start(at: WallClock.milliseconds() + Self.leadMilliseconds))
          continue
        }
        if now - begun > waitMilliseconds { throw refusal(notReady) }
      }
      if now - told >= Self.noticeMilliseconds {
        told = now
        onNotice(.waiting, shares)
      }
      await loop.sleep(milliseconds: Self.lookMilliseconds)
    }
  }

  private var problemOfStart: LoadRefusal.SharedProblem? {
    if isStopped { return .wasStopped }
    if case .over(let reason) = shares.phase { return .wasEnded(reason) }
    if let own = shares.own, shares.shares[own].state == .ready { return shares.isSilent(0) ? .firstIsSilent : nil }
    return .wasRemoved
  }

  private var notReady: LoadRefusal.SharedProblem {
    let slow = shares.shares.filter { $0.state == .taken }.compactMap(\.process?.name)
    return .notReady(slow, missing: shares.shares.count { $0.state == .free }, waited: waitMilliseconds)
  }

  private func checked(_ start: Int64) throws -> Int64 {
    if let problem = Self.problem(ofStart: start, now: WallClock.milliseconds()) { throw refusal(problem) }
    return start
  }

  /// Why a start cannot be meant as this machine's clock has it; nil if it is about as near as the first process has set it.
  static func problem(ofStart start: Int64, now: Int64) -> LoadRefusal.SharedProblem? {
    let left = start - now
    let isNear = (-clockMilliseconds...(leadMilliseconds + clockMilliseconds)).contains(left)
    return isNear ? nil : .clocksDiffer(milliseconds: left)
  }

  // MARK: The run

  /// Ends this share early. The first process ends all shares.
  public func stop() {
    guard !isStopped else { return }
    isStopped = true
    if shares.isFirst, case .running = shares.phase { topic?.put(record(.stop)) }
  }

  /// Sends the numbers of this process at intervals, and ends its run if the first process wants it or is silent. Cancel it at the end.
  public func attend(_ run: LoadRun) async {
    guard !shares.isFirst else { return }
    var reported = SteadyClock.milliseconds()
    while !Task.isCancelled, topic != nil {
      await loop.sleep(milliseconds: Self.lookMilliseconds)
      problem = problemOfRun
      if problem != nil || shares.isStopping {
        await run.stop()
        return
      }
      guard case .running = shares.phase, SteadyClock.milliseconds() - reported >= Self.numbersMilliseconds, let result = await run.result,
        !Task.isCancelled
      else { continue }
      reported = SteadyClock.milliseconds()
      do { try await report(result, isFinal: false) } catch { onNotice(.unwritten("\(error)"), shares) }
    }
  }

  private var problemOfRun: LoadRefusal.SharedProblem? {
    switch shares.phase {
    case .over(let reason): .wasEnded(reason)
    case .running: shares.isSilent(0) ? .firstIsSilent : nil
    case .absent, .foreign, .waiting: nil
    }
  }

  /// Tells the first process of a violation at once. Call it on the loop.
  public nonisolated func tell(_ finding: LoadFinding) { assumeIsolated { $0.put(finding) } }

  private func put(_ finding: LoadFinding) {
    guard !shares.isFirst, violations < Self.maximumViolations else { return }
    violations += 1
    topic?.put(record(.violation(finding, number: violations)))
  }

  /// Sends the numbers of this share: first the intervals that have changed, then all else.
  private func report(_ result: LoadResult, isFinal: Bool) async throws {
    let intervals = result.measures.intervals
    for first in stride(from: 0, to: intervals.count, by: Self.intervalsOfRecord) {
      let part = Array(intervals[first..<min(first + Self.intervalsOfRecord, intervals.count)])
      let former = sent.count == intervals.count ? Array(sent[first..<(first + part.count)]) : nil
      if part != former { try await write(.intervals(first: first, part)) }
    }
    sent = intervals
    try await write(.numbers(LoadNumbers(result), isFinal: isFinal))
  }

  /// The numbers of all shares so far, given those of the own one.
  public func sum(_ own: LoadResult, of plan: LoadPlan) -> LoadResult { shares.sum(own, of: plan, isOver: false) }

  // MARK: The end

  /// Ends the share of this process. The first process waits for the others, and answers with the sum.
  ///
  /// - Throws: ``LoadRefusal/shared(_:_:)`` if this process has ended its share because of the first one, or Kafka's error if the first one
  ///   does not get its numbers.
  public func finish(_ own: LoadResult, of plan: LoadPlan) async throws -> LoadResult {
    guard shares.isFirst else {
      if let problem { throw refusal(problem) }
      try await report(own, isFinal: true)
      return own
    }
    var told = SteadyClock.milliseconds()
    while !shares.unfinished.isEmpty, !isKafkaAway {
      await loop.sleep(milliseconds: Self.lookMilliseconds)
      guard SteadyClock.milliseconds() - told >= Self.noticeMilliseconds else { continue }
      told = SteadyClock.milliseconds()
      onNotice(.waiting, shares)
    }
    return shares.sum(own, of: plan, isOver: true)
  }

  /// Leaves the run. The first process ends it for all.
  ///
  /// - Parameter reason: why, for the others.
  public func close(_ reason: String) async {
    if shares.isFirst {
      topic?.put(record(.end(reason: reason)))
      topic?.removeRecords(except: shares.number)
    } else if let own = shares.own, shares.shares[own].state != .finished {
      topic?.put(record(.left(reason: reason)))
    }
    await shut()
  }

  private func shut() async {
    isFollowing = false
    pulsing?.cancel()
    let topic = topic
    self.topic = nil
    await topic?.close()
    await pulsing?.value
    pulsing = nil
  }

  // MARK: Other commands

  /// Checks that no run of several processes with this name is under way.
  ///
  /// - Throws: ``LoadRefusal/shared(_:_:)`` if one is, or Kafka's error.
  public static func checkName(_ run: String, on loop: EventLoop, _ place: LoadPlace) async throws {
    try await SharedRun(on: loop, place, run: run, name: "", waitMilliseconds: 0) { _, _ in }.checkName()
  }

  private func checkName() async throws {
    try await looking { _ in try checkNotUnderWay() }
  }

  /// Removes all records of a run, and ends it if it still goes on. Answers whether there were any.
  public static func clean(_ run: String, on loop: EventLoop, _ place: LoadPlace) async throws -> Bool {
    try await SharedRun(on: loop, place, run: run, name: "", waitMilliseconds: 0) { _, _ in }.clean()
  }

  private func clean() async throws -> Bool {
    try await looking { topic in
      topic.removeRecords(except: nil)
      return !topic.keys.isEmpty
    }
  }

  private func looking<R>(_ body: (LoadTopic) throws -> R) async throws -> R {
    let topic = LoadTopic(on: loop, place, run: run) { self.take($0) }
    do {
      try await topic.open()
      let result = try body(topic)
      await topic.close()
      return result
    } catch {
      await topic.close()
      throw error
    }
  }

  private func checkNotUnderWay() throws {
    switch shares.phase {
    case .waiting, .running, .foreign: throw refusal(.isUnderWay)
    case .absent, .over: break
    }
  }
}

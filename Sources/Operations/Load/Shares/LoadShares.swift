public import Notifications

/// The shares of a run by the records of the topic `load`: which process has which, when all begin, and which is silent.
///
/// A value: a record in, news out. Processes that have read the same records agree, since only the order of the log decides. That goes for
/// silence as well. A process is silent if so many pulses of an observer lie in the log since its last record. So neither a machine that
/// stands still nor a Kafka that is away makes others silent, and no clock is compared.
public struct LoadShares: Sendable {
  /// A process of the run.
  public struct Process: Sendable, Hashable {
    /// The number that it has drawn.
    let id: UInt64
    /// The name for a person: its machine and the number there.
    public let name: Name
  }

  /// How far the run is.
  public enum Phase: Sendable, Hashable {
    /// No process has begun it.
    case absent
    /// Its plan has another version.
    case foreign(version: Int64)
    /// It waits for processes.
    case waiting
    /// All shares begin at this time, in milliseconds since 1970.
    case running(start: Int64)
    /// It is over, for this reason.
    case over(reason: String)
  }

  /// How far a share is.
  public enum State: Sendable, Hashable {
    /// No process has it.
    case free
    /// Its process connects its devices.
    case taken
    /// Its devices are connected, and it publishes from the start on.
    case ready
    /// All its numbers are there.
    case finished
    /// Its process has ended before that, or did not take part, for this reason.
    case left(reason: String)
  }

  /// One share.
  public struct Share: Sendable {
    /// Its process, also one that has left.
    public fileprivate(set) var process: Process?
    /// How far it is.
    public fileprivate(set) var state = State.free
    /// The newest numbers.
    fileprivate(set) var numbers: LoadNumbers?
    /// The newest of each interval.
    fileprivate(set) var intervals: [Int: LoadMeasures.Interval] = [:]
    /// The observer's pulses until its last record.
    fileprivate var heard = 0
  }

  /// What a record has changed, for a person or for the process itself.
  public enum News: Sendable, Hashable {
    /// A process has taken a share.
    case joined(share: Int)
    /// The devices of a share are connected.
    case ready(share: Int)
    /// A process has given its share back before the start, or has ended before its share was done.
    case left(share: Int, Process, reason: String)
    /// A share has broken a promise of the cluster.
    case violation(share: Int, LoadFinding)
    /// A process is silent.
    case silent(share: Int)
    /// A silent process is heard again.
    case heard(share: Int)
    /// All numbers of a share are there.
    case finished(share: Int)
    /// A record of this run cannot be read.
    case unreadable
  }

  /// The number of the observing process.
  let observer: UInt64
  /// How far the run is.
  public private(set) var phase = Phase.absent
  /// The agreement of the run; nil before its plan.
  public private(set) var agreement: LoadAgreement?
  /// The shares in their order. The first process has the first one.
  public private(set) var shares: [Share] = []
  /// Whether the first process ends all shares early.
  public private(set) var isStopping = false
  private var run: UInt64 = 0
  /// The observer's pulses in the log.
  private var pulses = 0
  /// The processes that have asked for a share before the start, and have none.
  private var gone: Set<UInt64> = []
  /// The shares whose processes were heard since a share was taken, ready or given back for the last time. A process that was ready may have
  /// ended while it waited for others.
  private var confirmed: Set<Int> = []

  /// Makes the shares of a run that has not begun.
  init(observer: UInt64) { self.observer = observer }

  // MARK: Questions

  /// The number of the run's present plan.
  var number: UInt64 { run }

  /// The share of a process; nil if it has none.
  func share(of process: UInt64) -> Int? {
    shares.firstIndex { $0.process?.id == process && $0.state != .free }
  }

  /// The share of the observer; nil if it has none.
  public var own: Int? { share(of: observer) }

  /// Whether the observer has begun the run.
  public var isFirst: Bool { own == 0 }

  /// Whether each share has a process whose devices are connected, and which was heard after that went for all.
  public var areAllReady: Bool { !shares.isEmpty && shares.indices.allSatisfy { shares[$0].state == .ready && confirmed.contains($0) } }

  /// Whether the process of a share is silent.
  public func isSilent(_ share: Int) -> Bool {
    guard let agreement, isOpen(share), share != own else { return false }
    return pulses - shares[share].heard >= agreement.pulseLimit
  }

  /// Whether more records of a share may come.
  private func isOpen(_ share: Int) -> Bool {
    switch shares[share].state {
    case .taken, .ready: true
    case .free, .finished, .left: false
    }
  }

  /// The other shares that may still send numbers.
  public var unfinished: [Int] { shares.indices.filter { $0 != own && isOpen($0) && !isSilent($0) } }

  // MARK: Records

  /// Takes a record, in the order of the log.
  mutating func take(_ record: LoadRecord) -> [News] {
    switch record.content {
    case .plan(let agreement, let name):
      // The first process' own number is that of the run.
      if record.run == record.process { begin(agreement, Process(id: record.process, name: name)) }
      return []
    case .foreignPlan(let version):
      guard mayBegin else { return [] }
      self = LoadShares(observer: observer, phase: .foreign(version: version))
      run = record.run
      return []
    case .cleaned:
      guard record.run == run else { return [] }
      if isUnderWay {
        phase = .over(reason: "it was removed by 'carillon load clean'")
      } else if mayBegin {
        self = LoadShares(observer: observer, phase: .absent)
      }
      return []
    default: return record.run == run && isUnderWay ? takeOfRun(record) : []
    }
  }

  private init(observer: UInt64, phase: Phase) { (self.observer, self.phase) = (observer, phase) }

  private var isUnderWay: Bool {
    switch phase {
    case .waiting, .running: true
    case .absent, .foreign, .over: false
    }
  }

  /// Whether another run may begin. A process that has a share stays with its run.
  private var mayBegin: Bool { !isUnderWay && own == nil }

  private mutating func begin(_ agreement: LoadAgreement, _ first: Process) {
    // The first of two plans stands. The writer of the other one reads that.
    guard mayBegin else { return }
    self = LoadShares(observer: observer, phase: .waiting)
    (run, self.agreement) = (first.id, agreement)
    shares = Array(repeating: Share(), count: agreement.processes)
    (shares[0].process, shares[0].state) = (first, .taken)
  }

  private mutating func takeOfRun(_ record: LoadRecord) -> [News] {
    if case .join(let name) = record.content {
      confirmed = []
      return join(Process(id: record.process, name: name))
    }
    guard let share = share(of: record.process) else { return [] }
    var news: [News] = isSilent(share) ? [.heard(share: share)] : []
    shares[share].heard = pulses
    news += share == 0 ? takeOfFirst(record) : []
    news += takeOfShare(record, share)
    switch record.content {
    case .ready, .left, .removed: confirmed = []
    default: confirmed.insert(share)
    }
    return news
  }

  private mutating func join(_ process: Process) -> [News] {
    // A record may be in the log twice. A process that was refused, or whose share was taken back, has ended.
    guard phase == .waiting, share(of: process.id) == nil, !gone.contains(process.id) else { return [] }
    guard let free = shares.firstIndex(where: { $0.state == .free }) else {
      gone.insert(process.id)
      return []
    }
    (shares[free].process, shares[free].state, shares[free].heard) = (process, .taken, pulses)
    return [.joined(share: free)]
  }

  /// The records that only the first process may write.
  private mutating func takeOfFirst(_ record: LoadRecord) -> [News] {
    switch record.content {
    case .removed(let process):
      guard phase == .waiting, let share = share(of: process), share != 0 else { return [] }
      return leave(share, reason: "it was silent")
    case .start(let time):
      guard phase == .waiting else { return [] }
      phase = .running(start: time)
      for share in shares.indices where shares[share].state != .ready {
        shares[share].state = .left(reason: "it was not ready at the start")
      }
    case .stop: isStopping = true
    case .end(let reason): phase = .over(reason: reason)
    case .plan, .join, .ready, .left, .pulse, .numbers, .intervals, .violation, .cleaned, .foreignPlan: break
    }
    return []
  }

  private mutating func takeOfShare(_ record: LoadRecord, _ share: Int) -> [News] {
    switch record.content {
    case .ready:
      guard shares[share].state == .taken else { return [] }
      shares[share].state = .ready
      return [.ready(share: share)]
    case .left(let reason):
      guard isOpen(share) else { return [] }
      if share == 0 { phase = .over(reason: reason) }
      return leave(share, reason: reason)
    case .pulse: return record.process == observer ? beat() : []
    case .numbers(let numbers, let isFinal):
      // The last numbers stand, whatever comes after them.
      guard isOpen(share) else { return [] }
      shares[share].numbers = numbers
      guard isFinal else { return [] }
      shares[share].state = .finished
      return [.finished(share: share)]
    case .intervals(let first, let intervals):
      guard isOpen(share) else { return [] }
      for (index, interval) in intervals.enumerated() { shares[share].intervals[first + index] = interval }
    case .violation(let finding, _): return [.violation(share: share, finding)]
    case .plan, .join, .removed, .start, .stop, .end, .cleaned, .foreignPlan: break
    }
    return []
  }

  private mutating func leave(_ share: Int, reason: String) -> [News] {
    guard let process = shares[share].process else { return [] }
    if phase == .waiting, share != 0 {
      shares[share] = Share()
      gone.insert(process.id)
    } else {
      shares[share].state = .left(reason: reason)
    }
    return [.left(share: share, process, reason: reason)]
  }

  /// A pulse of the observer is in the log.
  private mutating func beat() -> [News] {
    let before = shares.indices.filter { isSilent($0) }
    pulses += 1
    return shares.indices.filter { isSilent($0) && !before.contains($0) }.map { .silent(share: $0) }
  }
}

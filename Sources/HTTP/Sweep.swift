import EventLoop

/// An object with one deadline at a time.
protocol SweepMember: AnyObject {
  /// Its index in the sweep, which only the sweep changes.
  var sweepSlot: Int32 { get set }
  /// The deadline has passed, and is removed. Called on the loop; may remove any member.
  func deadlinePassed(now: UInt64)
  /// The server is closing: finish running work, and begin nothing.
  func drain()
  /// Closes at once.
  func abort()
}

/// The deadlines of all connections of a server, checked together with one timer.
///
/// The times are in an array of their own. So a check of ten thousand connections touches 80 KB and none of the connections. A deadline is
/// noticed up to one interval late.
final class Sweep {
  static let never = UInt64.max
  private static let mostExceptions = 16

  let loop: EventLoop
  private let interval: Int
  private var deadlines: [UInt64] = []
  private var members: [any SweepMember] = []
  /// Set only while there are members, so an empty sweep needs no end.
  private var timer: Timer?

  /// - Parameter interval: the milliseconds between two checks.
  init(on loop: EventLoop, interval: Int) {
    self.loop = loop
    self.interval = max(1, interval)
  }

  func add(_ member: any SweepMember, deadline: UInt64) {
    member.sweepSlot = Int32(members.count)
    members.append(member)
    deadlines.append(deadline)
    if timer == nil { timer = Timer(on: loop, after: interval, repeating: interval) { [weak self] in self?.look() } }
  }

  func set(_ deadline: UInt64, for member: any SweepMember) {
    let slot = Int(member.sweepSlot)
    if slot >= 0 { deadlines[slot] = deadline }
  }

  func remove(_ member: any SweepMember) {
    let slot = Int(member.sweepSlot)
    guard slot >= 0 else { return }
    member.sweepSlot = -1
    let last = members.removeLast()
    let lastDeadline = deadlines.removeLast()
    if slot < members.count {
      members[slot] = last
      deadlines[slot] = lastDeadline
      last.sweepSlot = Int32(slot)
    }
    if members.isEmpty {
      members = []
      deadlines = []
      timer?.close()
      timer = nil
    }
  }

  /// The member with the earliest time by `timeOf`, which is nil for those that are not wanted.
  ///
  /// - Parameter isExcepted: asked of few of them, so it may cost more. After so many exceptions it looks no further.
  func earliest(by timeOf: (any SweepMember) -> UInt64?, unless isExcepted: (any SweepMember) -> Bool) -> (any SweepMember)? {
    var found: (member: any SweepMember, time: UInt64)?
    var exceptions = 0
    for member in members where exceptions < Self.mostExceptions {
      guard let time = timeOf(member), found.map({ time < $0.time }) ?? true else { continue }
      if isExcepted(member) { exceptions += 1 } else { found = (member, time) }
    }
    return found?.member
  }

  /// Every member. The array is a copy, so members may leave meanwhile.
  var all: [any SweepMember] { members }

  private func look() {
    let now = loop.milliseconds()
    // Backwards: a member that leaves is replaced by the last one, which was checked already.
    var slot = deadlines.count - 1
    while slot >= 0 {
      if slot < deadlines.count, deadlines[slot] <= now {
        deadlines[slot] = Self.never
        members[slot].deadlinePassed(now: now)
      }
      slot -= 1
    }
  }
}

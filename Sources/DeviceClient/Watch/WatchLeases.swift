internal import Notifications

/// The notifications that a locked phone has offered or lent to its watch. A value without a clock.
///
/// A message may be lost, repeated, late, or overtaken by another one. So the watch shows a notification only with a grant of the phone, and
/// the phone then shows it only when the watch says that it never will. Each notification is granted at most once.
///
/// A lease ends at the watch first. The watch counts from the moment before its claim leaves, and the phone from the moment at which it has
/// the claim. Neither needs the other's clock, and no delay of a message can turn the order around. The phone asks after the end, when the
/// watch cannot begin to show the notification any more. Clocks that run at different speeds only make the answer come later.
struct WatchLeases<Event> {
  /// What the phone has to do.
  enum Action {
    /// Sends a message to the watch.
    case send(WatchMessage)
    /// Shows the notification on the phone.
    case show(Event)
    /// Tells that the watch has shown the notification.
    case forwarded(Event)
  }

  /// How many notifications are with the watch at the same time. Further ones are shown on the phone.
  static var maximum: Int { 64 }
  /// The time between repetitions of a message without an answer; the question grows up to the longest.
  static var repetition: UInt64 { 1_000 }
  static var longestRepetition: UInt64 { 60_000 }

  private enum Phase {
    /// The watch may claim it until then.
    case offered(until: UInt64)
    /// The watch may show it, by this claim.
    case granted(claim: Name, until: UInt64)
    /// The lease has ended, and the phone asks what became of it.
    case asked

    var until: UInt64? {
      switch self {
      case .offered(let until), .granted(_, let until): until
      case .asked: nil
      }
    }
  }

  private struct Lease {
    let showing: NotificationShowing
    let frame: NotifyFrame
    let event: Event
    var phase: Phase
    /// When its last message is repeated, and after how long the next time.
    var repeatsAt: UInt64
    var wait = WatchLeases.repetition
  }

  private let milliseconds: UInt64
  private var leases: [Lease] = []
  /// What the watch has shown and the phone has in its list.
  private var shownThere: Set<NotificationShowing> = []

  /// - Parameter milliseconds: how long the watch may claim a notification, and again may show it.
  init(milliseconds: UInt64) { self.milliseconds = milliseconds }

  /// Whether nothing is with the watch.
  var isEmpty: Bool { leases.isEmpty && shownThere.isEmpty }

  /// The time of the next action; nil if none is due.
  var deadline: UInt64? { leases.map { min($0.repeatsAt, $0.phase.until ?? .max) }.min() }

  /// Offers a notification; nil if it is to be shown on the phone now.
  mutating func offer(_ showing: NotificationShowing, _ frame: NotifyFrame, _ event: Event, now: UInt64) -> [Action]? {
    guard leases.count < Self.maximum else { return nil }
    // A newer notification takes the place of one with its identifier.
    let actions = keep { $0.identifier != showing.identifier }
    let lease = Lease(
      showing: showing, frame: frame, event: event, phase: .offered(until: now + milliseconds), repeatsAt: now + Self.repetition)
    leases.append(lease)
    return actions + [.send(message(lease))]
  }

  /// Takes a message of the watch.
  mutating func received(_ message: WatchMessage, now: UInt64) -> [Action] {
    var actions = takeTime(now)
    switch message {
    case .claim(let showing, let claim):
      guard let index = index(showing) else { return actions + [.send(.gone(showing))] }
      switch leases[index].phase {
      case .offered:
        leases[index].phase = .granted(claim: claim, until: now + milliseconds)
        leases[index].repeatsAt = now + Self.repetition
      case .granted(let granted, _) where granted == claim: break
      // A second grant could arrive after a refusal that is still under way, so there is none.
      case .granted, .asked: return actions
      }
      actions.append(.send(self.message(leases[index])))
    case .shown(let showing):
      guard let lease = end(showing) else { break }
      shownThere.insert(showing)
      actions.append(.forwarded(lease.event))
    case .never(let showing):
      if let lease = end(showing) { actions.append(.show(lease.event)) }
    default: break
    }
    return actions
  }

  /// Takes the time.
  mutating func takeTime(_ now: UInt64) -> [Action] {
    var actions: [Action] = []
    for lease in leases {
      guard let index = index(lease.showing) else { continue }
      switch lease.phase {
      case .offered(let until) where until <= now:
        leases.remove(at: index)
        actions += [.send(.gone(lease.showing)), .show(lease.event)]
      case .granted(_, let until) where until <= now:
        (leases[index].phase, leases[index].repeatsAt) = (.asked, now + Self.repetition)
        actions.append(.send(.ask(lease.showing)))
      default:
        guard lease.repeatsAt <= now else { continue }
        if case .asked = lease.phase { leases[index].wait = min(lease.wait * 2, Self.longestRepetition) }
        leases[index].repeatsAt = now + leases[index].wait
        actions.append(.send(message(lease)))
      }
    }
    return actions
  }

  /// Shows what the watch has not claimed, of all notifications or of some: the phone is unlocked or closed, or they have expired.
  mutating func recall(_ condition: (Event) -> Bool = { _ in true }) -> [Action] {
    let offered = leases.filter { if case .offered = $0.phase { condition($0.event) } else { false } }
    leases.removeAll { lease in offered.contains { $0.showing == lease.showing } }
    return offered.flatMap { [.send(.gone($0.showing)), .show($0.event)] }
  }

  /// Drops the notifications that are not listed any more. The watch removes them.
  mutating func keep(_ isListed: (NotificationShowing) -> Bool) -> [Action] {
    let dropped = (leases.map(\.showing) + shownThere).filter { !isListed($0) }
    leases.removeAll { !isListed($0.showing) }
    shownThere.subtract(dropped)
    return dropped.map { .send(.remove($0)) }
  }

  // MARK: Parts

  private func message(_ lease: Lease) -> WatchMessage {
    switch lease.phase {
    case .offered: .offer(lease.showing, lease.frame, milliseconds: milliseconds)
    case .granted(let claim, _): .grant(lease.showing, claim: claim)
    case .asked: .ask(lease.showing)
    }
  }

  private func index(_ showing: NotificationShowing) -> Int? { leases.firstIndex { $0.showing == showing } }

  /// Ends a lease that was granted.
  private mutating func end(_ showing: NotificationShowing) -> Lease? {
    guard let index = index(showing) else { return nil }
    if case .offered = leases[index].phase { return nil }
    return leases.remove(at: index)
  }
}

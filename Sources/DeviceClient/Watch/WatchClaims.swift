internal import Notifications

/// The notifications of its phone that a watch has claimed, and may show with a grant. A value without a clock.
///
/// A claim is not kept over the watch's end: a grant of an earlier life is refused, and the phone shows that notification. The store keeps
/// what was shown.
struct WatchClaims {
  /// What the watch has to do.
  enum Action: Equatable {
    /// Sends a message to the phone.
    case send(WatchMessage)
    /// Stores and shows a notification; `stored` and then `ended` follow, or `refused`.
    case show(NotificationShowing, NotifyFrame)
    /// Removes a notification from the list.
    case remove(NotificationShowing)
    /// The phone has stored a response.
    case settle(String)
  }

  /// How many notifications it claims or stores at the same time. The phone shows further ones.
  static let maximum = 64

  private struct Claim {
    let id: Name
    let frame: NotifyFrame
    let until: UInt64
  }

  private var claims: [NotificationShowing: Claim] = [:]
  /// Granted, and not shown yet; whether they are durable, and wait for their attachments.
  private var storing: [NotificationShowing: Bool] = [:]
  /// The last that were stored and have expired before they were shown.
  private var expired: [NotificationShowing] = []

  /// Takes a message of the phone.
  ///
  /// - Parameters:
  ///   - newID: an id for a claim, which no claim has had in any life of the watch.
  ///   - isShown: whether the store has a notification as shown.
  mutating func received(
    _ message: WatchMessage, now: UInt64, newID: @autoclosure () -> Name, isShown: (NotificationShowing) -> Bool
  ) -> [Action] {
    claims = claims.filter { $0.value.until > now }
    switch message {
    case .offer(let showing, let frame, let milliseconds):
      guard storing[showing] == nil else { return [] }
      guard !isShown(showing) else { return answer(showing, isShown) }
      if claims[showing] == nil {
        guard claims.count + storing.count < Self.maximum else { return [] }
        claims[showing] = Claim(id: newID(), frame: frame, until: now + milliseconds)
      }
      return claims[showing].map { [.send(.claim(showing, claim: $0.id))] } ?? []
    case .grant(let showing, let id):
      guard let claim = claims[showing], claim.id == id else { return answer(showing, isShown) }
      claims[showing] = nil
      storing[showing] = false
      return [.show(showing, claim.frame)]
    case .ask(let showing): return answer(showing, isShown)
    case .gone(let showing):
      claims[showing] = nil
      return []
    case .remove(let showing):
      claims[showing] = nil
      return [.remove(showing)]
    case .taken(let response): return [.settle(response)]
    case .hours, .claim, .shown, .never, .response, .cleared, .askHours: return []
    }
  }

  /// A granted notification is durable, and is shown when its attachments are there.
  mutating func stored(_ showing: NotificationShowing) { storing[showing] = true }

  /// A granted notification was shown, or has expired before; returns the answer, or nil if it was none of the phone's.
  mutating func ended(_ showing: NotificationShowing, isShown: Bool) -> WatchMessage? {
    guard storing.removeValue(forKey: showing) != nil else { return nil }
    guard !isShown else { return .shown(showing) }
    expired = expired.suffix(Self.maximum - 1) + [showing]
    return .never(showing)
  }

  /// A granted notification may not be shown on the watch; returns the answer.
  mutating func refused(_ showing: NotificationShowing) -> WatchMessage {
    storing[showing] = nil
    return .never(showing)
  }

  /// Ends the notifications that have left the list while they waited for their attachments; returns the answers.
  mutating func keep(_ isListed: (NotificationShowing) -> Bool) -> [WatchMessage] {
    let gone = storing.filter { $0.value && !isListed($0.key) }.keys
    for showing in gone { storing[showing] = nil }
    return gone.map { .shown($0) }
  }

  /// What became of a notification. After `never` no claim of it is left, so no late grant can show it.
  private mutating func answer(_ showing: NotificationShowing, _ isShown: (NotificationShowing) -> Bool) -> [Action] {
    guard storing[showing] == nil else { return [] }
    guard !isShown(showing) || expired.contains(showing) else { return [.send(.shown(showing))] }
    claims[showing] = nil
    return [.send(.never(showing))]
  }
}

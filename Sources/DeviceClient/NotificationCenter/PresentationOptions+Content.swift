public import Notifications

extension PresentationOptions {
  /// Whether nothing is shown.
  public var showsNothing: Bool { isDisjoint(with: .all) }

  /// The ways in which the person allows to show a notification at this moment.
  ///
  /// - Parameters:
  ///   - countingAs: what its interruption level counts as, where that is not the content's.
  ///   - isQuiet: the person's quiet hours hold.
  public init(
    of content: NotificationContent, countingAs level: InterruptionLevel? = nil, under authorization: Authorization, isQuiet: Bool = false
  ) {
    var wanted: PayloadFlags = []
    if content.hasAlert { wanted.insert(.alert) }
    if content.sound != nil { wanted.insert(.sound) }
    if content.badge != nil { wanted.insert(.badge) }
    let level = authorization.counted(level ?? content.interruptionLevel)
    self.init(for: wanted, at: level, under: authorization, isQuiet: isQuiet)
  }

  /// The ways that both allow; quietly if either says so.
  func limited(to other: PresentationOptions) -> PresentationOptions {
    let ways = intersection(other).intersection(.all)
    return ways.isEmpty ? [] : ways.union(union(other).intersection(.quietly))
  }
}

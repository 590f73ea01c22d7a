/// How much a notification may interrupt; the raw value is the word of `interruption-level`.
public enum InterruptionLevel: String, Sendable, CaseIterable {
  /// As usual.
  case active
  /// To the list, without lighting the screen or a sound.
  case passive
  /// Through a focus, a summary and quiet hours.
  case timeSensitive = "time-sensitive"
  /// Through everything, with its sound though the device is muted.
  case critical

  /// The raw value, for writers and readers that allocate nothing.
  public var word: StaticString {
    switch self {
    case .active: "active"
    case .passive: "passive"
    case .timeSensitive: "time-sensitive"
    case .critical: "critical"
    }
  }
}

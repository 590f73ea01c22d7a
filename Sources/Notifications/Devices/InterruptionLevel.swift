/// How far a notification may interrupt. The raw value is the word of `interruption-level`.
public enum InterruptionLevel: String, Sendable, CaseIterable {
  /// As usual.
  case active
  /// In the list only, without lighting the screen and without a sound.
  case passive
  /// Through a focus, a summary and quiet hours.
  case timeSensitive = "time-sensitive"
  /// Through everything, with its sound even on a muted device.
  case critical

  /// The raw value, for code that must not allocate.
  public var word: StaticString {
    switch self {
    case .active: "active"
    case .passive: "passive"
    case .timeSensitive: "time-sensitive"
    case .critical: "critical"
    }
  }
}

/// The interruption levels that an application was granted.
///
/// Without the grant, notifications of that level count as active.
public struct GrantedLevels: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: UInt8

  /// Creates levels from their bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Notifications that break through everything, with their sound.
  public static let critical = GrantedLevels(rawValue: 1)
  /// Notifications that break through a focus, a summary and quiet hours.
  public static let timeSensitive = GrantedLevels(rawValue: 2)

  private static let all: [(level: GrantedLevels, name: String)] = [(.critical, "critical"), (.timeSensitive, "timeSensitive")]

  /// Reads the levels of these names. Other names are ignored, since a later version may know them.
  public init(names: [String]) {
    self = []
    for (level, name) in Self.all where names.contains(name) { insert(level) }
  }

  /// The names in records and in `--json`, in a fixed order.
  public var names: [String] { Self.all.filter { contains($0.level) }.map(\.name) }
}

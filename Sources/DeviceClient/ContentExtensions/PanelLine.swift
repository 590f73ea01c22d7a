/// A line of text that a content extension draws in its panel.
///
///     context.lines.append(PanelLine("Going!", .green))
public struct PanelLine: Sendable, Equatable, ExpressibleByStringInterpolation {
  /// A color for feedback. The raw value is the terminal's number for it.
  public enum Color: Int, Sendable {
    case red = 31
    case green, yellow
  }

  /// The text.
  public var text: String
  /// Its color; nil for that of the panel.
  public var color: Color?

  /// A line.
  public init(_ text: String, _ color: Color? = nil) { (self.text, self.color) = (text, color) }

  /// A line in the panel's color.
  public init(stringLiteral text: String) { self.init(text) }
}

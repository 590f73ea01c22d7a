import Glibc

/// Whether text may have colours and bold.
public enum TerminalStyle {
  /// Whether the descriptor is a terminal and `NO_COLOR` is unset or empty (https://no-color.org).
  public static func isWanted(on descriptor: Int32) -> Bool {
    isatty(descriptor) == 1 && (getenv("NO_COLOR").map { $0.pointee == 0 } ?? true)
  }
}

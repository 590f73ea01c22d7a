import Glibc

/// Whether text may be in colours and in bold.
public enum TerminalStyle {
  /// On a terminal, unless `NO_COLOR` is set to anything but nothing (https://no-color.org).
  public static func isWanted(on descriptor: Int32) -> Bool {
    isatty(descriptor) == 1 && (getenv("NO_COLOR").map { $0.pointee == 0 } ?? true)
  }
}

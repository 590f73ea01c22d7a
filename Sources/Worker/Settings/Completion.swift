/// What a shell may offer where somebody begins to type a value.
public enum Completion: Sendable, Hashable {
  /// Nothing: only the person knows it.
  case nothing
  /// One of these words.
  case words([String])
  /// A path of a file.
  case file
  /// A path of a folder.
  case folder
}

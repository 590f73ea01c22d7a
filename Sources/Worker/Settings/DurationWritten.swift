extension Duration {
  /// Reads a duration in the form of settings: a whole number with a unit; nil for anything else.
  ///
  /// Examples: `500ms`, `30s`, `5m`, `2h`, `2d`.
  public init?(written text: String) {
    guard let duration = DurationText.read(text) else { return nil }
    self = duration
  }
}

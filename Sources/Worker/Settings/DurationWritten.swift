extension Duration {
  /// A duration as settings are written: a whole number with a unit, `500ms`, `30s`, `5m`, `2h` or `2d`; nil for anything else.
  public init?(written text: String) {
    guard let duration = DurationText.read(text) else { return nil }
    self = duration
  }
}

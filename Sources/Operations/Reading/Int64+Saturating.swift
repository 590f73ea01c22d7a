extension Int64 {
  /// The nearest integer within the range, cut towards zero; 0 for what is no number.
  public init(saturating number: Double) {
    self = number.isNaN ? 0 : Int64(exactly: number.rounded(.towardZero)) ?? (number < 0 ? .min : .max)
  }
}

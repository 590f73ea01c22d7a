extension Int64 {
  /// Rounds towards zero and clamps to the range; 0 for NaN.
  package init(saturating number: Double) {
    self = number.isNaN ? 0 : Int64(exactly: number.rounded(.towardZero)) ?? (number < 0 ? .min : .max)
  }
}

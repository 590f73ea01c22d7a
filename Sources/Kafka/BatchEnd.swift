/// Finds where a batch ends of which only one offset inside is known, by looking at offsets behind it. A value.
///
/// It doubles its steps until it is outside, and bisects from there.
struct BatchEnd {
  private var inside: Int64
  private var outside: Int64?
  private var step: Int64 = 1
  /// The log's end, which lies behind every batch.
  private let end: Int64

  init(inside: Int64, end: Int64) {
    self.inside = inside
    self.end = max(end, inside + 1)
  }

  /// The offset to look at; nil when the end is found.
  var next: Int64? {
    if let outside { return outside - inside > 1 ? inside + (outside - inside) / 2 : nil }
    return end - inside > step ? inside + step : end - inside > 1 ? end - 1 : nil
  }

  /// An offset lies in the batch.
  mutating func isInside(_ offset: Int64) {
    inside = max(inside, offset)
    if outside == nil { step *= 2 }
  }

  /// An offset lies behind the batch.
  mutating func isOutside(_ offset: Int64) { outside = min(outside ?? .max, max(offset, inside + 1)) }

  /// The first offset behind the batch, once there is nothing more to look at.
  var found: Int64 { inside + 1 }
}

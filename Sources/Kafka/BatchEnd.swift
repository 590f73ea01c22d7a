/// Finds the end of a batch from one offset inside, by looks at later offsets. A value.
///
/// It doubles its steps until one is outside the batch, then bisects.
struct BatchEnd {
  private var inside: Int64
  private var outside: Int64?
  private var step: Int64 = 1
  /// The log's end, at or after the end of every batch.
  private let end: Int64

  init(inside: Int64, end: Int64) {
    self.inside = inside
    self.end = max(end, inside + 1)
  }

  /// The offset to look at; nil if the end is found.
  var next: Int64? {
    if let outside { return outside - inside > 1 ? inside + (outside - inside) / 2 : nil }
    return end - inside > step ? inside + step : end - inside > 1 ? end - 1 : nil
  }

  /// Notes that an offset is inside the batch.
  mutating func isInside(_ offset: Int64) {
    inside = max(inside, offset)
    if outside == nil { step *= 2 }
  }

  /// Notes that an offset is after the batch.
  mutating func isOutside(_ offset: Int64) { outside = min(outside ?? .max, max(offset, inside + 1)) }

  /// The first offset after the batch, if `next` is nil.
  var found: Int64 { inside + 1 }
}

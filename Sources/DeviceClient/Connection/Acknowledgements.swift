internal import JSON
internal import Notifications

/// The deliveries of one session that are to be acknowledged with the next frame.
struct Acknowledgements {
  private var deliveries: [UInt64] = []
  private var updated: [UInt64] = []
  private var dropped: [(delivery: UInt64, reason: DropReason)] = []

  var isEmpty: Bool { deliveries.isEmpty && dropped.isEmpty }

  /// It was stored or shown.
  mutating func take(_ delivery: UInt64, isUpdate: Bool = false) {
    deliveries.append(delivery)
    if isUpdate { updated.append(delivery) }
  }

  /// It was not taken.
  mutating func drop(_ delivery: UInt64, _ reason: DropReason) { dropped.append((delivery, reason)) }

  /// Appends the frame.
  func write(to json: inout JSONWriter) { AckFrame.write(deliveries: deliveries, updated: updated, dropped: dropped, to: &json) }
}

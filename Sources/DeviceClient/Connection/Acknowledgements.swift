internal import JSON
internal import Notifications

/// The acknowledgement of one delivery.
enum Acknowledgement {
  /// It was stored or shown.
  case taken(UInt64)
  /// It replaced a notification on the screen.
  case updated(UInt64)
  /// It was dropped.
  case dropped(UInt64, DropReason)
}

/// The deliveries of one session for the next acknowledgement frame.
struct Acknowledgements: JSONWritable {
  private var deliveries: [UInt64] = []
  private var updated: [UInt64] = []
  private var dropped: [(delivery: UInt64, reason: DropReason)] = []

  var isEmpty: Bool { deliveries.isEmpty && dropped.isEmpty }

  /// Adds one.
  mutating func add(_ acknowledgement: Acknowledgement) {
    switch acknowledgement {
    case .taken(let delivery): deliveries.append(delivery)
    case .updated(let delivery):
      deliveries.append(delivery)
      updated.append(delivery)
    case .dropped(let delivery, let reason): dropped.append((delivery, reason))
    }
  }

  /// Appends the frame.
  func write(to json: inout JSONWriter) { AckFrame.write(deliveries: deliveries, updated: updated, dropped: dropped, to: &json) }
}

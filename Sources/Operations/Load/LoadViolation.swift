/// A promise of the cluster that was broken for one request at one device.
package struct LoadViolation: Sendable, Hashable {
  /// The kinds of broken promises.
  package enum Kind: String, Sendable, CaseIterable {
    /// A connected device does not get the notification, or the cluster says that the device has it, and the device has not.
    case lost
    /// The device gets it twice within one connection.
    case repeated
    /// The device shows it in place of a newer one with the same collapse id, since its revision says so.
    case stale
    /// The device gets it after its expiration.
    case late
    /// The device gets a scheduled one before its time.
    case early
    /// The device gets it after a later one of the same target.
    case outOfOrder = "out-of-order"
    /// A device gets it for which it is not meant.
    case misdirected

    /// What has happened, in words.
    package var words: String {
      switch self {
      case .lost: "not delivered to a connected device"
      case .repeated: "delivered twice in one connection"
      case .stale: "shown in place of a newer one with the same collapse id"
      case .late: "delivered after its expiration"
      case .early: "delivered before its time"
      case .outOfOrder: "delivered after a later one of the same target"
      case .misdirected: "delivered to a device that it is not for"
      }
    }
  }

  /// What is broken.
  package var kind: Kind
  /// The number of the request.
  package var request: Int
  /// The number of the device.
  package var device: Int
  /// When it was found, in nanoseconds after the start.
  package var at: Int64
}

import EventLoop
import FanOut
import Worker

/// How the descriptors that a process may open are shared between its devices and itself.
///
/// A device only has to connect to take one. So devices get none of what the process needs for operators, Kafka and Redis: whoever asks
/// for its health is answered however many connections are silent.
struct DescriptorPlan: Sendable {
  /// What a process needs beside its lanes: files, and twice the connections of its admin server, since refused ones stay for a moment.
  static let perProcess = 128 + 2 * AdminServer.maximumConnections
  /// What a lane needs beside its devices: three for each broker of each of its clients of Kafka, Redis, programs of extensions, and
  /// devices that are being refused.
  static let perLane = 256

  /// Descriptors that the process may open.
  let limit: Int
  /// Descriptors that are kept for the process itself; never more than half of them all.
  let reserve: Int
  /// Descriptors that it would need with all of its devices.
  let wanted: Int

  /// - Parameters:
  ///   - limit: descriptors that the process may open.
  ///   - devices: descriptors for as many devices as the settings allow.
  init(limit: Int, lanes: Int, devices: Int) {
    let own = Self.perProcess + lanes * Self.perLane
    self.limit = limit
    reserve = min(own, limit / 2)
    wanted = own + devices
  }

  /// Raises the limit of this process as far as the system allows, and shares it.
  ///
  /// - Parameter connections: devices of all lanes at most.
  init(raisingFor lanes: Int, connections: Int, servesMedia: Bool) {
    // A device that fetches a file takes one for its connection and one for the file.
    let media = servesMedia ? 2 * MediaServer.maximumConnections : 0
    self.init(limit: DescriptorLimit.raise(), lanes: lanes, devices: connections + media)
  }

  /// The number from which on a descriptor is refused to a device.
  var maximum: Int32 { Int32(clamping: limit - reserve) }

  /// Says so where the limit is too low for what is configured.
  func warn(_ logger: Logger) {
    guard limit < wanted else { return }
    logger.warning(
      "the limit of descriptors is too low for all connections that are configured; devices beyond it get 503",
      ["limit": limit, "wanted": wanted, "forDevices": Int(maximum), "raise": "the hard limit: LimitNOFILE= or ulimit -Hn"])
  }
}

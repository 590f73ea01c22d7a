import EventLoop
import FanOut
import Worker

/// How the descriptors of a process are shared between its devices and itself.
///
/// A device only needs to connect to use one. Devices get none of those that the process needs for operators, Kafka and Redis. So the
/// process answers health requests, however many silent connections it has.
struct DescriptorPlan: Sendable {
  /// The process's own descriptors. They are files, and twice the admin connections, since refused ones stay for a moment.
  static let perProcess = 128 + 2 * AdminServer.maximumConnections
  /// A lane's descriptors without its devices. They are three for each broker of each Kafka client, Redis, programs of extensions, and
  /// devices that are being refused.
  static let perLane = 256

  /// What a process opens before it serves anything, and what each of its lanes does. With less, libraries end the process.
  private static let (leastPerProcess, leastPerLane) = (128, 48)

  /// The process's limit of open descriptors.
  let limit: Int
  /// The descriptors reserved for the process itself; at most half of all.
  let reserve: Int
  /// The descriptors that it would need with all of its devices.
  let wanted: Int

  /// - Parameters:
  ///   - limit: the process's limit of open descriptors.
  ///   - devices: the descriptors for all devices that the settings allow.
  init(limit: Int, lanes: Int, devices: Int) {
    let own = Self.perProcess + lanes * Self.perLane
    self.limit = limit
    reserve = min(own, limit / 2)
    wanted = own + devices
  }

  /// Raises the limit of this process as far as the system allows, and shares it.
  ///
  /// - Parameter connections: the most devices of all lanes.
  /// - Throws: an error if the process could not even start with that limit.
  init(raisingFor lanes: Int, connections: Int, servesMedia: Bool) throws(UsageError) {
    // A device that fetches a file uses one descriptor for its connection and one for the file.
    let media = servesMedia ? 2 * MediaServer.maximumConnections : 0
    self.init(limit: DescriptorLimit.raise(), lanes: lanes, devices: connections + media)
    try check(lanes: lanes)
  }

  /// Throws if the process could not start with its limit.
  func check(lanes: Int) throws(UsageError) {
    let least = Self.leastPerProcess + lanes * Self.leastPerLane
    guard limit < least else { return }
    throw UsageError(
      .contradiction,
      "the limit of open descriptors is \(limit), and this process needs \(least) with \(lanes) lane\(lanes == 1 ? "" : "s"): raise the hard "
        + "limit (LimitNOFILE= of systemd, ulimit -Hn)")
  }

  /// Descriptors from this number on are refused to devices.
  var maximum: Int32 { Int32(clamping: limit - reserve) }

  /// Logs that the limit is too low for all devices that are allowed: a warning if the settings ask for that many.
  func report(_ logger: Logger, _ values: SettingValues) {
    guard limit < wanted else { return }
    logger.log(
      values.source(of: FanOutOptions.connections) == .standard ? .info : .warning,
      "the limit of descriptors is too low for all connections that are configured; devices beyond it get 503",
      ["limit": limit, "wanted": wanted, "forDevices": Int(maximum), "raise": "the hard limit: LimitNOFILE= or ulimit -Hn"])
  }
}

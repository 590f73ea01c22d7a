/// How much of something each device may do in a minute. A value.
struct DeviceBudget {
  /// The most of one device in a minute.
  let perMinute: Int

  private var minute: UInt64 = 0
  /// What was done in this minute, by the hashes of the devices' tokens.
  private var counts: [UInt64: Int] = [:]

  init(perMinute: Int) { self.perMinute = perMinute }

  /// Counts what a device does. Returns whether it is within the bound.
  ///
  /// - Parameters:
  ///   - weight: what it counts.
  ///   - milliseconds: of a clock that never goes back.
  mutating func takes(_ device: UInt64, weight: Int = 1, at milliseconds: UInt64) -> Bool {
    if milliseconds / 60_000 != minute { (minute, counts) = (milliseconds / 60_000, [:]) }
    guard counts[device, default: 0] + weight <= perMinute else { return false }
    counts[device, default: 0] += weight
    return true
  }
}

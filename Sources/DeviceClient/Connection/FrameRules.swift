internal import JSON
internal import Notifications

/// The cluster's rules for frames of a device, applied before the device takes what it is going to send.
///
/// A frame is written, and read by the code with which the cluster reads it. So no rule is written twice.
enum FrameRules {
  /// The largest frame of a cluster whose welcome has not said otherwise, in bytes.
  static let frameBytes = 64 << 10
  /// The smallest limit of a cluster, in bytes.
  static let leastFrameBytes = 4 << 10
  /// What a credential takes in a hello beside its text, in bytes.
  static let credentialOverhead = 32

  /// Checks a frame; returns its size in bytes. Throws an error that names the member and its rule.
  @discardableResult static func check(
    _ frame: any JSONWritable, _ code: DeviceError.Code = .badRequest, atMost maximum: Int = frameBytes
  ) throws(DeviceError) -> Int {
    var json = JSONWriter(capacity: 1024)
    frame.write(to: &json)
    do throws(DeviceFrameError) {
      try json.withUnsafeBytes { bytes throws(DeviceFrameError) in _ = try DeviceFrame(bytes) }
    } catch { throw DeviceError(code, error.description) }
    guard json.count <= maximum else {
      throw DeviceError(code, "the frame has \(json.count) bytes, and may have \(maximum): make it smaller")
    }
    return json.count
  }
}

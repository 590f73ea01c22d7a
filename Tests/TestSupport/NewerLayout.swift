public import Notifications

/// Bytes as a newer program may write them.
public enum NewerLayout {
  /// A mailbox entry with another version; by default the one after this program's.
  public static func entry(_ bytes: [UInt8], version: Int = Layout.entry.newest + 1) -> [UInt8] {
    var bytes = bytes
    bytes[16] = UInt8(version) << 4 | bytes[16] & 15
    return bytes
  }

  /// The state of a schedule with another version, and a right checksum.
  public static func state(_ bytes: [UInt8], version: Int = Layout.schedule.newest + 1) -> [UInt8] {
    var bytes = bytes
    bytes[0] = UInt8(version)
    let head = bytes[..<42].withUnsafeBytes { StableHash.hash($0) }
    let checksum = UInt32(truncatingIfNeeded: bytes[46...].withUnsafeBytes { StableHash.hash($0, seed: head) })
    withUnsafeBytes(of: checksum.bigEndian) { bytes.replaceSubrange(42..<46, with: $0) }
    return bytes
  }
}

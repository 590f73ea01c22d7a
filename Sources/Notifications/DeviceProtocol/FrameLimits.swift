/// The maximum sizes of the members of frames.
public enum FrameLimits {
  /// The longest id of a response or a request, in bytes.
  public static var idBytes: Int { 128 }
  /// The longest receipt, in bytes.
  public static var receiptBytes: Int { 4_096 }
  /// The longest credential, in bytes.
  public static var credentialBytes: Int { 8_192 }
  /// The largest delivery number. Every JSON reader represents it exactly.
  public static var largestDelivery: UInt64 { (1 << 53) - 1 }
}

/// Keys derived from other keys: HKDF with SHA-256 (RFC 5869).
public enum HKDF {
  /// The longest output there is, in bytes: 255 blocks.
  public static var maximumBytes: Int { 255 * HMACKey.codeBytes }

  /// The first step: 32 bytes that are as good as random, if the input is hard to guess. An empty salt counts as 32 zeros.
  public static func extract(salt: [UInt8], inputKeyingMaterial: UnsafeRawBufferPointer) -> [UInt8] {
    HMACKey(salt).authenticationCode(inputKeyingMaterial)
  }

  /// The second step: so many bytes for one use.
  ///
  /// - Parameters:
  ///   - key: what `extract` has returned, prepared once for all uses.
  ///   - info: names the use; another name gives other bytes.
  ///   - count: at most `maximumBytes`.
  public static func expand(_ key: HMACKey, info: [UInt8], count: Int) -> [UInt8] {
    precondition((0...maximumBytes).contains(count), "at most \(maximumBytes) bytes can be derived")
    var output: [UInt8] = []
    var block: [UInt8] = []
    var number: UInt8 = 0
    while output.count < count {
      number += 1
      block = (block + info + [number]).withUnsafeBytes { key.authenticationCode($0) }
      output += block.prefix(count - output.count)
    }
    return output
  }
}

/// The hash of buckets, checksums and tables.
///
/// It is the same on each machine and in each version: XXH64 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). It does not resist
/// attackers: where an equal hash decides who somebody is, take ``NameHash``. The journal's sums of devices and the audit's facts are made by
/// this one: two devices whose tokens have one hash are one to them.
public enum StableHash {
  private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
  private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
  private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
  private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
  private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

  /// Returns the hash of the bytes under a seed.
  public static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
    var offset = 0
    var result: UInt64
    if bytes.count >= 32 {
      var lane1 = seed &+ prime1 &+ prime2
      var lane2 = seed &+ prime2
      var lane3 = seed
      var lane4 = seed &- prime1
      repeat {
        lane1 = round(lane1, word(bytes, offset))
        lane2 = round(lane2, word(bytes, offset &+ 8))
        lane3 = round(lane3, word(bytes, offset &+ 16))
        lane4 = round(lane4, word(bytes, offset &+ 24))
        offset &+= 32
      } while offset &+ 32 <= bytes.count
      result = rotate(lane1, 1) &+ rotate(lane2, 7) &+ rotate(lane3, 12) &+ rotate(lane4, 18)
      result = merge(merge(merge(merge(result, lane1), lane2), lane3), lane4)
    } else {
      result = seed &+ prime5
    }
    result &+= UInt64(bytes.count)
    while offset &+ 8 <= bytes.count {
      result = rotate(result ^ round(0, word(bytes, offset)), 27) &* prime1 &+ prime4
      offset &+= 8
    }
    if offset &+ 4 <= bytes.count {
      let half = UInt64(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
      result = rotate(result ^ (half &* prime1), 23) &* prime2 &+ prime3
      offset &+= 4
    }
    while offset < bytes.count {
      result = rotate(result ^ (UInt64(bytes[offset]) &* prime5), 11) &* prime1
      offset &+= 1
    }
    result = (result ^ (result &>> 33)) &* prime2
    result = (result ^ (result &>> 29)) &* prime3
    return result ^ (result &>> 32)
  }

  /// Returns the hash of a text's UTF-8 under a seed.
  public static func hash(_ text: String, seed: UInt64 = 0) -> UInt64 {
    var text = text
    return text.withUTF8 { hash(UnsafeRawBufferPointer($0), seed: seed) }
  }

  /// Returns the hash of a name's bytes.
  public static func hash(_ name: Name) -> UInt64 { name.withBytes { hash($0) } }

  @inline(__always)
  private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  @inline(__always)
  private static func rotate(_ value: UInt64, _ by: UInt64) -> UInt64 { value &<< by | value &>> (64 &- by) }

  @inline(__always)
  private static func merge(_ result: UInt64, _ lane: UInt64) -> UInt64 { (result ^ round(0, lane)) &* prime1 &+ prime4 }

  @inline(__always)
  private static func round(_ lane: UInt64, _ input: UInt64) -> UInt64 { rotate(lane &+ input &* prime2, 31) &* prime1 }
}

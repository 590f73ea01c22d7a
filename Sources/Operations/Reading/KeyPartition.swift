/// The partition of a key by Kafka's Java client and by the cluster's workers.
///
/// It is the partitioner of Kafka's Java client (`murmur2`), which the workers' producers use. Other clients use others, so it holds for
/// events and not for requests.
enum KeyPartition {
  static func of(_ key: String, partitions: Int) -> Int32 {
    precondition(partitions > 0, "a topic has partitions")
    return Int32((murmur2(Array(key.utf8)) & 0x7FFF_FFFF) % UInt32(partitions))
  }

  /// MurmurHash2, 32 bits, by Austin Appleby, with the seed of Kafka's clients.
  static func murmur2(_ bytes: [UInt8]) -> UInt32 {
    let multiplier: UInt32 = 0x5BD1_E995
    var hash = 0x9747_B28C ^ UInt32(truncatingIfNeeded: bytes.count)
    var rest = bytes[...]
    while rest.count >= 4 {
      var word: UInt32 = 0
      for (place, byte) in rest.prefix(4).enumerated() { word |= UInt32(byte) << (8 * UInt32(place)) }
      word &*= multiplier
      word ^= word >> 24
      hash = (hash &* multiplier) ^ (word &* multiplier)
      rest = rest.dropFirst(4)
    }
    if !rest.isEmpty {
      for (place, byte) in rest.enumerated() { hash ^= UInt32(byte) << (8 * UInt32(place)) }
      hash &*= multiplier
    }
    hash = (hash ^ (hash >> 13)) &* multiplier
    return hash ^ (hash >> 15)
  }
}

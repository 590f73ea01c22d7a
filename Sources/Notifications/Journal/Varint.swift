// Variable-length integers: seven bits to a byte, the lowest first, the high bit set on all but the last (LEB128, as in Protocol Buffers).

extension ByteBuffer {
  mutating func append(varint value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  /// Appends a signed number. Numbers near zero take few bytes.
  mutating func append(zigzag value: Int64) {
    append(varint: UInt64(bitPattern: value &<< 1) ^ UInt64(bitPattern: value >> 63))
  }
}

extension ByteReader {
  mutating func varint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), through: 63, by: 7) {
      guard let byte = byte() else { return nil }
      // The tenth byte has room for one bit.
      guard shift < 63 || byte <= 1 else { return nil }
      value |= UInt64(byte & 0x7F) << shift
      if byte & 0x80 == 0 { return value }
    }
    return nil
  }

  mutating func zigzag() -> Int64? {
    varint().map { Int64(bitPattern: $0 >> 1) ^ -Int64(bitPattern: $0 & 1) }
  }
}

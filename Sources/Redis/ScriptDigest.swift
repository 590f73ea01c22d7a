/// The SHA-1 of a script's source in lower-case hexadecimal digits (FIPS 180-4): Redis' name for it, no matter of security.
func scriptDigest(of source: String) -> String {
  var message = Array(source.utf8)
  let bits = UInt64(message.count) * 8
  message.append(0x80)
  while message.count % 64 != 56 { message.append(0) }
  for shift in stride(from: 56, through: 0, by: -8) { message.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift))) }

  var state: (UInt32, UInt32, UInt32, UInt32, UInt32) = (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0)
  var words = [UInt32](repeating: 0, count: 80)
  for block in stride(from: 0, to: message.count, by: 64) {
    for index in 0..<16 {
      words[index] = (0..<4).reduce(0) { $0 << 8 | UInt32(message[block + index * 4 + $1]) }
    }
    for index in 16..<80 {
      words[index] = rotated(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], by: 1)
    }
    var (a, b, c, d, e) = state
    for index in 0..<80 {
      let mixed: UInt32
      switch index {
      case 0..<20: mixed = ((b & c) | (~b & d)) &+ 0x5A82_7999
      case 20..<40: mixed = (b ^ c ^ d) &+ 0x6ED9_EBA1
      case 40..<60: mixed = ((b & c) | (b & d) | (c & d)) &+ 0x8F1B_BCDC
      default: mixed = (b ^ c ^ d) &+ 0xCA62_C1D6
      }
      let next = rotated(a, by: 5) &+ mixed &+ e &+ words[index]
      (a, b, c, d, e) = (next, a, rotated(b, by: 30), c, d)
    }
    state = (state.0 &+ a, state.1 &+ b, state.2 &+ c, state.3 &+ d, state.4 &+ e)
  }
  return [state.0, state.1, state.2, state.3, state.4].map { word in
    let digits = String(word, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }.joined()
}

private func rotated(_ word: UInt32, by count: UInt32) -> UInt32 { word << count | word >> (32 - count) }

func temporaryBase64(_ bytes: [UInt8]) -> String {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  var text = ""
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let part = Array(bytes[start..<min(start + 3, bytes.count)])
    let word = part.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - part.count))
    for index in 0...3 { text.append(index <= part.count ? alphabet[Int(word >> UInt32(18 - 6 * index)) & 63] : "=") }
  }
  return text
}

func temporarySHA1(_ message: [UInt8]) -> [UInt8] {
  var data = message + [0x80]
  while data.count % 64 != 56 { data.append(0) }
  for shift in stride(from: 56, through: 0, by: -8) { data.append(UInt8(truncatingIfNeeded: (message.count * 8) >> shift)) }
  var h: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
  func rotate(_ x: UInt32, _ n: UInt32) -> UInt32 { x << n | x >> (32 - n) }
  for block in stride(from: 0, to: data.count, by: 64) {
    var w = (0..<16).map { i in (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(data[block + 4 * i + $1]) } }
    for i in 16..<80 { w.append(rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1)) }
    var (a, b, c, d, e) = (h[0], h[1], h[2], h[3], h[4])
    for i in 0..<80 {
      let (f, k): (UInt32, UInt32) =
        i < 20
        ? (b & c | ~b & d, 0x5A82_7999)
        : i < 40 ? (b ^ c ^ d, 0x6ED9_EBA1) : i < 60 ? (b & c | b & d | c & d, 0x8F1B_BCDC) : (b ^ c ^ d, 0xCA62_C1D6)
      let t = rotate(a, 5) &+ f &+ e &+ k &+ w[i]
      (e, d, c, b, a) = (d, c, rotate(b, 30), a, t)
    }
    h = zip(h, [a, b, c, d, e]).map { $0 &+ $1 }
  }
  return h.flatMap { word in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) } }
}

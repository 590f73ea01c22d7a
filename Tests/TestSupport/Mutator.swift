/// Makes inputs that are nearly valid out of valid ones.
struct Mutator: Sendable {
  let corpus: [[UInt8]]
  private let tokens: [[UInt8]]
  private let longest: Int

  /// - Parameters:
  ///   - corpus: what is mutated; not empty.
  ///   - tokens: words of the format.
  ///   - longest: bytes of an input at most.
  init(corpus: [[UInt8]], tokens: [[UInt8]], longest: Int) {
    self.corpus = corpus
    self.tokens = tokens + Self.numbers.map { Array($0.utf8) } + Self.texts
    self.longest = longest
  }

  private static let numbers = [
    "0", "-0", "-1", "1", "00", "127", "128", "255", "256", "32767", "65535", "65536", "2147483647", "2147483648", "4294967295",
    "9007199254740991", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "1e9", "1e999", "-1e-999", "0.1", "1.0", ".5", "1.", "+1", "0x10", "NaN",
    "99999999999999999999999999999999999999999999",
  ]
  private static let texts: [[UInt8]] = [
    [0], [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xEF, 0xBB, 0xBF], [0xE2, 0x80, 0xA8], [0x0D, 0x0A], [0x0A],
    Array(#"\u0000"#.utf8), Array(#"\ud800"#.utf8), Array(#"\udc00\ud800"#.utf8), Array("\u{1F600}".utf8), Array("e\u{301}".utf8),
    Array("\u{202E}".utf8),
  ]
  private static let integers: [UInt64] = [
    0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x1_0000_0000,
    0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, .max,
  ]

  /// An input: one of the corpus, changed in one place or several.
  func input(_ random: inout SeededRandom) -> [UInt8] {
    var bytes = pick(corpus, &random)
    // Mostly few changes, which pass the first checks; at times many.
    let changes = chance(1, of: 16, &random) ? Int.random(in: 5...40, using: &random) : Int.random(in: 1...4, using: &random)
    for _ in 0..<changes {
      change(&bytes, &random)
      if bytes.count > longest { bytes.removeLast(bytes.count - longest) }
    }
    return bytes
  }

  private func change(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
    switch Int.random(in: 0..<14, using: &random) {
    case 0: withPlace(&bytes, &random) { bytes, place, random in bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
    case 1: withPlace(&bytes, &random) { bytes, place, random in bytes[place] = .random(in: .min ... .max, using: &random) }
    case 2: remove(&bytes, &random)
    case 3: duplicate(&bytes, &random)
    case 4: insert((0..<Int.random(in: 1...8, using: &random)).map { _ in .random(in: .min ... .max, using: &random) }, &bytes, &random)
    case 5: insert(pick(tokens, &random), &bytes, &random)
    case 6: overwrite(pick(tokens, &random), &bytes, &random)
    case 7: bytes = splice(bytes, pick(corpus, &random), &random)
    case 8: insert(part(of: pick(corpus, &random), &random), &bytes, &random)
    case 9: bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
    case 10: changeDigits(&bytes, &random)
    case 11, 12: changeInteger(&bytes, &random)
    default: repeatPart(&bytes, &random)
    }
  }

  // MARK: Changes

  private func withPlace(
    _ bytes: inout [UInt8], _ random: inout SeededRandom, _ body: (inout [UInt8], Int, inout SeededRandom) -> Void
  ) {
    guard !bytes.isEmpty else { return }
    let place = Int.random(in: bytes.indices, using: &random)
    body(&bytes, place, &random)
  }

  private func remove(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
    let range = range(in: bytes, &random)
    bytes.removeSubrange(range)
  }

  private func duplicate(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
    let part = part(of: bytes, &random)
    insert(part, &bytes, &random)
  }

  private func insert(_ part: [UInt8], _ bytes: inout [UInt8], _ random: inout SeededRandom) {
    bytes.insert(contentsOf: part, at: Int.random(in: 0...bytes.count, using: &random))
  }

  private func overwrite(_ part: [UInt8], _ bytes: inout [UInt8], _ random: inout SeededRandom) {
    let start = Int.random(in: 0...bytes.count, using: &random)
    bytes.replaceSubrange(start..<min(bytes.count, start + part.count), with: part)
  }

  private func splice(_ bytes: [UInt8], _ other: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
    Array(bytes[..<Int.random(in: 0...bytes.count, using: &random)]) + other[Int.random(in: 0...other.count, using: &random)...]
  }

  /// Another number in the place of one in the text.
  private func changeDigits(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
    let isDigit: (UInt8) -> Bool = { (0x30...0x39).contains($0) }
    let starts = bytes.indices.filter { isDigit(bytes[$0]) && ($0 == 0 || !isDigit(bytes[$0 - 1])) }
    guard !starts.isEmpty else { return }
    let start = pick(starts, &random)
    let end = bytes[start...].firstIndex { !isDigit($0) } ?? bytes.count
    bytes.replaceSubrange(start..<end, with: pick(Self.numbers, &random).utf8)
  }

  /// Another integer in one, two, four or eight bytes, in either order: lengths, offsets, flags.
  private func changeInteger(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
    let width = pick([1, 2, 4, 8], &random)
    guard bytes.count >= width else { return }
    let start = Int.random(in: 0...(bytes.count - width), using: &random)
    var value = pick(Self.integers, &random)
    if chance(1, of: 3, &random) { value = UInt64(bytes.count) &+ UInt64.random(in: 0...4, using: &random) &- 2 }
    let isBig = chance(2, of: 3, &random)
    for index in 0..<width { bytes[start + (isBig ? width - 1 - index : index)] = UInt8(truncatingIfNeeded: value >> (8 * UInt64(index))) }
  }

  private func repeatPart(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
    let part = Array(part(of: bytes, &random).prefix(Int.random(in: 1...16, using: &random)))
    let times = pick([2, 10, 70, 300], &random)
    insert((0..<times).flatMap { _ in part }, &bytes, &random)
  }

  // MARK: Chance

  private func range(in bytes: [UInt8], _ random: inout SeededRandom) -> Range<Int> {
    let start = Int.random(in: 0...bytes.count, using: &random)
    let longest = chance(1, of: 4, &random) ? bytes.count : 8
    return start..<min(bytes.count, start + Int.random(in: 0...longest, using: &random))
  }

  private func part(of bytes: [UInt8], _ random: inout SeededRandom) -> [UInt8] { Array(bytes[range(in: bytes, &random)]) }

  private func chance(_ part: Int, of whole: Int, _ random: inout SeededRandom) -> Bool { Int.random(in: 0..<whole, using: &random) < part }

  private func pick<Element>(_ elements: [Element], _ random: inout SeededRandom) -> Element {
    elements[Int.random(in: elements.indices, using: &random)]
  }
}

public import JSON

/// Random JSON documents, and ways to spoil them.
public struct RandomJSON {
  /// Where the choices come from.
  public var generator: SeededRandom

  /// Documents of this seed.
  public init(seed: UInt64) { generator = SeededRandom(seed: seed) }

  /// A tree of at most `depth` levels whose objects repeat no name.
  public mutating func tree(depth: Int = 4) -> JSONValue {
    switch Int.random(in: 0..<(depth > 0 ? 9 : 6), using: &generator) {
    case 0: return .null
    case 1: return .bool(Bool.random(using: &generator))
    case 2, 3: return .number(number())
    case 4, 5: return .string(string())
    case 6: return .array((0..<Int.random(in: 0..<5, using: &generator)).map { _ in tree(depth: depth - 1) })
    default:
      var seen: Set<String> = []
      let members = (0..<Int.random(in: 0..<6, using: &generator)).compactMap { _ -> JSONValue.Member? in
        let key = string()
        return seen.insert(key).inserted ? JSONValue.Member(key: key, value: tree(depth: depth - 1)) : nil
      }
      return .object(members)
    }
  }

  /// The tree as text with random white space and random escapes.
  public mutating func text(of value: JSONValue) -> String {
    let space = space()
    switch value {
    case .null: return space + "null" + self.space()
    case .bool(let value): return space + (value ? "true" : "false") + self.space()
    case .number(let text): return space + text + self.space()
    case .string(let text): return space + quoted(text) + self.space()
    case .array(let elements):
      return space + "[" + (elements.isEmpty ? self.space() : elements.map { text(of: $0) }.joined(separator: ",")) + "]" + self.space()
    case .object(let members):
      let inner = members.map { self.space() + quoted($0.key) + self.space() + ":" + text(of: $0.value) }.joined(separator: ",")
      return space + "{" + (members.isEmpty ? self.space() : inner) + "}" + self.space()
    }
  }

  /// The text with one to three bytes changed, left out, put in or doubled, most of them such as matter to the grammar.
  public mutating func spoiled(_ text: [UInt8]) -> [UInt8] {
    let telling = Array("{}[]:,\"\\/ubnt019-+.eE \n\t\u{0}aF".utf8) + [0x1F, 0x7F, 0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xF0, 0xFF]
    var bytes = text
    for _ in 0..<Int.random(in: 1...3, using: &generator) {
      let place = Int.random(in: 0...bytes.count, using: &generator)
      let byte = telling.randomElement(using: &generator) ?? 0
      switch Int.random(in: 0..<5, using: &generator) {
      case 0: bytes.insert(byte, at: place)
      case 1 where place < bytes.count: bytes[place] = byte
      case 2 where place < bytes.count: bytes.remove(at: place)
      case 3 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      default:
        let end = min(bytes.count, place + Int.random(in: 0..<12, using: &generator))
        bytes.insert(contentsOf: Array(bytes[place..<end]), at: Int.random(in: 0...bytes.count, using: &generator))
      }
    }
    return Bool.random(using: &generator) ? bytes : Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))
  }

  private mutating func space() -> String {
    guard Int.random(in: 0..<6, using: &generator) == 0 else { return "" }
    return String(
      (0..<Int.random(in: 1..<4, using: &generator)).map { _ in [" ", "\t", "\r", "\n"].randomElement(using: &generator) ?? " " })
  }

  /// Up to 30 characters from everywhere in Unicode, those that must be escaped included.
  public mutating func string() -> String {
    let scalars = (0..<Int.random(in: 0..<30, using: &generator)).compactMap { _ -> Unicode.Scalar? in
      switch Int.random(in: 0..<12, using: &generator) {
      case 0: Unicode.Scalar(UInt32.random(in: 0..<0x20, using: &generator))
      case 1: ["\"", "\\", "/"].randomElement(using: &generator)
      case 2: Unicode.Scalar(UInt32.random(in: 0x80..<0x800, using: &generator))
      case 3: Unicode.Scalar(UInt32.random(in: 0x800..<0x1_0000, using: &generator))
      case 4: Unicode.Scalar(UInt32.random(in: 0x1_0000..<0x11_0000, using: &generator))
      default: Unicode.Scalar(UInt32.random(in: 0x20..<0x7F, using: &generator))
      }
    }
    return String(String.UnicodeScalarView(scalars))
  }

  private mutating func number() -> String {
    let sign = Bool.random(using: &generator) ? "-" : ""
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: return sign + String(UInt64.random(in: 0...UInt64(Int64.max), using: &generator))
    case 1: return sign + String(Int.random(in: 0..<100, using: &generator))
    case 2: return sign + Double.random(in: 0..<1000, using: &generator).description
    default:
      let exponent = Int.random(in: -30..<30, using: &generator)
      return sign + "\(Int.random(in: 0..<10, using: &generator)).\(Int.random(in: 0..<1000, using: &generator))"
        + (Bool.random(using: &generator) ? "e" : "E") + (exponent >= 0 && Bool.random(using: &generator) ? "+" : "") + "\(exponent)"
    }
  }

  private mutating func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      let mustEscape = scalar.value < 0x20 || scalar == "\"" || scalar == "\\"
      guard mustEscape || Int.random(in: 0..<10, using: &generator) == 0 else {
        result.unicodeScalars.append(scalar)
        continue
      }
      let short: [Unicode.Scalar: String] = [
        "\"": "\\\"", "\\": "\\\\", "/": "\\/", "\u{8}": "\\b", "\u{C}": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
      ]
      if let short = short[scalar], Bool.random(using: &generator) {
        result += short
        continue
      }
      for unit in UTF16.encode(scalar)?.map({ $0 }) ?? [] {
        let digits = String(unit, radix: 16, uppercase: Bool.random(using: &generator))
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
    }
    return result + "\""
  }
}

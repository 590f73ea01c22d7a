/// The name of a locale, such as `zh-Hant-TW`, `de_AT` or `en_US.UTF-8`, in the parts that select texts.
///
/// It has the form of BCP 47, or underscores; case does not matter. Extensions (`-u-…`), and the part after `.` or `@`, do not affect texts
/// and are left out.
struct LocaleName: Hashable {
  /// The most bytes of a name without the ignored parts (RFC 5646, section 4.4.1).
  static var longest: Int { 35 }

  /// In small letters, between hyphens: the key of its table.
  let key: String
  /// In small letters, as all parts: `zh`.
  let language: String
  /// The script, such as `hant`, also where only the region tells it; nil if there is none.
  let script: String?
  /// The written region, such as `tw`; nil if there is none.
  let region: String?

  /// Reads a name; nil if it is invalid.
  init?(_ name: some StringProtocol) {
    let name = name.utf8.prefix(Self.longest + 1).prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "@") }
    guard name.count <= Self.longest else { return nil }
    var parts: [[UInt8]] = []
    for part in name.split(omittingEmptySubsequences: false, whereSeparator: { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }) {
      guard (1...8).contains(part.count), part.allSatisfy({ $0.isLetter || $0.isDigit }) else { return nil }
      // A single letter begins an extension.
      if part.count == 1, !parts.isEmpty { break }
      parts.append(part.map { $0.isLetter ? $0 | 0x20 : $0 })
    }
    guard let language = parts.first, (2...3).contains(language.count), language.allSatisfy(\.isLetter) else { return nil }
    func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
    var rest = parts.dropFirst()
    let written = rest.first.flatMap { $0.count == 4 && $0.allSatisfy(\.isLetter) ? text($0) : nil }
    if written != nil { rest.removeFirst() }
    let region = rest.first.flatMap {
      $0.count == 2 && $0.allSatisfy(\.isLetter) || $0.count == 3 && $0.allSatisfy(\.isDigit) ? text($0) : nil
    }
    (self.language, self.region) = (text(language), region)
    script = written ?? (self.language == "zh" ? Self.traditional.contains(region ?? "") ? "hant" : "hans" : nil)
    key = parts.map(text).joined(separator: "-")
  }

  /// How far texts in another locale are from this one, 0 for its own; nil if its readers do not understand them.
  ///
  /// The regions follow CLDR's parent locales (UTS 35, part 1). The same language of another region is better than another language.
  func distance(to other: LocaleName) -> Int? {
    let isPlain = other.key == other.language
    guard let kinship = ([language] + (Self.relatives[language] ?? [])).firstIndex(of: other.language), isPlain || other.script == script
    else { return nil }
    let distance =
      switch other.region {
      case _ where other.key == key: 0
      case nil: isPlain ? 4 : 3
      case region: 1
      case parentRegion: 2
      // The older names of the scripts.
      case "tw" where language == "zh" && script == "hant", "cn" where language == "zh" && script == "hans": 3
      default: 5
      }
    return 10 * kinship + distance
  }

  /// The region whose texts this one shares, if they differ from the plain language's.
  private var parentRegion: String? {
    switch (language, region) {
    case ("es", let region?) where Self.latinAmerica.contains(region): "419"
    // The plain language is the Portuguese of Brazil.
    case ("pt", let region?) where region != "br": "pt"
    case ("zh", "mo"): "hk"
    default: nil
    }
  }

  /// The regions that write Chinese in the traditional script.
  private static let traditional: Set<String> = ["tw", "hk", "mo"]

  private static let latinAmerica: Set<String> = [
    "ar", "bo", "br", "bz", "cl", "co", "cr", "cu", "do", "ec", "gt", "hn", "mx", "ni", "pa", "pe", "pr", "py", "sv", "us", "uy", "ve",
  ]

  /// Other names of a language, and languages that its readers read.
  private static let relatives = [
    "nb": ["no"], "no": ["nb"], "nn": ["no", "nb"], "he": ["iw"], "iw": ["he"], "id": ["in"], "in": ["id"], "yi": ["ji"], "ji": ["yi"],
    "fil": ["tl"], "tl": ["fil"],
  ]
}

extension UInt8 {
  /// Whether it is a letter of ASCII.
  var isLetter: Bool { (0x61...0x7A).contains(self | 0x20) }
  /// Whether it is a digit of ASCII.
  var isDigit: Bool { (0x30...0x39).contains(self) }
}

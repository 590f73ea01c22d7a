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
  /// The written script, such as `hant`; nil if there is none.
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
    let script = rest.first.flatMap { $0.count == 4 && $0.allSatisfy(\.isLetter) ? text($0) : nil }
    if script != nil { rest.removeFirst() }
    let region = rest.first.flatMap {
      $0.count == 2 && $0.allSatisfy(\.isLetter) || $0.count == 3 && $0.allSatisfy(\.isDigit) ? text($0) : nil
    }
    (self.language, self.script, self.region) = (text(language), script, region)
    key = parts.map(text).joined(separator: "-")
  }

  /// The script of its texts, if the language has two and the name decides between them.
  var likelyScript: String? {
    if let script { return script }
    guard language == "zh" else { return nil }
    return switch region {
    case "tw", "hk", "mo": "hant"
    default: "hans"
    }
  }

  // MARK: Fallbacks

  /// The keys of the tables that its readers understand, the nearest first. Some occur twice.
  ///
  /// They follow CLDR's parent locales (UTS 35, part 1), with the plain language last. A single table of a language is for all its readers.
  var fallbacks: [String] {
    var keys = [key]
    for language in [language] + (Self.relatives[language] ?? []) {
      if let script = likelyScript {
        if let region { keys.append("\(language)-\(script)-\(region)") }
        if let region, LocaleName("\(language)-\(region)")?.likelyScript == script { keys.append("\(language)-\(region)") }
        // Macao uses the texts of Hong Kong.
        if language == "zh", region == "mo", script == "hant" { keys += ["zh-hant-hk", "zh-hk"] }
        keys.append("\(language)-\(script)")
        // The older names of the two Chinese scripts.
        if language == "zh" { keys.append(script == "hant" ? "zh-tw" : "zh-cn") }
      } else if let region {
        keys.append("\(language)-\(region)")
      }
      if let parent = regionalParent(language) { keys.append(parent) }
      keys.append(language)
    }
    return keys
  }

  /// The shared variant of a region, if it differs from the plain language.
  private func regionalParent(_ language: String) -> String? {
    guard let region, script == nil else { return nil }
    switch language {
    case "es": return Self.latinAmerica.contains(region) ? "es-419" : nil
    // The plain language is the Portuguese of Brazil.
    case "pt": return region == "br" ? nil : "pt-pt"
    default: return nil
    }
  }

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

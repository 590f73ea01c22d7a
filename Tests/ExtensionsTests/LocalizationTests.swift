import Glibc
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import Extensions

@Suite struct LocalizationTests {
  /// Texts where `who` names the locale.
  private static func localization(_ locales: [String], defaultLocale: String? = nil) throws -> Localization {
    try Localization(
      locales.map { Localization.File(locale: $0, bytes: Array("who = \"\($0)\"; \"only \($0)\" = \"%@ of \($0)\";".utf8)) },
      defaultLocale: defaultLocale)
  }

  private static func wrong(_ make: () throws(FieldError) -> Localization) -> String {
    do throws(FieldError) {
      _ = try make()
      return "nothing"
    } catch { return "\(error)" }
  }

  // MARK: Which table

  @Test(arguments: [
    // As it is named, however that is written.
    ("de_AT", ["de", "de-AT", "en"], ["de-AT", "de"]), ("DE-at", ["de_AT", "en"], ["de_AT"]), ("de", ["DE", "en"], ["DE"]),
    ("de_AT.UTF-8", ["de-AT"], ["de-AT"]), ("de_AT@euro", ["de-AT"], ["de-AT"]), ("en-US-u-ca-japanese", ["en-US"], ["en-US"]),
    ("zh-hant-tw", ["zh-Hant-TW"], ["zh-Hant-TW"]), ("es_419", ["es-419"], ["es-419"]), ("fil-PH", ["fil"], ["fil"]),
    ("ca-ES-valencia", ["ca", "ca-ES-valencia", "ca-ES"], ["ca-ES-valencia", "ca-ES", "ca"]), ("en_US_POSIX", ["en"], ["en"]),
    // The language for a region, then another of its regions.
    ("de-AT", ["de", "en"], ["de"]), ("fr-CH", ["fr-FR", "fr-CA", "en"], ["fr-CA", "fr-FR"]), ("de", ["de-AT", "en"], ["de-AT"]),
    ("pt", ["pt-PT", "pt-BR"], ["pt-BR", "pt-PT"]), ("pt-PT", ["pt"], ["pt"]), ("pt-AO", ["pt", "pt-PT"], ["pt-PT", "pt"]),
    ("pt-BR", ["pt", "pt-PT"], ["pt", "pt-PT"]), ("es-MX", ["es", "es-419", "es-ES"], ["es-419", "es", "es-ES"]),
    ("es-ES", ["es", "es-419"], ["es", "es-419"]),
    // Chinese by its script.
    ("zh-HK", ["zh", "zh-TW"], ["zh-TW", "zh"]), ("zh-Hant", ["zh", "zh-TW"], ["zh-TW", "zh"]),
    ("zh-Hant-US", ["zh-HK", "zh-TW"], ["zh-TW", "zh-HK"]), ("zh-Hans-SG", ["zh-SG", "zh-CN", "zh-TW"], ["zh-SG", "zh-CN"]),
    ("zh-TW", ["zh-Hans", "zh-Hant", "zh"], ["zh-Hant", "zh"]), ("zh-CN", ["zh-Hans", "zh-Hant", "zh"], ["zh-Hans", "zh"]),
    ("zh", ["zh-Hant", "zh-Hans"], ["zh-Hans"]), ("zh-Hant", ["zh-Hans"], []), ("zh-Hant-HK", ["zh-HK", "zh-Hant"], ["zh-HK", "zh-Hant"]),
    ("zh-MO", ["zh-HK", "zh-Hant", "zh-CN"], ["zh-HK", "zh-Hant"]), ("zh-SG", ["zh-CN", "zh-TW"], ["zh-CN"]),
    ("zh-Hans-TW", ["zh-TW", "zh-Hans"], ["zh-Hans"]), ("zh-Hant-SG", ["zh_TW", "zh_CN"], ["zh_TW"]),
    ("sr-Latn-RS", ["sr", "sr-Latn", "sr-RS"], ["sr-Latn", "sr"]),
    // Names of one language, and neighbours.
    ("nb-NO", ["no", "en"], ["no"]), ("no", ["nb"], ["nb"]), ("nn-NO", ["no", "nb", "nn"], ["nn", "no", "nb"]), ("iw-IL", ["he"], ["he"]),
    ("id", ["in"], ["in"]), ("da", ["nb", "sv"], []),
  ])
  func aLocaleAsksItsTablesFromTheNearestOn(locale: String, tables: [String], expected: [String]) throws {
    #expect(try Self.localization(tables).chain(for: locale) == expected)
  }

  @Test(arguments: [
    nil, "", "-", "_", "de-", "-de", "de--AT", "d", "deutsch", "Base", "de AT", "dé", "😀", "1", "de-AT-toolongpart", "\0",
    "de-aaaaaaaa-bbbbbbbb-cccccccc-dddddd", String(repeating: "de-AT-", count: 100_000),
  ])
  func whatIsNoLocaleHasTheDefaultsTexts(locale: String?) throws {
    let localization = try Self.localization(["Base", "de", "en"], defaultLocale: "EN")
    #expect(localization.chain(for: locale) == ["en", "Base"])
  }

  @Test func aLocaleHasThirtyFiveBytesAtMost() throws {
    let localization = try Self.localization(["de"])
    #expect(localization.chain(for: "de-aaaaaaaa-bbbbbbbb-cccccccc-ddddd") == ["de"])
    #expect(localization.chain(for: "de-aaaaaaaa-bbbbbbbb-cccccccc-dddddd") == [])
    #expect(localization.chain(for: "de@" + String(repeating: "a", count: 1_000)) == ["de"])
  }

  @Test func theDefaultAndBaseFollowOnce() throws {
    let localization = try Self.localization(["base", "en", "de"], defaultLocale: "de")
    #expect(localization.chain(for: "en-GB") == ["en", "de", "base"])
    #expect(localization.chain(for: "de-DE") == ["de", "base"])
    #expect(localization.chain(for: "fr") == ["de", "base"])
    #expect(try Self.localization(["Base", "en"]).chain(for: "fr") == ["Base"])
    #expect(try Self.localization(["en"]).chain(for: "fr") == [])
  }

  // MARK: Texts

  @Test func aKeyIsLookedUpInEachTableOfTheChain() throws {
    let localize = Localize(try Self.localization(["Base", "de", "de-AT", "en", "fr"], defaultLocale: "en"))
    func text(_ key: String, _ arguments: [String] = ["one"]) throws -> String? {
      try localize.format(key, locale: "de_AT")?.filled(with: arguments, limit: 100, field: key)
    }
    #expect(try text("who") == "de-AT")
    #expect(try text("only de") == "one of de")
    #expect(try text("only en") == "one of en")
    #expect(try text("only Base") == "one of Base")
    #expect(try text("only fr") == nil)
    #expect(throws: FieldError.self) { try text("only de", []) }
    #expect(throws: FieldError.self) { try text("only de", [String(repeating: "a", count: 96)]) }
  }

  @Test func anyLocaleHasTheDefaultAtItsEnd() throws {
    let localization = try Self.localization(["Base", "de", "en", "zh-Hans", "zh-Hant", "nb", "pt-BR", "es-419"], defaultLocale: "en")
    let corpus = ["de_AT", "zh-Hant-TW", "en-US-u-ca-buddhist", "nn_NO.UTF-8", "pt_PT@euro", "es-MX"].map { Array($0.utf8) }
    let failures = Fuzz("locales", corpus: corpus, tokens: ["-", "_", ".", "@", "zh", "Hant", "419", "x"]).run { bytes, _ in
      let chain = localization.chain(for: String(decoding: bytes, as: UTF8.self))
      return Set(chain).count == chain.count && chain.contains("en") && chain.last == "Base" ? nil : "\(chain)"
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test(arguments: [
    #"/* a comment */ "a\"b" = "Grüße\n%@"; // another"#, "'a\"b' = 'Grüße\n%@';", #""a\"b" = "Gr\U00fc\U00dfe\n%@";"#,
  ])
  func eachFormOfAFileIsRead(text: String) throws {
    let utf16 = Array("\u{FEFF}\(text)".utf16).flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    for bytes in [Array(text.utf8), [0xEF, 0xBB, 0xBF] + Array(text.utf8), utf16] {
      let localization = try Localization([Localization.File(locale: "de", bytes: bytes)], defaultLocale: nil)
      #expect(localization.tables.map(\.strings) == [["a\"b": "Grüße\n%@"]])
    }
  }

  @Test(arguments: ["", "  \n", "/* nothing yet */"])
  func aFileWithoutTextsIsATable(text: String) throws {
    let localization = try Localization([Localization.File(locale: "de", bytes: Array(text.utf8))], defaultLocale: nil)
    #expect(localization.tables.map(\.strings.isEmpty) == [true])
  }

  // MARK: What is refused

  /// How the file of the locale `de` is refused, with what Foundation says of it.
  private static func mistake(_ found: String?, in folder: String = "") -> String {
    "\(folder)de.lproj/Localizable.strings: each entry is written as \"key\" = \"value\"; in UTF-8, or in UTF-16 with its mark"
      + (found.map { " (\($0))" } ?? "")
  }

  @Test func aMistakeNamesItsFileAndItsRule() {
    func wrong(_ files: [(String, String)], defaultLocale: String? = nil) -> String {
      Self.wrong { () throws(FieldError) in
        try Localization(files.map { Localization.File(locale: $0.0, bytes: Array($0.1.utf8)) }, defaultLocale: defaultLocale)
      }
    }
    #expect(wrong([("de", "a;\nb = \"c\"\nd;")]) == Self.mistake("Missing ';' on line 3"))
    #expect(wrong([("de", "a = (b, c);")]) == Self.mistake(nil))
    for deep in ["(", "{a = ", "<array>"] {
      let text = String(repeating: deep, count: 100_000)
      let utf16 = Array("\u{FEFF}\(text)".utf16).flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
      for bytes in [Array(text.utf8), [0xEF, 0xBB, 0xBF, 0x20] + Array(text.utf8), utf16] {
        let file = Localization.File(locale: "de", bytes: bytes)
        let said = Self.wrong { () throws(FieldError) in try Localization([file], defaultLocale: nil) }
        #expect(said.hasPrefix("de.lproj/Localizable.strings: "))
      }
    }
    #expect(
      wrong([("English", "")])
        == "English.lproj/Localizable.strings: a locale has a name such as de, pt-BR, zh-Hant or Base, of 35 bytes at most")
    #expect(
      wrong([("zh-TW", ""), ("zh_TW", "")])
        == "zh_TW.lproj/Localizable.strings: zh-TW.lproj has the same locale: join the two")
    #expect(
      wrong([("Base", ""), ("base", "")])
        == "base.lproj/Localizable.strings: Base.lproj has the same locale: join the two")
    #expect(wrong([("de", ""), ("en-GB", "")], defaultLocale: "en") == "en.lproj: the default locale has no table: name one of de, en-GB")
    #expect(wrong([("de", "")], defaultLocale: "?") == "?.lproj: the default locale has no table: name one of de")
    func tooLarge(_ locale: String) -> String {
      "\(locale).lproj/Localizable.strings: a file has 4194304 bytes of texts at most, and all of an application 33554432"
    }
    let letters = "abcdefghijklmnopqrstuvwxyz"
    let locales = letters.flatMap { first in letters.map { "\(first)\($0)" } }
    #expect(wrong(locales.prefix(256).map { ($0, "") }) == "nothing")
    #expect(wrong(locales.prefix(257).map { ($0, "") }) == "jw.lproj/Localizable.strings: an application has 256 locales at most")
    #expect(wrong([("de", String(repeating: " ", count: 4 << 20 + 1))]) == tooLarge("de"))
    let large = "a = b;" + String(repeating: " ", count: 4 << 20 - 6)
    #expect(wrong(locales.prefix(8).map { ($0, large) }) == "nothing")
    #expect(wrong(locales.prefix(8).map { ($0, large) } + [("zz", "a;")]) == tooLarge("zz"))
  }

  // MARK: Folders

  /// A folder of its own, removed at the end.
  private static func withFolder<R>(_ files: [String: String], _ body: (String) throws -> R) throws -> R {
    try TestFolder.with(files) { try body($0.path) }
  }

  @Test func aFolderIsReadAsAnApplicationHasIt() throws {
    let files = [
      "en.lproj/Localizable.strings": "who = en;", "zh-Hant.lproj/Localizable.strings": "who = zh;",
      "Base.lproj/Localizable.strings": "who = B;",
      "fr.lproj/InfoPlist.strings": "broken", "notes.txt": "broken", "English/Localizable.strings": "broken",
      ".lproj/Localizable.strings": "broken",
    ]
    try Self.withFolder(files) { folder in
      let localization = try Localization(folder: folder, defaultLocale: "en")
      #expect(localization.tables.map(\.locale) == ["Base", "en", "zh-Hant"])
      #expect(Localize(localization).format("who", locale: "zh_TW")?.text == "zh")
    }
  }

  @Test func aFolderThatCannotBeReadNamesTheFileAndTheRule() throws {
    func wrong(_ files: [String: String], _ change: (String) -> Void = { _ in }) throws -> String {
      try Self.withFolder(files) { folder in
        change(folder)
        let text = Self.wrong { () throws(FieldError) in try Localization(folder: folder, defaultLocale: nil) }
        for made in ["de.lproj/Localizable.strings", "de.lproj"] { remove("\(folder)/\(made)") }
        return text.replacing(folder, with: "F")
      }
    }
    #expect(
      try wrong(["de.lproj/Localizable.strings": "a = ;"])
        .hasPrefix(Self.mistake(nil, in: "F/")))
    #expect(try wrong([:]) == "F: the folder has no file such as en.lproj/Localizable.strings")
    #expect(try wrong(["de.lproj": ""]) == "F/de.lproj/Localizable.strings: cannot be read: Not a directory")
    #expect(
      try wrong([:]) { folder in
        mkdir("\(folder)/de.lproj", 0o700)
        mkfifo("\(folder)/de.lproj/Localizable.strings", 0o600)
      } == "F/de.lproj/Localizable.strings: only a regular file is read")
    #expect(
      try wrong(["de.lproj/Localizable.strings": String(repeating: " ", count: 4 << 20 + 1)])
        .hasPrefix("F/de.lproj/Localizable.strings: a file has 4194304 bytes of texts at most"))
    #expect(
      Self.wrong { () throws(FieldError) in try Localization(folder: "/nonexistent", defaultLocale: nil) }
        == "/nonexistent: cannot be read: No such file or directory")
  }
}

extension Localization {
  /// The locales of the tables for a device's locale, in the order in which they are searched.
  fileprivate func chain(for locale: String?) -> [String] { places(for: locale).map { tables[$0].locale } }
}

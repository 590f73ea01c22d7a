/// The localised texts of an application: a table for each locale, named like the folders of an Apple application.
///
/// It never changes, so all lanes share one.
struct Localization: Sendable {
  /// A file of texts, before it is read.
  struct File: Sendable {
    /// The locale: `de`, `zh-Hant`, `pt_BR`, or `Base`.
    let locale: String
    /// Its name in errors.
    let name: String
    /// Its content.
    let bytes: [UInt8]

    /// Names a file's content.
    ///
    /// - Parameter name: its name in errors; by default `de.lproj/Localizable.strings`.
    init(locale: String, name: String? = nil, bytes: [UInt8]) {
      (self.locale, self.bytes) = (locale, bytes)
      self.name = name ?? "\(locale).lproj/Localizable.strings"
    }
  }

  /// The texts of a locale.
  struct Table: Sendable {
    /// The name from the folder.
    let locale: String
    let file: String
    let strings: StringsFile
  }

  /// The most locales of an application.
  static let tableCount = 256
  /// The most bytes of all its files.
  static let totalBytes = 32 << 20

  /// In the order of their names.
  let tables: [Table]
  /// The indices of the tables by the keys of their locales.
  private let places: [String: Int]
  /// The names of the tables' locales, in their order; nil for Base.
  private let names: [LocaleName?]
  /// The tables after those of the device's locale: that of the default locale, and Base.
  private let last: [Int]

  /// Reads the files of an application.
  ///
  /// - Parameters:
  ///   - files: one for each locale, in any order.
  ///   - defaultLocale: the locale for devices whose own has no texts; nil for Base only.
  init(_ files: [File], defaultLocale: String?) throws(LocalizationError) {
    guard files.count <= Self.tableCount else {
      throw LocalizationError(file: files[Self.tableCount].name, rule: "an application has \(Self.tableCount) locales at most")
    }
    var bytes = 0
    for file in files {
      bytes += file.bytes.count
      guard bytes <= Self.totalBytes else {
        throw LocalizationError(file: file.name, rule: "an application has \(Self.totalBytes) bytes of texts at most, all locales together")
      }
    }
    var tables: [Table] = []
    var names: [LocaleName?] = []
    var places: [String: Int] = [:]
    var base: Int?
    for file in files.sorted(by: { $0.locale < $1.locale }) {
      let isBase = file.locale.lowercased() == "base"
      let name = LocaleName(file.locale)
      guard isBase || name != nil else {
        throw LocalizationError(
          file: file.name, rule: "a locale has a name such as de, pt-BR, zh-Hant or Base, of \(LocaleName.longest) bytes at most")
      }
      let former = name.map { places.updateValue(tables.count, forKey: $0.key) } ?? base
      if let former { throw LocalizationError(file: file.name, rule: "\(tables[former].file) has the same locale: join the two") }
      if isBase { base = tables.count }
      do throws(StringsError) {
        tables.append(Table(locale: file.locale, file: file.name, strings: try StringsFile(file.bytes)))
      } catch {
        throw LocalizationError(file: file.name, line: error.line, column: error.column, rule: error.reason.rule)
      }
      names.append(name)
    }
    var last: [Int] = []
    if let defaultLocale {
      guard let place = LocaleName(defaultLocale).flatMap({ places[$0.key] }) else {
        throw LocalizationError(
          file: "\(defaultLocale.prefix(LocaleName.longest)).lproj",
          rule: "the default locale has no table: name one of \(tables.prefix(8).map(\.locale).joined(separator: ", "))")
      }
      last.append(place)
    }
    if let base { last.append(base) }
    (self.tables, self.names, self.places, self.last) = (tables, names, places, last)
  }

  /// The indices of the tables for a device's locale, in the order in which they are searched.
  ///
  /// Two devices with equal ones get the same texts. An invalid locale has only the default's.
  func places(for locale: String?) -> [Int] {
    var chain: [Int] = []
    func add(_ place: Int) { if !chain.contains(place) { chain.append(place) } }
    if let name = locale.flatMap({ LocaleName($0) }) {
      for key in name.fallbacks { if let place = places[key] { add(place) } }
      // The same language of another region is better than another language.
      for (place, other) in names.enumerated() {
        if let other, other.language == name.language, other.likelyScript == name.likelyScript { add(place) }
      }
    }
    for place in last { add(place) }
    return chain
  }

  /// Texts with invalid percent signs, as errors with the file and the line; only the first ones beyond `limit`.
  ///
  /// They are not errors of the format: the same file may have texts that the application itself fills with numbers.
  func formatProblems(limit: Int = 100) -> [LocalizationError] {
    var problems: [LocalizationError] = []
    for table in tables {
      for entry in table.strings.entries.values.sorted(by: { $0.line < $1.line }) {
        guard let problem = TextFormat(entry.value).problem else { continue }
        if problems.count >= limit { return problems }
        problems.append(LocalizationError(file: table.file, line: entry.line, rule: problem))
      }
    }
    return problems
  }
}

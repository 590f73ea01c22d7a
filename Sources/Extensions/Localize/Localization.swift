import FoundationEssentials
import Notifications

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
    /// The locale; nil for Base.
    let name: LocaleName?
    /// The texts by their keys. Of keys that Unicode takes for equal, Foundation reads one.
    let strings: [Name: String]
  }

  /// The most locales of an application.
  static let tableCount = 256
  /// The most bytes of a file, and of all its files.
  static let (fileBytes, totalBytes) = (4 << 20, 32 << 20)

  /// In the order of their names.
  let tables: [Table]
  /// The tables after those of the device's locale: that of the default locale, and Base.
  private let last: [Int]

  /// Reads the files of an application.
  ///
  /// - Parameters:
  ///   - files: one for each locale, in any order.
  ///   - defaultLocale: the locale for devices whose own has no texts; nil for Base only.
  init(_ files: [File], defaultLocale: String?) throws(FieldError) {
    guard files.count <= Self.tableCount else {
      throw FieldError(field: files[Self.tableCount].name, rule: "an application has \(Self.tableCount) locales at most")
    }
    var (bytes, tables, places): (Int, [Table], [String: Int]) = (0, [], [:])
    for file in files.sorted(by: { $0.locale < $1.locale }) {
      bytes += file.bytes.count
      guard bytes <= Self.totalBytes, file.bytes.count <= Self.fileBytes else {
        throw FieldError(
          field: file.name, rule: "a file has \(Self.fileBytes) bytes of texts at most, and all of an application \(Self.totalBytes)")
      }
      let name = LocaleName(file.locale)
      guard let key = name?.key ?? (file.locale.lowercased() == Self.base ? Self.base : nil) else {
        throw FieldError(
          field: file.name, rule: "a locale has a name such as de, pt-BR, zh-Hant or Base, of \(LocaleName.longest) bytes at most")
      }
      if let former = places.updateValue(tables.count, forKey: key) {
        throw FieldError(field: file.name, rule: "\(tables[former].locale).lproj has the same locale: join the two")
      }
      tables.append(Table(locale: file.locale, name: name, strings: try Self.strings(file)))
    }
    if let defaultLocale, LocaleName(defaultLocale).flatMap({ places[$0.key] }) == nil {
      throw FieldError(
        field: "\(defaultLocale.prefix(LocaleName.longest)).lproj",
        rule: "the default locale has no table: name one of \(tables.prefix(8).map(\.locale).joined(separator: ", "))")
    }
    last = [defaultLocale.flatMap { LocaleName($0)?.key }, Self.base].compactMap { $0.flatMap { places[$0] } }
    self.tables = tables
  }

  private static let base = "base"

  /// What stands before a text in any of its encodings.
  private static let leading: [UInt8] = [0, 9, 10, 11, 12, 13, 32, 0xEF, 0xBB, 0xBF, 0xFE, 0xFF]

  /// The texts of a file: entries, or the compiled form. XML is refused, since Foundation's reader of it has no bound for its depth.
  private static func strings(_ file: File) throws(FieldError) -> [Name: String] {
    guard let first = file.bytes.first(where: { !leading.contains($0) }) else { return [:] }
    guard first != UInt8(ascii: "<") else {
      throw FieldError(field: file.name, rule: "XML is not read: write each entry as \"key\" = \"value\"; or compile the file")
    }
    do {
      let texts = try PropertyListDecoder().decode([String: String].self, from: Data(file.bytes))
      return Dictionary(uniqueKeysWithValues: texts.map { (Name($0.key), $0.value) })
    } catch {
      var place: String?
      if case DecodingError.dataCorrupted(let context) = error {
        place = (context.underlyingError as? CocoaError)?.userInfo["NSDebugDescription"] as? String
      }
      throw FieldError(
        field: file.name,
        rule: "each entry is written as \"key\" = \"value\"; in UTF-8, or in UTF-16 with its mark" + (place.map { " (\($0))" } ?? ""))
    }
  }

  /// The indices of the tables for a device's locale, in the order in which they are searched.
  ///
  /// Two devices with equal ones get the same texts. An invalid locale has only the default's.
  func places(for locale: String?) -> [Int] {
    guard let name = locale.flatMap({ LocaleName($0) }) else { return last }
    let near = tables.enumerated().compactMap { place, table in
      table.name.flatMap { name.distance(to: $0) }.map { (distance: $0, place: place) }
    }
    let chain = near.sorted { $0 < $1 }.map(\.place)
    return chain + last.filter { !chain.contains($0) }
  }
}

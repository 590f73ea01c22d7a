import Notifications

/// Looks up the localised texts of an application, and remembers which tables a locale's texts come from.
///
/// A value with memory: each lane has its own, and a call of one changes no other.
public struct Localizer: Sendable {
  /// Locales remembered at most; with one more it forgets them all.
  static var remembered: Int { 256 }

  /// The texts.
  public let localization: Localization
  private(set) var chains: [Name: [Int]] = [:]

  /// Looks up in these texts.
  public init(_ localization: Localization) { self.localization = localization }

  /// The text of a key in the device's locale; nil when no table has the key.
  ///
  /// The tables asked are those of the locale from the nearest on, then that of the default locale, then Base.
  ///
  /// - Parameter locale: by BCP 47 or with underscores; what is none counts as the default locale.
  public mutating func format(_ key: String, locale: String?) -> TextFormat? {
    for place in chain(for: locale) {
      if let entry = localization.tables[place].strings.entries[Name(key)] { return TextFormat(entry.value) }
    }
    return nil
  }

  /// The text of a key in the device's locale with its arguments filled in; nil when no table has the key.
  ///
  /// - Parameters:
  ///   - locale: as `format` takes it.
  ///   - limit: how many bytes the text may have.
  /// - Throws: when the arguments do not suffice for the nearest text; those of other locales are not tried.
  public mutating func text(
    _ key: String, _ arguments: [String] = [], locale: String?, limit: Int
  ) throws(TextFormatError) -> String? {
    try format(key, locale: locale)?.filled(with: arguments, limit: limit)
  }

  /// How many locales it remembers; the number changes with each that it learns.
  var remembersLocales: Int { chains.count }

  /// The names of the tables that a locale's texts come from, nearest first, as one text.
  mutating func tables(for locale: String?) -> String {
    chain(for: locale).map { localization.tables[$0].locale }.joined(separator: " ")
  }

  private mutating func chain(for locale: String?) -> [Int] {
    // What is longer could be made up at will, and takes no place in the memory.
    guard let locale, locale.utf8.count <= LocaleName.longest else { return localization.places(for: locale) }
    if let chain = chains[Name(locale)] { return chain }
    let chain = localization.places(for: locale)
    if chains.count >= Self.remembered { chains.removeAll(keepingCapacity: true) }
    chains[Name(locale)] = chain
    return chain
  }
}

import Notifications

/// Finds the localised texts of an application, and caches the tables of each locale.
///
/// A value with a cache: each lane has its own.
public struct Localizer: Sendable {
  /// The most cached locales. One more empties the cache.
  static var remembered: Int { 256 }

  /// The texts.
  public let localization: Localization
  private(set) var chains: [Name: [Int]] = [:]

  /// Uses these texts.
  public init(_ localization: Localization) { self.localization = localization }

  /// The text of a key in the device's locale; nil if no table has the key.
  ///
  /// It searches the tables of the locale from the nearest on, then that of the default locale, then Base.
  ///
  /// - Parameter locale: in BCP 47 or with underscores. An invalid one counts as the default locale.
  public mutating func format(_ key: String, locale: String?) -> TextFormat? {
    for place in chain(for: locale) {
      if let entry = localization.tables[place].strings.entries[Name(key)] { return TextFormat(entry.value) }
    }
    return nil
  }

  /// The number of cached locales, which changes with each new one.
  var remembersLocales: Int { chains.count }

  /// The names of the tables for a locale, the nearest first, as one text.
  mutating func tables(for locale: String?) -> String {
    chain(for: locale).map { localization.tables[$0].locale }.joined(separator: " ")
  }

  private mutating func chain(for locale: String?) -> [Int] {
    // A longer name may be invented, and is not cached.
    guard let locale, locale.utf8.count <= LocaleName.longest else { return localization.places(for: locale) }
    if let chain = chains[Name(locale)] { return chain }
    let chain = localization.places(for: locale)
    if chains.count >= Self.remembered { chains.removeAll(keepingCapacity: true) }
    chains[Name(locale)] = chain
    return chain
  }
}

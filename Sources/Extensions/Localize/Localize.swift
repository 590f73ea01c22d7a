import JSON
import Notifications
import Synchronization

/// The built-in extension `localize`: replaces `title-loc-key`, `subtitle-loc-key` and `loc-key` by texts with their arguments. The texts
/// come from the application's `.strings` files in the device's locale.
///
/// A key that no file has stays unchanged, since the application on the device may have it. It fails if a text needs a missing argument.
final class Localize: ImmediateExtension {
  private let localization: Localization
  /// The places of tables for the locales that devices have.
  private let remembered = Mutex<[Name: [Int]]>([:])
  private static let rememberedLocales = 4_096

  /// Uses these texts.
  init(_ localization: Localization) { self.localization = localization }

  /// See ``ImmediateExtension/change(_:of:)``.
  func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure? {
    guard var alert = content.payload["aps"]?["alert"] else { return nil }
    do throws(FieldError) {
      if try localize(&alert, locale: request.locale, limit: Self.textBytes) {
        content.payload.withMember("aps") { $0?.set("alert", alert) }
      }
      return nil
    } catch {
      return ExtensionFailure("\(error)")
    }
  }

  /// A text is not longer than a payload may be.
  private static let textBytes = 16_384

  /// The text of a key in the device's locale; nil if no table has the key.
  ///
  /// It searches the tables of the locale from the nearest on, then that of the default locale, then Base.
  ///
  /// - Parameter locale: in BCP 47 or with underscores. An invalid one counts as the default locale.
  func format(_ key: String, locale: String?) -> TextFormat? {
    places(for: locale).lazy.compactMap { [localization] in localization.tables[$0].strings[Name(key)] }.first.map(TextFormat.init)
  }

  private func places(for locale: String?) -> [Int] {
    // A longer name may be invented, and is not remembered.
    guard let locale, locale.utf8.count <= LocaleName.longest else { return localization.places(for: locale) }
    if let places = remembered.withLock({ $0[Name(locale)] }) { return places }
    let places = localization.places(for: locale)
    remembered.withLock { remembered in
      if remembered.count >= Self.rememberedLocales { remembered.removeAll(keepingCapacity: true) }
      remembered[Name(locale)] = places
    }
    return places
  }

  /// True: texts depend on the locale.
  var usesLocale: Bool { true }

  /// The tables that are searched, the nearest first.
  func variant(_ locale: String?) -> String {
    places(for: locale).map { localization.tables[$0].locale }.joined(separator: " ")
  }
}

// MARK: Settings

extension Localize {
  /// Reads the members `strings`, the folder with `LOCALE.lproj/Localizable.strings`, and `default`, the locale for other devices.
  convenience init(_ settings: inout SettingsObject) throws(FieldError) {
    let folder = settings.path(try settings.requiredText("strings", longest: 4096))
    let standard = try settings.text("default", longest: Registration.wordBytes)
    do throws(FieldError) {
      self.init(try Localization(folder: folder, defaultLocale: standard))
    } catch {
      throw settings.wrong("strings", "\(error)")
    }
  }
}

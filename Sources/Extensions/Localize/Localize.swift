import JSON
import Notifications
import Synchronization

/// The built-in extension `localize`: replaces `title-loc-key`, `subtitle-loc-key` and `loc-key` by texts with their arguments. The texts
/// come from the application's `.strings` files in the device's locale.
///
/// A key that no file has stays unchanged, since the application on the device may have it. It fails if a text needs a missing argument.
public final class Localize: ImmediateExtension {
  /// Lanes share the cached locales. Each works with a copy, so that no lane delays another.
  private let remembered: Mutex<Localizer>

  /// Uses these texts.
  public init(_ localization: Localization) { remembered = Mutex(Localizer(localization)) }

  /// Works with a copy of the cache, and stores it if it has grown.
  private func withLocalizer<Result, Failure>(_ body: (inout Localizer) throws(Failure) -> Result) throws(Failure) -> Result {
    var localizer = remembered.withLock { $0 }
    let known = localizer.remembersLocales
    defer { if localizer.remembersLocales != known { remembered.withLock { $0 = localizer } } }
    return try body(&localizer)
  }

  /// See ``ImmediateExtension/change(_:of:)``.
  public func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure? {
    guard var alert = content.payload["aps"]?["alert"] else { return nil }
    do throws(FieldError) {
      let isChanged = try withLocalizer { localizer throws(FieldError) in
        try localizer.localize(&alert, locale: request.locale, limit: Self.textBytes)
      }
      if isChanged { content.payload.withMember("aps") { $0?.set("alert", alert) } }
      return nil
    } catch {
      return ExtensionFailure("\(error)")
    }
  }

  /// A text is not longer than a payload may be.
  private static let textBytes = 16_384

  /// True: texts depend on the locale.
  public var usesLocale: Bool { true }

  /// The tables that are searched, the nearest first.
  public func variant(_ locale: String?) -> String { withLocalizer { $0.tables(for: locale) } }

  /// Texts that would take no argument, or would be used as they are: the first of them.
  public var remarks: [String] { withLocalizer { $0.localization.formatProblems().map { "\($0)" } } }
}

// MARK: Settings

extension Localize {
  /// Reads the members `strings`, the folder with `LOCALE.lproj/Localizable.strings`, and `default`, the locale for other devices.
  convenience init(_ settings: inout SettingsObject) throws(FieldError) {
    let folder = settings.path(try settings.requiredText("strings", longest: 4096))
    let standard = try settings.text("default", longest: Registration.wordBytes)
    do throws(LocalizationError) {
      self.init(try Localization(folder: folder, defaultLocale: standard))
    } catch {
      throw settings.wrong("strings", "\(error)")
    }
  }
}

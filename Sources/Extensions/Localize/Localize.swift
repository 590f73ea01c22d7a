import JSON
import Notifications
import Synchronization

/// The built-in extension `localize`: fills in the texts of `title-loc-key`, `subtitle-loc-key` and `loc-key` with their arguments, in the
/// device's locale, from the application's `.strings` files.
///
/// A key that no file has stays as it is: the application on the device may have it. It fails where a text wants an argument that is not
/// there.
public final class Localize: ImmediateExtension {
  /// Lanes share what is remembered of locales: each takes a copy out and works with that, so that none holds up another.
  private let remembered: Mutex<Localizer>

  /// Looks texts up in these.
  public init(_ localization: Localization) { remembered = Mutex(Localizer(localization)) }

  /// Works with what is remembered, and puts it back where that has become more.
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

  /// A text is no longer than a payload may be.
  private static let textBytes = 16_384

  /// It does.
  public var usesLocale: Bool { true }

  /// The tables that are asked, nearest first.
  public func variant(_ locale: String?) -> String { withLocalizer { $0.tables(for: locale) } }
}

// MARK: Settings

extension Localize {
  /// Of the members `strings`, the folder that has `LOCALE.lproj/Localizable.strings`, and `default`, the locale for a device that has
  /// none of these.
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

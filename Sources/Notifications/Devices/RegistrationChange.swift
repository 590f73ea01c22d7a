/// A change of a device's registration during a session.
public enum RegistrationChange: Sendable, Equatable {
  /// A change of the person's settings, the locale or the time zone.
  case settings(SettingsFrame)
  /// A change of the application's categories.
  case categories(CategoriesFrame)

  /// The device's own id for the request; `nil` if it wants no answer.
  public var request: String? {
    switch self {
    case .settings(let frame): frame.request
    case .categories(let frame): frame.request
    }
  }

  /// Whether it changes the device's registration.
  public var changesRegistration: Bool {
    switch self {
    case .settings(let frame): frame.changesRegistration
    case .categories: true
    }
  }

  /// The person's settings for all of their devices; `nil` if unchanged.
  public var person: PersonSettings? { if case .settings(let frame) = self { frame.person } else { nil } }

  /// Makes the change.
  public func apply(to registration: inout Registration) {
    switch self {
    case .settings(let frame):
      if let authorization = frame.authorization { registration.authorization = authorization }
      if let locale = frame.locale { registration.locale = locale }
      if let timeZone = frame.timeZone { registration.timeZone = timeZone }
    case .categories(let frame): registration.categories = frame.categories
    }
  }
}

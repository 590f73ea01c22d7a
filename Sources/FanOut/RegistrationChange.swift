import Notifications

/// What a device changes of its registration after its hello.
enum RegistrationChange: Sendable {
  case settings(SettingsFrame)
  case categories(CategoriesFrame)

  /// The device's own id for it; nil: it wants no answer.
  var request: String? {
    switch self {
    case .settings(let frame): frame.request
    case .categories(let frame): frame.request
    }
  }

  func apply(to registration: inout Registration) {
    switch self {
    case .settings(let frame):
      if let authorization = frame.authorization { registration.authorization = authorization }
      if let locale = frame.locale { registration.locale = locale }
      if let timeZone = frame.timeZone { registration.timeZone = timeZone }
    case .categories(let frame): registration.categories = frame.categories
    }
  }
}

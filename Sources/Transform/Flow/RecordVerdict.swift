import Notifications

/// What became of a record, as the metrics name it. Each record that a lane takes ends in exactly one, however often it is done again.
enum RecordVerdict: Hashable {
  /// Of a request. One for a person is `addressed`, and was judged for each of the devices.
  case request(Outcome)
  /// Of a registration.
  case registration(Registration)
  /// Its partition was revoked before it was done: the next owner takes it.
  case revoked

  enum Registration: Int, CaseIterable {
    /// The registry has it now.
    case applied
    /// The registry has it, or a later one.
    case superseded
    /// It is no registration, and was passed over.
    case unreadable
    /// It could not be processed, and is in the dead letters.
    case poison
  }

  /// Whether it is in the dead letters, as it could not be processed.
  var isPoison: Bool { self == .request(.deadLettered) || self == .registration(.poison) }

  /// Its name in the metric of requests or of registrations; nil where it is none of these.
  func label(isRegistration: Bool) -> String? {
    switch self {
    case .request(let outcome): isRegistration ? nil : outcome.requestLabel
    case .registration(let verdict): isRegistration ? "\(verdict)" : nil
    case .revoked: "revoked"
    }
  }

  /// Its place among all.
  var number: Int {
    switch self {
    case .request(let outcome): outcome.rawValue
    case .registration(let verdict): Outcome.allCases.count + verdict.rawValue
    case .revoked: Outcome.allCases.count + Registration.allCases.count
    }
  }

  static let all = Outcome.allCases.map { request($0) } + Registration.allCases.map { registration($0) } + [revoked]
}

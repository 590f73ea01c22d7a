import Notifications

/// How a record ended, for the metrics. Each record that a lane takes has exactly one, however often it is retried.
enum RecordVerdict: Hashable {
  /// The end of a request. A request for a person is `addressed`, and was judged for each device.
  case request(Outcome)
  /// The end of a registration.
  case registration(Registration)
  /// The partition was revoked before the record ended: the next owner takes it.
  case revoked

  enum Registration: Int, CaseIterable {
    /// The registry has it now.
    case applied
    /// The registry already had it, or a later one.
    case superseded
    /// It is no registration, and was skipped.
    case unreadable
    /// It could not be processed, and was dead-lettered.
    case poison
  }

  /// Whether the record was dead-lettered because it could not be processed.
  var isPoison: Bool { self == .request(.deadLettered) || self == .registration(.poison) }

  /// Its label in the metric of requests or of registrations; nil if it does not belong there.
  func label(isRegistration: Bool) -> String? {
    switch self {
    case .request(let outcome): isRegistration ? nil : outcome.requestLabel
    case .registration(let verdict): isRegistration ? "\(verdict)" : nil
    case .revoked: "revoked"
    }
  }

  /// Its index in `all`.
  var number: Int {
    switch self {
    case .request(let outcome): outcome.rawValue
    case .registration(let verdict): Outcome.allCases.count + verdict.rawValue
    case .revoked: Outcome.allCases.count + Registration.allCases.count
    }
  }

  static let all = Outcome.allCases.map { request($0) } + Registration.allCases.map { registration($0) } + [revoked]
}

package import JSON
import Kafka
package import Notifications

/// Selects the requests to replay: those that meet all given conditions.
package struct ReplayFilter: Sendable, Equatable {
  /// A part of a request, by its name in the file of a replay.
  package enum Field: String, Sendable, CaseIterable {
    /// The application.
    case application
    /// `device:…` or `user:…`.
    case target
    /// The apns-id, given or derived; in lower case.
    case id
    /// The collapse id.
    case collapseID = "collapseId"
  }

  private var fields: [Field: Name] = [:]
  /// Values in the payload.
  package var values: [PayloadValue] = []

  /// A value at a place of the payload.
  package struct PayloadValue: Sendable, Equatable {
    /// The place (RFC 6901).
    package var place: JSONPointer
    /// The value.
    package var value: JSONValue

    /// A value at a place.
    package init(_ place: JSONPointer, _ value: JSONValue) { (self.place, self.value) = (place, value) }

    /// Compares both.
    package static func == (one: PayloadValue, other: PayloadValue) -> Bool {
      one.place.tokens == other.place.tokens && one.value == other.value
    }
  }

  /// Makes a filter that selects all requests.
  package init() {}

  /// The wanted value of a field; nil for any.
  package subscript(field: Field) -> Name? {
    get { fields[field] }
    set { fields[field] = newValue }
  }

  /// Whether it selects a request.
  func matches(_ record: RecordView, _ rules: RequestRules) -> Bool {
    if fields.isEmpty, values.isEmpty { return true }
    if !values.isEmpty {
      guard let value = record.value, let payload = try? JSONValue(parsing: value), values.allSatisfy({ payload[$0.place] == $0.value })
      else {
        return false
      }
    }
    return rules.withRecord(record) { request in
      let envelope = RequestEnvelope(request)
      return fields.allSatisfy { field, name in
        switch field {
        case .application: name.equals(envelope.application)
        case .target: name.equals(envelope.target)
        case .id: name == Name(envelope.id.description)
        case .collapseID: name.equals(envelope.collapseID)
        }
      }
    }
  }
}

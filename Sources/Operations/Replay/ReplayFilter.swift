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
    /// The push type, which the payload implies if no header gives it.
    case pushType

    /// Its name for a person.
    var words: String {
      switch self {
      case .application, .target: rawValue
      case .id: "apns-id"
      case .collapseID: "collapse id"
      case .pushType: "push type"
      }
    }
  }

  /// The value of each wanted field.
  package var fields: [Field: Name] = [:]
  /// Values in the payload.
  package var values: [PayloadValue] = []

  /// A value at a place of the payload.
  package struct PayloadValue: Sendable, Equatable {
    /// The place (RFC 6901).
    package var pointer: JSONPointer
    /// The value.
    package var value: JSONValue

    /// A value at a place.
    package init(_ pointer: JSONPointer, _ value: JSONValue) { (self.pointer, self.value) = (pointer, value) }

    /// Reads `POINTER=VALUE`. The value is JSON, or else text.
    package init?(_ text: String) {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let pointer = JSONPointer(String(parts[0])) else { return nil }
      self.init(pointer, (try? JSONValue(parsing: String(parts[1]))) ?? .string(String(parts[1])))
    }
  }

  /// Makes a filter that selects all requests.
  package init() {}

  /// Whether it selects all requests.
  var isEmpty: Bool { self == ReplayFilter() }

  /// The wanted fields in their order.
  var wanted: [(Field, Name)] { Field.allCases.compactMap { field in fields[field].map { (field, $0) } } }

  /// Whether it selects a request. An invalid one has only its header's push type, and no payload.
  func matches(_ record: RecordView, _ rules: RequestRules) -> Bool {
    if isEmpty { return true }
    return rules.withReading(of: record) { reading in
      switch reading {
      case .accepted(let view):
        view.pushType.name.withUTF8Buffer {
          matches(view.envelope, view.application, pushType: UnsafeRawBufferPointer($0), view.payload)
        }
      case .rejected(_, let envelope):
        matches(envelope, envelope.application, pushType: record.header(.pushType), record.value ?? .nothing)
      }
    }
  }

  private func matches(
    _ envelope: RequestEnvelope, _ application: UnsafeRawBufferPointer, pushType: UnsafeRawBufferPointer?, _ payload: UnsafeRawBufferPointer
  ) -> Bool {
    for (field, name) in fields {
      let isThere =
        switch field {
        case .application: application.elementsEqual(name.utf8)
        case .target: envelope.target.elementsEqual(name.utf8)
        case .id: name == Name(envelope.id.description)
        case .collapseID: envelope.collapseID.elementsEqual(name.utf8)
        case .pushType: pushType?.elementsEqual(name.utf8) == true
        }
      guard isThere else { return false }
    }
    if values.isEmpty { return true }
    guard let payload = try? JSONValue(parsing: payload) else { return false }
    return values.allSatisfy { payload[$0.pointer] == $0.value }
  }

  /// The conditions as text, also to compare with those of another run; empty if it selects all.
  package var conditions: [String] {
    wanted.map { "\($0.words) \($1.text)" } + values.map { "\($0.pointer)=\($0.value.text)" }
  }
}

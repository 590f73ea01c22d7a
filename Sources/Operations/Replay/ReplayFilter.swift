public import JSON
import Kafka
public import Notifications

/// Selects the requests to replay: those that meet all given conditions.
public struct ReplayFilter: Sendable, Equatable {
  /// The application.
  public var application: Name?
  /// `device:…` or `user:…`.
  public var target: Name?
  /// The apns-id, given or derived.
  public var id: NotificationID?
  /// The collapse id.
  public var collapseID: Name?
  /// The push type, which the payload implies if no header gives it.
  public var pushType: String?
  /// Values in the payload.
  public var values: [PayloadValue] = []

  /// A value at a place of the payload.
  public struct PayloadValue: Sendable, Equatable {
    /// The place (RFC 6901).
    public var pointer: JSONPointer
    /// The value.
    public var value: JSONValue

    /// A value at a place.
    public init(_ pointer: JSONPointer, _ value: JSONValue) { (self.pointer, self.value) = (pointer, value) }

    /// Reads `POINTER=VALUE`. The value is JSON, or else text.
    public init?(_ text: String) {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let pointer = JSONPointer(String(parts[0])) else { return nil }
      self.init(pointer, (try? JSONValue(parsing: String(parts[1]))) ?? .string(String(parts[1])))
    }
  }

  /// Makes a filter that selects all requests.
  public init() {}

  /// Whether it selects all requests.
  var isEmpty: Bool { self == ReplayFilter() }

  /// Whether it selects a request. An invalid one has only its header's push type, and no payload.
  func matches(_ record: RecordView, _ rules: RequestRules) -> Bool {
    if isEmpty { return true }
    return rules.withReading(of: record) { reading in
      switch reading {
      case .accepted(let view):
        return matches(view.envelope)
          && application.map { view.application.elementsEqual($0.utf8) } ?? true
          && pushType.map { view.pushType.name.description == $0 } ?? true && matches(payload: view.payload)
      case .rejected(_, let envelope):
        return matches(envelope)
          && application.map { envelope.application.elementsEqual($0.utf8) } ?? true
          && pushType.map { record.header(.pushType)?.elementsEqual($0.utf8) == true } ?? true
          && matches(payload: record.value ?? .nothing)
      }
    }
  }

  private func matches(_ envelope: RequestEnvelope) -> Bool {
    id.map { envelope.id == $0 } ?? true && target.map { envelope.target.elementsEqual($0.utf8) } ?? true
      && collapseID.map { envelope.collapseID.elementsEqual($0.utf8) } ?? true
  }

  private func matches(payload: UnsafeRawBufferPointer) -> Bool {
    if values.isEmpty { return true }
    guard let payload = try? JSONValue(parsing: payload) else { return false }
    return values.allSatisfy { payload[$0.pointer] == $0.value }
  }
}

extension ReplayFilter {
  /// The conditions as text, also to compare with those of another run; empty if it selects all.
  public var conditions: [String] {
    var conditions: [String] = []
    func add(_ name: String, _ value: String?) { if let value { conditions.append("\(name) \(value)") } }
    add("application", application?.text)
    add("target", target?.text)
    add("apns-id", id?.description)
    add("collapse id", collapseID?.text)
    add("push type", pushType)
    for value in values { conditions.append("\(value.pointer)=\(value.value.text)") }
    return conditions
  }
}

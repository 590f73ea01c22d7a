package import JSON
package import Notifications

/// A violation with the names that `carillon explain` takes.
package struct LoadFinding: Sendable, Hashable {
  /// What is broken.
  package let kind: LoadViolation.Kind
  /// The request.
  package let id: NotificationID
  /// The device.
  package let device: DeviceToken
  /// The target of the request.
  package let target: Name
  /// When it was found, in milliseconds after the start.
  package let atMilliseconds: Int64
}

extension LoadFinding {
  /// Names a violation.
  package init(_ violation: LoadViolation, _ names: LoadNames, _ share: LoadShare) {
    self.init(
      kind: violation.kind, id: names.id(violation.request), device: names.token(violation.device),
      target: share.target(ofRequest: violation.request, run: names.run), atMilliseconds: max(0, violation.at) / 1_000_000)
  }

  /// The finding as one JSON object.
  package var json: JSONValue {
    .object([
      "violation": kind.rawValue, "id": id.description, "device": device.text, "target": target,
      "atSeconds": Double(atMilliseconds) / 1000,
    ])
  }

  /// Reads such an object; nil if it is none.
  init?(_ json: JSONValue) {
    guard let kind = json["violation"]?.stringValue.flatMap({ LoadViolation.Kind(rawValue: $0) }),
      let id = json["id"]?.stringValue.flatMap({ NotificationID($0) }),
      let device = json["device"]?.stringValue.flatMap({ DeviceToken($0) }),
      let target = json["target"]?.stringValue, target.utf8.count <= Self.maximumTarget,
      let seconds = json["atSeconds"]?.doubleValue, (0...1e9).contains(seconds)
    else { return nil }
    self.init(kind: kind, id: id, device: device, target: Name(target), atMilliseconds: Int64((seconds * 1000).rounded()))
  }

  /// The most bytes of a target that is read.
  private static let maximumTarget = 128
}

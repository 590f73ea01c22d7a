public import Notifications

/// A violation with the names that `carillon explain` takes.
public struct LoadFinding: Sendable, Hashable {
  /// What is broken.
  public let kind: LoadViolation.Kind
  /// The request.
  public let id: NotificationID
  /// The device.
  public let device: DeviceToken
  /// The target of the request.
  public let target: Name
  /// When it was found, in milliseconds after the start.
  public let atMilliseconds: Int64

  /// Names a violation.
  public init(_ violation: LoadViolation, _ names: LoadNames, _ plan: LoadPlan) {
    self.init(
      violation.kind, names.id(violation.request), names.token(violation.device), names.target(plan.request(violation.request).target),
      atMilliseconds: max(0, violation.at) / 1_000_000)
  }

  /// Makes it from its parts.
  init(_ kind: LoadViolation.Kind, _ id: NotificationID, _ device: DeviceToken, _ target: Name, atMilliseconds: Int64) {
    (self.kind, self.id, self.device, self.target, self.atMilliseconds) = (kind, id, device, target, atMilliseconds)
  }
}

import Extensions
import JSON
import Notifications

/// What a device shows of the payloads that it is given: as its own service extensions leave them. What it keeps and acknowledges is the
/// payload as it came.
struct ContentExtensions: Sendable {
  /// Nil: payloads are shown as they came.
  let chain: ExtensionChain?
  /// The device's.
  let locale: String?
  private static let rules = ContentRules()

  /// What a notification says; as it came where it is not mutable, and where its extensions fail.
  func content(of frame: NotifyFrame) -> NotificationContent {
    guard let chain, frame.pushType == PushType.alert.name.description, Self.isMutable(frame.payload),
      let payload = frame.payload.withUnsafeBytes({ try? JSONValue(parsing: $0) }),
      let id = NotificationID(frame.id)
    else { return NotificationContent(payload: frame.payload) }
    let request = ExtensionRequest(
      id: id, identifier: frame.identifier, application: chain.application, expiration: frame.expiration, locale: locale,
      traceparent: frame.traceparent)
    var run = ExtensionRun(MutableContent(payload: payload))
    run.pass(chain.immediate, of: request, Self.rules)
    return NotificationContent(run.content.payload)
  }

  private static func isMutable(_ payload: [UInt8]) -> Bool {
    payload.withUnsafeBytes { (try? PayloadFacts(checking: $0))?.flags.isMutable ?? false }
  }
}

import JSON
import Notifications

/// The members of a server's frame that a device of a load run needs. Reading it makes no copies, since thousands come in a second.
struct LoadFrame {
  let type: ServerFrameType
  /// Of `notify` and `remove`.
  private(set) var delivery: UInt64?
  /// Of `notify`.
  private(set) var id: NotificationID?
  /// Of `notify`, where it is an apns-id: that of the request that has scheduled the notification.
  private(set) var identifier: NotificationID?
  /// Of `notify`.
  private(set) var revision: Revision?
  /// Of `notify`: seconds since 1970.
  private(set) var expiration: Int64 = 0
  /// Of `welcome`: the cluster's clock, in milliseconds since 1970.
  private(set) var now: Int64?
  /// Of `accepted`: whether it answers a response.
  private(set) var isOfResponse = false
  /// Of `goaway`.
  private(set) var reconnectAfterMilliseconds: Int?

  /// Reads a frame; nil for a type that is not known, or a text that is not a frame.
  init?(_ text: UnsafeRawBufferPointer) {
    var scanner = JSONScanner(text)
    var type: ServerFrameType?
    do throws(JSONError) {
      try scanner.openObject()
      while let key = try scanner.nextKey() {
        let value = try scanner.skip()
        if scanner.matches(key, "type") {
          type = scanner.unescapedBytes(value).flatMap { ServerFrameType(rawValue: String(decoding: $0, as: UTF8.self)) }
        } else if scanner.matches(key, "delivery") {
          delivery = scanner.integer(value).flatMap { UInt64(exactly: $0) }
        } else if scanner.matches(key, "id") {
          id = scanner.unescapedBytes(value).flatMap { NotificationID(text: $0) }
        } else if scanner.matches(key, "identifier") {
          identifier = scanner.unescapedBytes(value).flatMap { NotificationID(text: $0) }
        } else if scanner.matches(key, "revision") {
          revision = scanner.unescapedBytes(value).flatMap { Revision(text: $0) }
        } else if scanner.matches(key, "expiration") {
          expiration = scanner.integer(value) ?? 0
        } else if scanner.matches(key, "now") {
          now = scanner.integer(value).map { Timestamp.bounded($0) }
        } else if scanner.matches(key, "response") {
          isOfResponse = true
        } else if scanner.matches(key, "reconnectAfterMs") {
          reconnectAfterMilliseconds = scanner.integer(value).flatMap { Int(exactly: $0) }
        }
      }
      try scanner.finish()
    } catch { return nil }
    guard let type else { return nil }
    self.type = type
  }
}

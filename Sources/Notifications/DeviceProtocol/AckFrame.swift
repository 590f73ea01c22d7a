public import JSON

/// Why a device dropped a notification.
public enum DropReason: String, Sendable, CaseIterable {
  /// The device has had the id before.
  case known
  /// The device has a newer revision of the identifier.
  case stale
  /// The device has carried out a newer removal of all.
  case canceled
  /// The notification had expired.
  case expired
  /// The device or its program does not show it.
  case filtered
}

/// The frame `ack`, borrowed from its bytes: what a device has stored, shown or dropped.
///
/// The frame was checked when it was read. Reading its numbers again allocates no array.
public struct AckFrame {
  private let scanner: JSONScanner
  private let deliveries: JSONSpan?
  private let dropped: JSONSpan?
  private let updated: JSONSpan?

  init(_ scanner: JSONScanner, deliveries: JSONSpan?, dropped: JSONSpan?, updated: JSONSpan?) throws(DeviceFrameError) {
    (self.scanner, self.deliveries, self.dropped, self.updated) = (scanner, deliveries, dropped, updated)
    do {
      try walkNumbers(deliveries, "deliveries") { _ in }
      try walkNumbers(updated, "updated") { _ in }
      try walkDropped { _, _ in }
    } catch let error as DeviceFrameError {
      throw error
    } catch {
      throw Self.wrong("", "The text is one JSON object by RFC 8259.")
    }
  }

  /// Calls `body` with the number of each stored or shown delivery, updated ones included.
  public func forEachDelivery(_ body: (UInt64) -> Void) { try? walkNumbers(deliveries, "deliveries", body) }

  /// Calls `body` with the number of each delivery that replaced a notification on screen.
  public func forEachUpdated(_ body: (UInt64) -> Void) { try? walkNumbers(updated, "updated", body) }

  /// The numbers of the deliveries that replaced a notification on screen. They are read with each call.
  public var updatedDeliveries: Set<UInt64> {
    guard updated != nil else { return [] }
    var numbers: Set<UInt64> = []
    forEachUpdated { numbers.insert($0) }
    return numbers
  }

  /// Calls `body` with the number of each dropped delivery, and the reason.
  public func forEachDropped(_ body: (UInt64, DropReason) -> Void) { try? walkDropped(body) }

  private func walkNumbers(_ span: JSONSpan?, _ field: String, _ body: (UInt64) -> Void) throws {
    guard let span, span.kind != .null else { return }
    guard span.kind == .array else { throw Self.wrong(field, "This is an array of delivery numbers.") }
    var elements = scanner.scanner(of: span)
    try elements.openArray()
    while try elements.nextElement() {
      guard let number = Self.number(try elements.skip(), elements) else {
        throw Self.wrong(field, "This is an array of delivery numbers.")
      }
      body(number)
    }
  }

  private func walkDropped(_ body: (UInt64, DropReason) -> Void) throws {
    guard let span = dropped, span.kind != .null else { return }
    let rule = "This is an array of objects with delivery, a number, and reason: known, stale, canceled, expired or filtered."
    guard span.kind == .array else { throw Self.wrong("dropped", rule) }
    var elements = scanner.scanner(of: span)
    try elements.openArray()
    while try elements.nextElement() {
      guard elements.peekKind() == .object else { throw Self.wrong("dropped", rule) }
      var delivery: UInt64?
      var reason: DropReason?
      try elements.openObject()
      while let (key, value) = try elements.nextMember() {
        if elements.matches(key, "delivery") {
          delivery = Self.number(value, elements)
        } else if elements.matches(key, "reason") {
          reason = DropReason.allCases.first { elements.matches(value, text: $0.rawValue) }
        }
      }
      guard let delivery, let reason else { throw Self.wrong("dropped", rule) }
      body(delivery, reason)
    }
  }

  private static func number(_ value: JSONSpan, _ scanner: JSONScanner) -> UInt64? {
    scanner.integer(value).flatMap { UInt64(exactly: $0) }.flatMap { $0 <= FrameLimits.largestDelivery ? $0 : nil }
  }

  private static func wrong(_ field: String, _ rule: String) -> DeviceFrameError {
    DeviceFrameError(frame: DeviceFrameType.ack.rawValue, field: field, rule: rule)
  }

  /// Appends the frame as a device sends it.
  public static func write(
    deliveries: [UInt64], updated: [UInt64] = [], dropped: [(delivery: UInt64, reason: DropReason)] = [], to json: inout JSONWriter
  ) {
    json.openFrame("ack")
    json.member("deliveries", deliveries)
    json.member("updated", updated.isEmpty ? nil : updated)
    if !dropped.isEmpty {
      json.key("dropped")
      json.openArray()
      for (delivery, reason) in dropped {
        json.openObject()
        json.member("delivery", delivery)
        json.member("reason", reason.rawValue)
        json.closeObject()
      }
      json.closeArray()
    }
    json.closeObject()
  }
}

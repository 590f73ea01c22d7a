internal import Glibc

/// The known headers of a request record.
public enum RequestHeader: UInt8, Sendable, CaseIterable {
  /// `target`: the device or the person.
  case target
  /// `apns-id`: the idempotency key.
  case id
  /// `apns-topic`: the application.
  case topic
  /// `apns-collapse-id`: the identifier.
  case collapseID
  /// `apns-expiration`: the last time to show it, in seconds since 1970.
  case expiration
  /// `apns-priority`: 10, 5 or 1.
  case priority
  /// `apns-push-type`: the kind of notification.
  case pushType
  /// `apns-channel-id`: the channel of a broadcast.
  case channelID
  /// `trigger`: when or where it is due, as JSON.
  case trigger
  /// `operation`: notify, cancel or remove.
  case operation
  /// `traceparent`: the W3C trace context.
  case traceparent
  /// `carillon-origin`: the first position of a record that was published again.
  case origin
  /// `carillon-firing`: the occurrence of a schedule that fires.
  case firing
  /// `when-opened`: what opening it on one device does at the person's other devices.
  case whenOpened

  /// The header's name in the record.
  public var name: StaticString {
    switch self {
    case .target: "target"
    case .id: "apns-id"
    case .topic: "apns-topic"
    case .collapseID: "apns-collapse-id"
    case .expiration: "apns-expiration"
    case .priority: "apns-priority"
    case .pushType: "apns-push-type"
    case .channelID: "apns-channel-id"
    case .trigger: "trigger"
    case .operation: "operation"
    case .traceparent: "traceparent"
    case .origin: "carillon-origin"
    case .firing: "carillon-firing"
    case .whenOpened: "when-opened"
    }
  }

  /// Finds the header of a name. As in HTTP, the case of ASCII letters does not matter.
  @inline(__always)
  public static func named(_ name: UnsafeRawBufferPointer) -> RequestHeader? {
    let candidate: RequestHeader
    switch name.count {
    case 6: candidate = .target
    // Sets the bit of lower case. The complete names are compared below.
    case 7: candidate = name[0] | 0x20 == UInt8(ascii: "a") ? .id : .trigger
    case 9: candidate = .operation
    case 10: candidate = .topic
    case 11: candidate = name[0] | 0x20 == UInt8(ascii: "t") ? .traceparent : .whenOpened
    case 13: candidate = .priority
    case 14: candidate = .pushType
    case 15:
      let (first, sixth) = (name[0] | 0x20, name[5] | 0x20)
      // The tenth letter distinguishes `carillon-origin` from `carillon-firing`.
      let isFiring = name[9] | 0x20 == UInt8(ascii: "f")
      candidate = first == UInt8(ascii: "c") ? isFiring ? .firing : .origin : sixth == UInt8(ascii: "e") ? .expiration : .channelID
    case 16: candidate = .collapseID
    default: return nil
    }
    return name.equals(candidate.name) || name.equalsIgnoringCase(candidate.name) ? candidate : nil
  }

  /// Finds the header of a zero-terminated name.
  public static func named(_ name: UnsafePointer<CChar>) -> RequestHeader? {
    named(UnsafeRawBufferPointer(start: name, count: strlen(name)))
  }

  /// Finds the header of a name.
  public static func named(_ name: Name) -> RequestHeader? { name.withBytes { named($0) } }
}

/// The known headers of one request record, borrowed from it.
///
/// The pointers are valid as long as the record is held. A header with a null value counts as absent. An empty value counts, and must keep
/// the header's rule. Unknown headers are ignored, and may occur several times.
public struct RequestHeaders {
  /// The values in the order of the headers.
  private var values = InlineArray<14, UnsafeRawBufferPointer?>(repeating: nil)
  /// The first header that occurs twice, except for `traceparent`.
  public private(set) var duplicate: RequestHeader?
  /// The first unknown header whose name begins with `apns-`.
  public private(set) var unknown: UnknownField?
  private var hasSeveralTraces = false

  /// Creates an empty set of headers.
  public init() {}

  /// The value of a header; nil if the record has none. A `traceparent` that occurs more than once is absent.
  public subscript(header: RequestHeader) -> UnsafeRawBufferPointer? {
    get { values[Int(header.rawValue)] }
    set { values[Int(header.rawValue)] = newValue }
  }

  /// Takes one header of the record. The first value of a repeated header stays, and `duplicate` names it.
  public mutating func take(name: UnsafePointer<CChar>, value: UnsafeRawBufferPointer) {
    take(name: UnsafeRawBufferPointer(start: name, count: strlen(name)), value: value)
  }

  /// Takes one header of the record. Its name has no terminating zero.
  public mutating func take(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    guard value.baseAddress != nil else { return }
    guard let header = RequestHeader.named(name) else {
      if unknown == nil { unknown = UnknownField(header: name) }
      return
    }
    if header == .traceparent {
      // Agents on the way add their own. W3C Trace Context then says to continue without one, so the request is still valid.
      hasSeveralTraces = hasSeveralTraces || self[.traceparent] != nil
      self[.traceparent] = hasSeveralTraces ? nil : value
    } else if self[header] == nil {
      self[header] = value
    } else if duplicate == nil {
      duplicate = header
    }
  }
}

/// The headers of an event record: CloudEvents 1.0, Kafka protocol binding, binary mode.
public enum EventHeader: String, Sendable, CaseIterable {
  /// `1.0`
  case specversion = "ce_specversion"
  /// 32 hexadecimal digits. Repeated events of the same happening have the same id.
  case id = "ce_id"
  /// `carillon.<type>.v1`
  case type = "ce_type"
  /// The cluster, for example `/carillon/production`.
  case source = "ce_source"
  /// The apns-id; for an event about a device its token.
  case subject = "ce_subject"
  /// The time of the event, by RFC 3339 in UTC with milliseconds.
  case time = "ce_time"
  /// The W3C trace context, if the request has one.
  case traceparent = "traceparent"
  /// `application/json`
  case contentType = "content-type"

  /// The header's name, zero-terminated for librdkafka.
  public var name: StaticString {
    switch self {
    case .specversion: "ce_specversion"
    case .id: "ce_id"
    case .type: "ce_type"
    case .source: "ce_source"
    case .subject: "ce_subject"
    case .time: "ce_time"
    case .traceparent: "traceparent"
    case .contentType: "content-type"
    }
  }
}

import JSON
import Notifications

/// Makes lines of events, for a person or for a program.
struct EventPrinter: ~Copyable {
  private var json = JSONWriter(capacity: 4096)
  /// What has a column, or is of no interest to a person.
  private static let columns: Set<String> = ["apnsId", "identifier", "device", "target", "application", "source", "revision", "worker"]

  /// How much of an object or an array a person wants to see, in characters.
  private static let longestDetail = 60

  /// One object: the attributes, the members of the value byte for byte, and where the record lies.
  mutating func json(_ event: EventRecord) -> String {
    json.reset()
    json.openObject()
    for attribute in event.attributes {
      json.key(text: attribute.name)
      json.string(utf8: attribute.value)
    }
    if let members = event.members {
      for member in members {
        json.key(text: member.name)
        json.raw(member.source)
      }
    } else {
      json.key("value")
      json.string(utf8: event.value)
    }
    json.key("record")
    json.openObject()
    json.member("partition", Int(event.partition))
    json.member("offset", event.offset)
    json.closeObject()
    json.closeObject()
    return json.text
  }

  /// One line: time, type, request, device or target, then what else the event says.
  func text(_ event: EventRecord) -> String {
    let type = event.attribute(EventHeader.type.rawValue) ?? "(no type)"
    var line = Self.padded(event.attribute(EventHeader.time.rawValue) ?? "(no time)", 24)
    line += "  " + Self.padded(Self.shortType(type), 12)
    line += "  " + Self.padded(event.text("apnsId") ?? "-", 36)
    line += "  " + Self.padded(Self.place(event), 17)
    if let identifier = event.text("identifier"), identifier != event.text("apnsId") { line += "  " + Self.word("identifier", identifier) }
    for member in event.members ?? [] where !Self.columns.contains(member.name) {
      line += "  " + (member.text.map { Self.word(member.name, $0) } ?? "\(member.name)=\(Self.shortened(member.source))")
    }
    if event.members == nil { line += "  (its value is no JSON object)" }
    return line
  }

  private static func shortened(_ source: UnsafeRawBufferPointer) -> String {
    let text = String(decoding: source, as: UTF8.self)
    return text.count > longestDetail ? text.prefix(longestDetail) + "…" : text
  }

  /// `carillon.delivered.v1` → `delivered`.
  private static func shortType(_ type: String) -> String { EventType(cloudEventsType: type)?.rawValue ?? visible(type) }

  /// A device by both ends of its token, else the target.
  private static func place(_ event: EventRecord) -> String {
    guard let device = event.text("device") else { return event.text("target").map(visible) ?? "-" }
    return device.utf8.count > 20 ? "\(device.prefix(8))…\(device.suffix(8))" : visible(device)
  }

  private static func word(_ name: String, _ value: String) -> String {
    let isPlain = !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
    return "\(name)=" + (isPlain ? value : JSONValue.string(visible(value)).text)
  }

  /// Without what could move a terminal's cursor or change its state: texts come from devices and producers.
  private static func visible(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { (0x7F...0x9F).contains($0.value) || $0.value < 0x20 ? "\u{FFFD}" : $0 }))
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    let missing = width - text.count
    return missing > 0 ? text + String(repeating: " ", count: missing) : text
  }
}

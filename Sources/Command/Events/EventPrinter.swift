import JSON
import Notifications

/// Renders events as lines, for a person or for a program.
struct EventPrinter: ~Copyable {
  private var json = JSONWriter(capacity: 4096)
  /// Members that have a column, or that a person does not need.
  private static let columns: Set<String> = ["identifier", "device", "target", "application", "source", "revision", "worker"]

  /// The most characters of an object or an array that a person sees.
  private static let longestDetail = 60

  /// Renders an object: the attributes, the members of the value unchanged, and the record's place.
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
    return PrintedJSON.text(json.text)
  }

  /// Renders a line, or several on a narrow terminal. The parts are time, type, request, device or target, then the rest.
  func text(_ event: EventRecord, width: Int?) -> String {
    let type = event.attribute(EventHeader.type.rawValue) ?? "(no type)"
    var columns = [
      TerminalText.padded(event.attribute(EventHeader.time.rawValue).map(TerminalText.visible) ?? "(no time)", 24),
      TerminalText.padded(Self.shortType(type), 12), TerminalText.padded(event.id.map(TerminalText.visible) ?? "-", 36),
      TerminalText.padded(Self.place(event), 17),
    ]
    if let identifier = event.text("identifier") { columns.append(TerminalText.word("identifier", identifier)) }
    for member in event.members ?? [] where !Self.columns.contains(member.name) {
      columns.append(member.text.map { TerminalText.word(member.name, $0) } ?? "\(member.name)=\(Self.shortened(member.source))")
    }
    if event.members == nil { columns.append("(its value is no JSON object)") }
    return TerminalText.row(columns, width: width)
  }

  private static func shortened(_ source: UnsafeRawBufferPointer) -> String {
    let text = String(decoding: source, as: UTF8.self)
    return text.count > longestDetail ? text.prefix(longestDetail) + "…" : text
  }

  /// `carillon.delivered.v1` → `delivered`.
  private static func shortType(_ type: String) -> String { Outcome(cloudEventsType: type)?.name ?? TerminalText.visible(type) }

  /// The beginning and end of a device's token, else the target.
  private static func place(_ event: EventRecord) -> String {
    event.device.map(TerminalText.device) ?? event.text("target").map(TerminalText.visible) ?? "-"
  }
}

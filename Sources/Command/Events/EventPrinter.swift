import JSON
import Notifications

/// Renders events as lines, for a person or for a program.
enum EventPrinter {
  /// Members that have a column, or that a person does not need.
  private static let columns: Set<String> = ["identifier", "device", "target", "application", "source", "revision", "worker"]
  /// The most characters of an object or an array that a person sees.
  private static let longestDetail = 60

  /// Renders an object: the attributes, the members of the value, and the record's place.
  static func json(_ event: EventRecord) -> String {
    let attributes = event.attributes.map { JSONValue.Member($0.name, $0.value) }
    let place = JSONValue.object(["partition": event.partition, "offset": event.offset])
    let members = event.value.members ?? [.init("value", event.value)]
    return PrintedJSON.text(JSONValue.object(attributes + members + [.init("record", place)]).text)
  }

  /// Renders a line, or several on a narrow terminal. The parts are time, type, request, device or target, then the rest.
  static func text(_ event: EventRecord, width: Int?) -> String {
    let type = event.attribute(EventHeader.type.rawValue) ?? "(no type)"
    var columns = [
      TerminalText.padded(event.attribute(EventHeader.time.rawValue).map(TerminalText.visible) ?? "(no time)", 24),
      // `carillon.delivered.v1` → `delivered`.
      TerminalText.padded(Outcome(cloudEventsType: type)?.name ?? TerminalText.visible(type), 12),
      TerminalText.padded(event.id.map(TerminalText.visible) ?? "-", 36), TerminalText.padded(place(event), 17),
    ]
    if let identifier = event.text("identifier") { columns.append(TerminalText.word("identifier", identifier)) }
    for member in event.value.members ?? [] where !Self.columns.contains(member.key) {
      columns.append(member.value.stringValue.map { TerminalText.word(member.key, $0) } ?? "\(member.key)=\(shortened(member.value))")
    }
    if event.value.members == nil { columns.append("(its value is no JSON object)") }
    return TerminalText.row(columns, width: width)
  }

  private static func shortened(_ value: JSONValue) -> String {
    let text = PrintedJSON.text(value.text)
    return text.count > longestDetail ? text.prefix(longestDetail) + "…" : text
  }

  /// The beginning and end of a device's token, else the target.
  private static func place(_ event: EventRecord) -> String {
    event.device.map(TerminalText.device) ?? event.text("target").map(TerminalText.visible) ?? "-"
  }
}

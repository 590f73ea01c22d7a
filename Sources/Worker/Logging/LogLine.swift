import JSON
import Notifications

/// One line of the log, before it is rendered.
struct LogLine: Sendable {
  /// Milliseconds since 1970.
  var time: Int64
  var level: LogLevel
  var component: String
  var message: String
  var kind: String
  var fields: [(name: String, value: any JSONRepresentable)]
  /// Whether many lines of the message are summed up.
  var isLimited = true
}

/// The formats of log lines.
public enum LogFormat: String, CaseIterable, Sendable {
  /// For people: time, level, component, message, `name=value`.
  case text
  /// For machines: one JSON object a line.
  case json

  /// Renders the line with its line feed.
  func render(_ line: LogLine) -> String {
    switch self {
    case .text: Self.plain(line)
    case .json: Self.object(line)
    }
  }

  private static func object(_ line: LogLine) -> String {
    var writer = JSONWriter(capacity: 256)
    writer.openObject()
    writer.member("time", Timestamp.text(line.time))
    writer.member("level", line.level.rawValue)
    writer.member("component", line.component)
    writer.member("message", line.message)
    for field in line.fields {
      writer.key(text: field.name)
      field.value.json.write(to: &writer)
    }
    writer.closeObject()
    return PrintedJSON.text(writer.text) + "\n"
  }

  private static func plain(_ line: LogLine) -> String {
    let level = line.level.rawValue.uppercased()
    let shownLevel = level + String(repeating: " ", count: 7 - level.count)
    let component = line.component + String(repeating: " ", count: max(0, 12 - line.component.count))
    var text = "\(Timestamp.text(line.time)) \(shownLevel) \(component) \(line.message)"
    for field in line.fields { text += " \(field.name)=\(shown(field.value.json))" }
    return text + "\n"
  }

  private static func shown(_ value: JSONValue) -> String {
    guard let text = value.stringValue else { return value.text }
    return isPlain(text) ? text : quoted(text)
  }

  private static func isPlain(_ text: String) -> Bool {
    !text.isEmpty && text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x22 && $0.value != 0x3D && PrintedText.isVisible($0) }
  }

  /// In quotes, with escapes for quotes, backslashes and invisible characters.
  private static func quoted(_ text: String) -> String {
    var inQuotes = String.UnicodeScalarView()
    // By scalars: a quote before a combining mark forms another Character with it.
    for scalar in text.unicodeScalars {
      if scalar == "\"" || scalar == "\\" { inQuotes.append("\\") }
      inQuotes.append(scalar)
    }
    return "\"" + PrintedText.escaped(String(inQuotes)) + "\""
  }
}

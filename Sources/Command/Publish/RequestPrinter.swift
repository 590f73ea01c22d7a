import Ingress
import JSON

/// Shows requests as records, for a person or for a program.
struct RequestPrinter {
  let isJSON: Bool

  func print(_ requests: [RequestToSend]) {
    for request in requests { if isJSON { StandardOutput.json(json(request)) } else { StandardOutput.line(text(request)) } }
    StandardOutput.flush()
  }

  /// Renders the key, a line for each header, the value, and an empty line.
  func text(_ request: RequestToSend) -> String {
    var lines = request.line > 0 ? ["line \(request.line)"] : []
    lines.append("key: " + (request.key.isEmpty ? "(none)" : TerminalText.visible(String(decoding: request.key, as: UTF8.self))))
    for (name, value) in request.headers { lines.append("header \(TerminalText.visible(name)): \(TerminalText.visible(value))") }
    lines.append("value: " + (request.value.map { TerminalText.visible(String(decoding: $0, as: UTF8.self)) } ?? "(none)"))
    return lines.joined(separator: "\n") + "\n"
  }

  /// Renders an object. The value is a string, since a record's value is bytes.
  func json(_ request: RequestToSend) -> String {
    func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
    let object = JSONValue.object([
      "key": text(request.key.isEmpty ? nil : request.key),
      "headers": JSONValue.object(request.headers.map { .init($0.name, $0.value) }), "value": text(request.value),
    ])
    return (request.line > 0 ? object.appending(["line": request.line]) : object).text
  }
}

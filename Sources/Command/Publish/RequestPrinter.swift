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
    func text(_ bytes: [UInt8]?) -> JSONValue { bytes.map { .string(String(decoding: $0, as: UTF8.self)) } ?? .null }
    var members: [JSONValue.Member] = [
      .init(key: "key", value: text(request.key.isEmpty ? nil : request.key)),
      .init(key: "headers", value: .object(request.headers.map { .init(key: $0.name, value: .string($0.value)) })),
      .init(key: "value", value: text(request.value)),
    ]
    if request.line > 0 { members.append(.init(key: "line", value: .integer(Int64(request.line)))) }
    return JSONValue.object(members).text
  }
}

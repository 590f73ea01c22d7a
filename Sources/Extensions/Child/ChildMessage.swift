import EventLoop
import JSON

/// The messages between a worker and its child: JSON-RPC 2.0, one line each.
enum ChildMessage {
  /// A message of a child.
  enum Answer {
    /// The result for a notification; null leaves the content unchanged.
    case result(call: Int64, JSONValue)
    /// A failure with its reason.
    case failure(call: Int64, String)
    /// The best attempt of a call.
    case bestAttempt(call: Int64, JSONValue)

    /// Whether it ends a call.
    var isFinal: Bool { if case .bestAttempt = self { false } else { true } }
  }

  /// A message of a worker.
  enum Order {
    case configure(JSONValue)
    case didReceive(call: Int64, ExtensionRequest, MutableContent)
    case timeWillExpire(call: Int64)
    case cancel(call: Int64)
  }

  // MARK: Written by the worker

  /// The settings; the first message.
  static func configure(_ settings: JSONValue) -> SharedBytes { line(["method": "configure", "params": settings]) }

  /// A notification to change.
  static func didReceive(_ request: ExtensionRequest, _ content: MutableContent, call: Int64) -> SharedBytes {
    line(["id": .integer(call), "method": "didReceive", "params": ExtensionMessage.object(request, content)])
  }

  /// Warns that the time of a call will expire.
  static func timeWillExpire(call: Int64) -> SharedBytes {
    line(["method": "serviceExtensionTimeWillExpire", "params": ["call": .integer(call)]])
  }

  /// A call was given up.
  static func cancel(call: Int64) -> SharedBytes { line(["method": "cancel", "params": ["call": .integer(call)]]) }

  // MARK: Written by the child

  /// The content to show.
  static func result(_ content: MutableContent, call: Int64) -> SharedBytes {
    line(["id": .integer(call), "result": ExtensionMessage.answer(content)])
  }

  /// The reason of a failure.
  static func failure(_ reason: String, call: Int64) -> SharedBytes {
    line(["id": .integer(call), "error": ["code": 1, "message": .string(reason)]])
  }

  /// The best attempt of a call.
  static func bestAttempt(_ content: MutableContent, call: Int64) -> SharedBytes {
    var params = ExtensionMessage.answer(content)
    params.set("call", .integer(call))
    return line(["method": "bestAttempt", "params": params])
  }

  private static func line(_ message: JSONValue) -> SharedBytes {
    let complete = JSONValue.object([JSONValue.Member(key: "jsonrpc", value: "2.0")] + (message.members ?? []))
    var writer = JSONWriter(capacity: 1024)
    complete.write(to: &writer)
    return writer.withUnsafeBytes { text in
      SharedBytes.make(count: text.count + 1) { line in
        line.copyMemory(from: text)
        line[text.count] = UInt8(ascii: "\n")
      }
    }
  }

  // MARK: Read

  /// Reads a line of a child; nil if it is not such a message.
  static func answer(_ line: UnsafeRawBufferPointer) -> Answer? {
    guard let message = message(line) else { return nil }
    if let method = message["method"] {
      guard method == "bestAttempt", var content = message["params"], let call = content["call"]?.integerValue,
        content["payload"]?.members != nil
      else { return nil }
      content.set("call", nil)
      return .bestAttempt(call: call, content)
    }
    guard let call = message["id"]?.integerValue else { return nil }
    switch (message["result"], message["error"]) {
    case (let result?, nil): return .result(call: call, result)
    case (nil, let error?): return error["message"]?.stringValue.map { .failure(call: call, $0) }
    default: return nil
    }
  }

  /// Reads a line of a worker; nil if a child does not need it.
  static func order(_ line: UnsafeRawBufferPointer) -> Order? {
    guard let message = message(line), let params = message["params"] else { return nil }
    switch message["method"] {
    case "configure": return .configure(params)
    case "didReceive":
      guard let call = message["id"]?.integerValue, let (request, content) = ExtensionMessage.notification(params) else { return nil }
      return .didReceive(call: call, request, content)
    case "serviceExtensionTimeWillExpire": return params["call"]?.integerValue.map { .timeWillExpire(call: $0) }
    case "cancel": return params["call"]?.integerValue.map { .cancel(call: $0) }
    default: return nil
    }
  }

  private static func message(_ line: UnsafeRawBufferPointer) -> JSONValue? {
    guard let message = try? JSONValue(parsing: line), message["jsonrpc"] == "2.0" else { return nil }
    return message
  }
}

import EventLoop
import JSON

/// What a worker and its child say to each other: JSON-RPC 2.0, a line for each message.
enum ChildMessage {
  /// What a child has said.
  enum Answer {
    /// What it makes of a notification; null leaves it as it was.
    case result(call: Int64, JSONValue)
    /// It has failed, and says why.
    case failure(call: Int64, String)
    /// What is to be shown if it does not come to its end.
    case bestAttempt(call: Int64, JSONValue)

    /// Whether it ends a call.
    var isFinal: Bool { if case .bestAttempt = self { false } else { true } }
  }

  /// What a worker has said.
  enum Order {
    case configure(JSONValue)
    case didReceive(call: Int64, ExtensionRequest, MutableContent)
    case timeWillExpire(call: Int64)
    case cancel(call: Int64)
  }

  // MARK: Written by the worker

  /// How it is to work; comes first.
  static func configure(_ settings: JSONValue) -> SharedBytes { line(["method": "configure", "params": settings]) }

  /// A notification to be changed.
  static func didReceive(_ request: ExtensionRequest, _ content: MutableContent, call: Int64) -> SharedBytes {
    line(["id": .integer(call), "method": "didReceive", "params": ExtensionMessage.object(request, content)])
  }

  /// The time of a call is about to expire.
  static func timeWillExpire(call: Int64) -> SharedBytes {
    line(["method": "serviceExtensionTimeWillExpire", "params": ["call": .integer(call)]])
  }

  /// Nobody waits for a call any more.
  static func cancel(call: Int64) -> SharedBytes { line(["method": "cancel", "params": ["call": .integer(call)]]) }

  // MARK: Written by the child

  /// What is to be shown.
  static func result(_ content: MutableContent, call: Int64) -> SharedBytes {
    line(["id": .integer(call), "result": ExtensionMessage.answer(content)])
  }

  /// Why nothing has come of it.
  static func failure(_ reason: String, call: Int64) -> SharedBytes {
    line(["id": .integer(call), "error": ["code": 1, "message": .string(reason)]])
  }

  /// What is to be shown if the call does not come to its end.
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

  /// What a child has said in a line; nil where that is no such message.
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

  /// What a worker has said in a line; nil where a child need not know it.
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

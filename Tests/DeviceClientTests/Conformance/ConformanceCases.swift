import Foundation
import JSON
import Notifications
import TestSupport

@testable import DeviceClient

/// Plays the cases of Tests/Conformance to the library.
enum ConformanceCases {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Conformance")
  static let files = ["notifications", "removals", "settings", "frames", "reconnections"]
  /// The time of a case that names none.
  static let start: Int64 = 1_700_000_000_000

  static func path(_ file: String) -> String { folder.appendingPathComponent("cases/\(file).json").path }

  /// The cases of a file.
  static func cases(_ file: String) throws -> [JSONValue] {
    let text = try String(contentsOfFile: path(file), encoding: .utf8)
    return try JSONValue(parsing: text).elements ?? []
  }

  /// Plays cases; returns the differences.
  static func differences(_ cases: [JSONValue]) throws -> [String] {
    var found: [String] = []
    var (device, state): (CaseDevice?, [String: JSONValue]) = (nil, [:])
    for each in cases {
      let rule = each["rule"]?.stringValue ?? ""
      func compare(_ what: String, _ isValue: JSONValue, _ expected: JSONValue) {
        let (actual, wanted) = (ordered(isValue).text, ordered(expected).text)
        if actual != wanted { found.append("\(rule): \(what) is \(actual), and should be \(wanted)") }
      }
      if let events = each["events"]?.elements {
        compare("wait", wait(after: events), each["wait"] ?? .null)
        continue
      }
      if let before = each["before"] { (device, state) = (try CaseDevice(before), members(before)) }
      guard let device, let text = each["text"]?.stringValue ?? each["frame"]?.text else { throw CaseError(each.text) }
      let now = each["now"]?.integerValue ?? start
      let result = device.receive(text, now: now, uncertain: each["uncertain"]?.integerValue ?? 0)
      compare("answer", answer(.array(result.answer)), answer(each["answer"] ?? []))
      var shown = result.shown
      if each["shown"]?.elements?.first?["actions"] == nil { for index in shown.indices { shown[index].set("actions", nil) } }
      compare("shown", .array(shown), each["shown"] ?? [])
      compare("close", .bool(result.closes), each["close"] ?? false)
      state.merge(members(each["after"] ?? [:])) { $1 }
      let (isState, wanted) = (compared(device.state, now), compared(state, now))
      for name in Set(isState.keys).union(wanted.keys).sorted() {
        compare("after.\(name)", isState[name] ?? .null, wanted[name] ?? .null)
      }
    }
    return found
  }

  /// The waits after the last of some events, at the least and at the largest random number.
  static func wait(after events: [JSONValue]) -> JSONValue {
    let waits = [0.0, 1.0].map { jitter -> JSONValue in
      var (plan, wait) = (ReconnectionPlan(), JSONValue.null)
      for event in events {
        for _ in 0..<(event["times"]?.integerValue ?? 1) {
          if let told = event["goaway"]?.integerValue { plan.goaway(Int(told)) }
          guard let code = event["close"]?.integerValue.map({ UInt16(clamping: $0) }) else { continue }
          if event["helloUnanswered"] == true, CloseCode.reconnection(after: code) != .never { plan.helloAbandoned() }
          let ended = plan.ended(
            code: code, sessionMilliseconds: event["stood"]?.integerValue.map { UInt64(clamping: $0) }, jitter: jitter)
          wait = ended.map { .integer(Int64($0)) } ?? .null
        }
      }
      return wait
    }
    return waits == [.null, .null] ? .null : .array(waits)
  }

  // MARK: What is compared

  static func members(_ value: JSONValue) -> [String: JSONValue] {
    Dictionary((value.members ?? []).map { ($0.key, $0.value) }) { $1 }
  }

  /// The members of a state that frames change, complete, in one order, without what need not be remembered.
  static func compared(_ state: [String: JSONValue], _ now: Int64) -> [String: JSONValue] {
    var compared: [String: JSONValue] = [:]
    let seconds = state["rememberSeconds"]?.integerValue ?? 2_592_000
    for name in ["ids", "revisions"] {
      let entries = (state[name]?.elements ?? []).filter { ($0.elements?.last?.integerValue ?? 0) >= now - seconds * 1000 }
      compared[name] = .array(entries.sorted { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) })
    }
    for name in ["list", "pending"] {
      compared[name] = .array(
        (state[name]?.elements ?? []).map { entry in
          var (brief, frame): (JSONValue, JSONValue) = ([:], [:])
          for key in ["id", "identifier", "revision"] { frame.set(key, entry["frame"]?[key]) }
          for key in name == "list" ? ["takenAt", "presentation", "local"] : ["takenAt", "local"] { brief.set(key, entry[key]) }
          brief.set("frame", frame)
          return brief
        })
    }
    compared["responses"] = state["responses"] ?? []
    compared["rememberSeconds"] = .integer(seconds)
    compared["badge"] = state["badge"] ?? 0
    for name in ["floor", "quiet"] where state[name] != .null { compared[name] = state[name] }
    return compared
  }

  private static func answer(_ frames: JSONValue) -> JSONValue {
    .array(
      (frames.elements ?? []).map { frame in
        var frame = frame
        for list in ["deliveries", "updated", "dropped"] where frame["type"] == "ack" && frame[list] == nil { frame.set(list, []) }
        return frame
      })
  }

  /// A value with the members of each object in one order, and without those that are null.
  static func ordered(_ value: JSONValue) -> JSONValue {
    switch value {
    case .array(let elements): .array(elements.map(ordered))
    case .object(let members):
      .object(
        members.filter { $0.value != .null }.map { .init(key: $0.key, value: ordered($0.value)) }
          .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) })
    default: value
    }
  }
}

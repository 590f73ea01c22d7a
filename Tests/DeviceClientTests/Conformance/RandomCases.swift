import Foundation
import JSON
import TestSupport

@testable import DeviceClient

/// Random histories of devices as cases, with the answers of the library. The same seed gives the same ones.
///
/// Rules meet in them: there are few identifiers and ids, and revisions and expirations are near the newest and the present. `random.json`
/// of Tests/Conformance has the words.
struct RandomCases {
  private let words: JSONValue
  private var random: SeededRandom
  private var now = ConformanceCases.start
  private var delivery: Int64 = 0
  private var newest = 10_000
  private var rememberSeconds = Int64.max
  private var ids: [JSONValue] = []
  private var identifiers: [JSONValue] = []

  init(seed: UInt64) throws {
    words = try JSONValue(parsing: String(contentsOf: ConformanceCases.folder.appendingPathComponent("random.json"), encoding: .utf8))
    random = SeededRandom(seed: seed)
  }

  /// Cases of so many frames, and of a tenth as many ends. Each fifty frames come to another device.
  mutating func cases(_ count: Int) throws -> [JSONValue] {
    var cases: [JSONValue] = []
    var (device, state): (CaseDevice?, [String: JSONValue]) = (nil, [:])
    for number in 0..<count {
      var step: JSONValue = ["rule": .string("random frame \(number)"), "now": .integer(now)]
      if number % 50 == 0 {
        let before = before()
        step.set("before", before)
        (device, state) = (try CaseDevice(before), ConformanceCases.members(before))
      }
      guard let device else { continue }
      let (text, uncertain) = (text(), make("$uncertain")?.integerValue ?? 0)
      step.set("text", .string(text))
      step.set("uncertain", .integer(uncertain))
      let result = device.receive(text, now: now, uncertain: uncertain)
      step.set("answer", .array(result.answer))
      step.set("shown", .array(result.shown))
      step.set("close", .bool(result.closes))
      let after = device.state
      let changed = Set(after.keys).union(["floor", "quiet"]).filter { after[$0] != state[$0] }.sorted()
      step.set("after", .object(changed.map { .init(key: $0, value: after[$0] ?? .null) }))
      state = after
      cases.append(step)
      now += make("$passing")?.integerValue ?? 0
    }
    return cases
      + (0..<count / 10).map { number in
        let events = (0...below(7)).compactMap { _ in make("$end") } + [["close": make("$code") ?? 1006]]
        return ["rule": .string("random ends \(number)"), "events": .array(events), "wait": ConformanceCases.wait(after: events)]
      }
  }

  /// The text of a frame. One in eight is broken, and no welcome: it could prolong how long ids are remembered.
  private mutating func text() -> String {
    var frame = make("$frame") ?? [:]
    guard below(8) == 0, frame["type"] != "welcome" else { return frame.text }
    if below(2) == 0 {
      let member = pick((frame.members ?? []).map(\.key) + ["type"])
      frame.set(member, make("$junk"))
      return frame.text
    }
    var characters = Array(frame.text.unicodeScalars)
    let place = below(characters.count)
    if below(2) == 0 { characters.remove(at: place) } else { characters.insert(pick(Array("{}[]:,\"\\ 0\u{1}".unicodeScalars)), at: place) }
    return String(String.UnicodeScalarView(characters))
  }

  /// The state of a device that has been in use.
  private mutating func before() -> JSONValue {
    let many = (0..<30).map { JSONValue.string("n\($0)") }
    identifiers = below(3) == 0 ? many : make("$names")?.elements ?? []
    (ids, rememberSeconds) = ([], .max)
    return make("$device") ?? [:]
  }

  /// A value of the words of `random.json`; nil if it is absent.
  ///
  /// A text with a dollar names another value, `any` has one of its elements, `some` has some of them, and `mostly` comes three times in
  /// four.
  private mutating func make(_ template: JSONValue) -> JSONValue? {
    switch template {
    case .string(let name) where name.hasPrefix("$"): return value(String(name.dropFirst()))
    case .object(let members):
      if let value = template["mostly"], below(4) > 0 { return make(value) }
      if let values = template["any"]?.elements { return make(pick(values)) }
      if let values = template["some"]?.elements { return .array(values.filter { _ in below(2) == 0 }) }
      return .object(members.compactMap { member in make(member.value).map { .init(key: member.key, value: $0) } })
    default: return template
    }
  }

  private mutating func value(_ name: String) -> JSONValue? {
    switch name {
    case "absent": return nil
    case "delivery":
      delivery += 1
      return .integer(delivery)
    case "id":
      if !ids.isEmpty, below(5) == 0 { return pick(ids) }
      ids.append(.string("id-\(delivery)"))
      return ids.last
    case "identifier": return pick(identifiers)
    case "identifiers": return .array((0..<below(4)).map { _ in pick(identifiers) })
    case "revision":
      newest += below(2)
      // The order by bytes differs from the one by UTF-16.
      return .string("\(newest + below(7) - 3)" + pick(["", "", "", "", "", "a", "Z", "é", "e\u{301}", "\u{FFFD}", "😀"]))
    case "rememberSeconds":
      // It only gets shorter: what is forgotten already may be remembered again when it gets longer, or not.
      rememberSeconds = min(rememberSeconds, make("$seconds")?.integerValue ?? 0)
      return .integer(rememberSeconds)
    case "second": return .integer(now / 1000 + Int64(below(7)) - 3)
    case "now": return .integer(now)
    case "long": return .string(String(repeating: "é", count: pick([64, 65, 2_049])))
    case "list", "pending":
      let all = identifiers
      return .array(all.filter { _ in below(3) == 0 }.map { listed($0, isPending: name == "pending") })
    default: return words[name].flatMap { make($0) }
    }
  }

  private mutating func listed(_ identifier: JSONValue, isPending: Bool) -> JSONValue {
    let isLocal = below(3) == 0
    var frame = make("$notify") ?? [:]
    frame.merge(["identifier": identifier, "payload": make("$plain") ?? [:], "trigger": isPending ? make("$place") ?? [:] : .null])
    if isLocal { frame.set("revision", "local") }
    var entry: JSONValue = ["frame": frame, "takenAt": .integer(now - 1_000), "presentation": isPending ? .null : ["list"]]
    if isLocal { entry.set("local", true) }
    return entry
  }

  // MARK: Chance

  private mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

  private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}

import EventLoop
import JSON
import Notifications
import TestSupport
import Testing

@testable import DeviceClient

/// The state file of a device, under random input: what a crash or another program leaves of it.
@Suite struct StateFuzzTests {
  private static let notify =
    #"{"type":"notify","delivery":7,"id":"123e4567-e89b-12d3-a456-42665544000a","identifier":"score","revision":"0000018bcfe568000000000300000000000000ff","expiration":0,"priority":10,"pushType":"alert","payload":{"aps":{"alert":"x"}},"receipt":"r"}"#
  private static let lines = [
    #"{"device":"aa","application":"a.b"}"#, #"{"took":\#(notify),"at":5}"#, #"{"noted":"a","revision":"b","at":5}"#,
    #"{"removed":["a","b"],"revision":"c","at":5}"#, #"{"cleared":["a"]}"#, #"{"fired":"a","at":5}"#,
    #"{"response":{"type":"response","response":"r","receipt":"x","identifier":"i","action":"a","at":5}}"#, #"{"settled":"r"}"#,
    #"{"id":"x","at":5}"#, #"{"delivered":\#(notify),"at":5}"#, #"{"pending":\#(notify),"at":5}"#, #"{"later":1}"#,
    // Once: a notification without a receipt was written so that it was not read again.
    #"{"took":\#(notify.replacing(#","receipt":"r""#, with: "")),"at":5}"#,
  ]
  private static let tokens = ["\n", "{", "}", "\"at\":", "\"took\":", "\"device\":", "null", "[", "]", ",", "\"payload\":{}"]

  @Test func aLineThatIsReadIsWrittenSoThatItIsReadAlike() {
    let failures = Fuzz("state records", corpus: Self.lines.map { Array($0.utf8) }, tokens: Self.tokens).run { bytes, _ in
      guard let value = try? JSONValue(parsing: bytes), let record = StateRecord(value) else { return nil }
      var written: [UInt8] = []
      StateLines.append(record, to: &written)
      let again = StateLines.read(written)
      guard again.records == [record], again.damaged == 0, again.whole == written.count else { return "\(record) is read as \(again)" }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func aDamagedFileGivesOnlyWholeRecords() {
    var file: [UInt8] = []
    var records: [StateRecord] = []
    for line in Self.lines {
      guard let value = try? JSONValue(parsing: line), let record = StateRecord(value) else { continue }
      StateLines.append(record, to: &file)
      records.append(record)
    }
    let failures = Fuzz("state files", corpus: [file], tokens: Self.tokens, inputs: 2_000).run { bytes, _ in
      let read = StateLines.read(Array(bytes))
      if read.whole > bytes.count { return "more is whole than there is" }
      for record in read.records where !records.contains(record) { return "a record that nobody wrote: \(record)" }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func `every record is read as it was written, whatever is in its fields`() async throws {
    try await TestFolder.with { folder in
      var random = RandomState(seed: 33)
      for round in 0..<40 {
        let path = folder.path + "/state-\(round)"
        let records = (0..<Int.random(in: 1...12, using: &random.json.generator)).map { _ in random.record() }
        let file = StateFile(path: path)
        _ = try await file.open()
        // A snapshot, then lines one by one.
        let first = Int.random(in: 0...records.count, using: &random.json.generator)
        try await file.replace(Self.lines(records[..<first]))
        for record in records[first...] { try await file.append(Self.lines([record])) }
        await file.end()
        await file.disk.close()
        let again = StateFile(path: path)
        let read = try await again.open()
        let lost = records.filter { !read.records.contains($0) }
        #expect(read.records == records && read.damaged == 0, "round \(round): \(lost.map { String("\($0)".prefix(200)) })")
        await again.end()
        await again.disk.close()
      }
    }
  }

  private static func lines(_ records: some Sequence<StateRecord>) -> [UInt8] {
    var bytes: [UInt8] = []
    for record in records { StateLines.append(record, to: &bytes) }
    return bytes
  }
}

/// Random records, as a cluster and a person could make them.
private struct RandomState {
  var json: RandomJSON

  init(seed: UInt64) { json = RandomJSON(seed: seed) }

  mutating func record() -> StateRecord {
    switch number(0...9) {
    case 0: .owner(device: text(), application: Name(text()))
    case 1: .noted(identifier: Name(text()), revision: text(), at: number(0...4_000_000_000_000))
    case 2: .removed((0..<number(0...3)).map { _ in Name(text()) }, revision: text(), at: number(0...5))
    case 3: .cleared((0..<number(0...3)).map { _ in Name(text()) })
    case 4: .fired(Name(text()), at: number(0...5))
    case 5:
      .response(
        ResponseFrame(
          response: text(), receipt: text(), identifier: Name(text()), action: Name(text()), userText: number(0...1) == 0 ? nil : text(),
          at: number(0...1) == 0 ? nil : number(0...Int64.max)))
    case 6: .settled(text())
    case 7: .id(Name(text()), at: number(0...5))
    case 8: .took(notification(), at: number(0...5))
    default: .listed(notification(), at: number(0...5), isPending: number(0...1) == 0)
    }
  }

  /// Any text: empty, with line breaks and NUL, and now and then very long.
  private mutating func text() -> String {
    let text = ["", "\n", "\r\n", "\u{0}", "\u{2028}", "}\n{\"at\":5}"].randomElement(using: &json.generator) ?? ""
    return number(0...30) == 0 ? String(repeating: text + json.string() + "x", count: 20_000) : json.string() + text + json.string()
  }

  /// A text as the protocol allows it for a name.
  private mutating func word() -> String {
    let visible = String(
      String.UnicodeScalarView(json.string().unicodeScalars.filter { $0.properties.generalCategory != .control }.prefix(30)))
    return visible.isEmpty ? "x" : visible
  }

  /// JSON as a producer may write it: with white space, and as deep as fits into a frame.
  private mutating func object() -> String {
    let depth = number(0...5) == 0 ? 59 : 0
    let inner = json.text(of: .object([.init(key: text(), value: json.tree(depth: 3))]))
    return "\n" + String(repeating: "[\r\n", count: depth) + inner + String(repeating: "\t]", count: depth)
  }

  private mutating func notification() -> NotifyFrame {
    func quoted(_ text: String) -> String { JSONValue.string(text).text }
    var members = [
      #""type":"notify","delivery":\#(number(0...Int64.max))"#, #""id":\#(quoted(word()))"#, #""identifier":\#(quoted(word()))"#,
      #""revision":\#(quoted(word()))"#, #""expiration":\#(number(0...Int64.max))"#, #""priority":\#(number(0...100))"#,
      #""pushType":\#(quoted(word()))"#, #""payload":\#(object())"#,
    ]
    if number(0...1) == 0 { members.append(#""trigger":\#(object())"#) }
    if number(0...1) == 0 { members.append(#""traceparent":\#(quoted(word()))"#) }
    if number(0...1) == 0 { members.append(#""receipt":\#(quoted(word()))"#) }
    if number(0...3) == 0 {
      let hash = String(repeating: "ab", count: 32)
      members.append(
        #""attachments":[{"identifier":\#(quoted(word())),"hash":"\#(hash)","type":"image/png","size":5,"url":\#(quoted(word())),"expires":7}]"#
      )
    }
    var text = "{" + members.joined(separator: ",") + "}"
    let frame = text.withUTF8 { try? ServerFrame(UnsafeRawBufferPointer($0)) }
    guard case .notify(let notification)? = frame else { preconditionFailure("no frame: \(text)") }
    return notification
  }

  private mutating func number<T: FixedWidthInteger>(_ range: ClosedRange<T>) -> T { T.random(in: range, using: &json.generator) }
}

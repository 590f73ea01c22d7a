import TestSupport
import Testing

@testable import HTTP

@Suite struct HTTPRepresentationTests {
  /// What is expected of a request for ten bytes with the tag "v1".
  private enum Answer: Equatable {
    case whole
    case part(Range<Int>)
    case notModified, notSatisfiable
  }

  private static let ten = HTTPRepresentation(entityTag: "v1", count: 10)

  private static func request(_ fields: [String], _ method: String = "GET") throws -> HTTPRequest {
    let parser = MessageParser.requests(MessageParser.Limits(fields: 100, bodyBytes: 0))
    let text = "\(method) / HTTP/1.1\r\nHost: a\r\n\(fields.map { "\($0)\r\n" }.joined())\r\n"
    let outcome = Array(text.utf8).withUnsafeBytes { parser.parse($0).outcome }
    try #require(outcome == .complete, "\(fields)")
    return HTTPRequest(method: parser.method, path: "/", query: nil, headers: parser.headers, body: [])
  }

  /// The answer as the handler sees it: status, range and fields must agree.
  private static func answer(_ file: HTTPRepresentation, _ fields: [String], _ method: String = "GET") throws -> Answer {
    let selection = file.selection(for: try request(fields, method))
    let names = selection.headers.map(\.name)
    let contentRange = selection.headers.first { $0.name == "Content-Range" }?.value
    let described = ["ETag", "Accept-Ranges"]
    if [.ok, .partialContent, .notModified].contains(selection.status) {
      #expect(selection.headers[0].value == "\"\(file.entityTag)\"" && selection.headers[1].value == "bytes")
    }
    switch (selection.status, selection.range) {
    case (.ok, 0..<file.count):
      #expect(names == described)
      return .whole
    case (.partialContent, let range?):
      #expect(names == described + ["Content-Range"])
      #expect(contentRange == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.count)")
      return .part(range)
    case (.notModified, nil):
      #expect(names == described)
      return .notModified
    case (.rangeNotSatisfiable, nil):
      #expect(names == ["Content-Range"] && contentRange == "bytes */\(file.count)")
      return .notSatisfiable
    default:
      Issue.record("\(fields): \(selection)")
      return .whole
    }
  }

  private static let huge = String(repeating: "9", count: 40)
  private static let ranges: [(field: String, answer: Answer)] = [
    ("bytes=5-", .part(5..<10)), ("bytes=0-0", .part(0..<1)), ("bytes=0-1", .part(0..<2)), ("bytes=9-9", .part(9..<10)),
    ("bytes=0-9", .part(0..<10)), ("bytes=0-", .part(0..<10)), ("bytes=3-5", .part(3..<6)), ("bytes=3-99", .part(3..<10)),
    ("bytes=003-0004", .part(3..<5)), ("bytes=0-9223372036854775807", .part(0..<10)),

    ("bytes=10-", .notSatisfiable), ("bytes=10-10", .notSatisfiable), ("bytes=99-100", .notSatisfiable),
    ("bytes=9223372036854775807-9223372036854775807", .notSatisfiable),

    ("bytes=-5", .whole), ("bytes=-0", .whole), ("Bytes=3-5", .whole), ("bytes= 3-5", .whole), ("bytes=,3-5", .whole),
    ("bytes=3-\(huge)", .whole), ("bytes=\(huge)-", .whole), ("bytes=9-9223372036854775808", .whole),
    ("bytes=0-1,3-4", .whole), ("bytes=0-0, -1", .whole), ("bytes=99-,0-0", .whole), ("items=0-5", .whole), ("bytes=5-3", .whole),
    ("bytes=", .whole), ("bytes=,", .whole), ("bytes=-", .whole), ("bytes=--5", .whole), ("bytes=5--", .whole), ("bytes=5", .whole),
    ("bytes", .whole), ("5-6", .whole), ("=5-6", .whole), ("bytes=+5-6", .whole), ("bytes=5-+6", .whole), ("bytes=5 -6", .whole),
    ("bytes=5- 6", .whole), ("bytes =5-6", .whole), ("bytes=a-b", .whole), ("bytes=0x1-2", .whole), ("bytes=1-2-3", .whole),
    ("bytes==1-2", .whole), ("bytes:1-2", .whole), ("bytes=1.0-2", .whole), ("bytes=\u{661}-\u{662}", .whole), ("", .whole),
  ]

  @Test func aRangeIsCutOutOrIgnoredOrRefused() throws {
    for (field, answer) in Self.ranges {
      #expect(try Self.answer(Self.ten, ["Range: \(field)"]) == answer, "\(field)")
      #expect(try Self.answer(Self.ten, ["Range: \(field)"], "HEAD") == .whole, "HEAD \(field)")
    }
    #expect(try Self.answer(Self.ten, ["Range: bytes=3-5", "Range: bytes=3-5"]) == .whole)
    #expect(try Self.answer(Self.ten, ["range:bytes=3-5"]) == .part(3..<6))
    #expect(try Self.answer(Self.ten, []) == .whole)
  }

  @Test func anEmptyRepresentationHasNoParts() throws {
    let empty = HTTPRepresentation(entityTag: "", count: 0)
    #expect(try Self.answer(empty, []) == .whole)
    #expect(try Self.answer(empty, ["Range: bytes=0-"]) == .notSatisfiable)
    #expect(try Self.answer(empty, ["Range: bytes=0-0"]) == .notSatisfiable)
    #expect(try Self.answer(empty, ["If-None-Match: \"\""]) == .notModified)
  }

  @Test func theLargestRepresentationOverflowsNothing() throws {
    let largest = HTTPRepresentation(entityTag: "v1", count: .max)
    #expect(try Self.answer(largest, ["Range: bytes=0-"]) == .part(0..<Int.max))
    #expect(try Self.answer(largest, ["Range: bytes=0-\(Int.max)"]) == .part(0..<Int.max))
    #expect(try Self.answer(largest, ["Range: bytes=9223372036854775806-"]) == .part(Int.max - 1..<Int.max))
    #expect(try Self.answer(largest, ["Range: bytes=\(Int.max)-"]) == .notSatisfiable)
  }

  private static let conditions: [(fields: [String], answer: Answer)] = [
    (["If-None-Match: \"v1\""], .notModified), (["If-None-Match: W/\"v1\""], .notModified),
    (["If-None-Match: \"v0\", \"v1\""], .notModified), (["If-None-Match: \"v0\",W/\"v1\" , \"v2\""], .notModified),
    (["If-None-Match: , ,\"v1\","], .notModified), (["If-None-Match: \"v0\"", "If-None-Match: \"v1\""], .notModified),
    (["If-None-Match: \"v0\""], .whole), (["If-None-Match: \"V1\""], .whole), (["If-None-Match: v1"], .whole),
    (["If-None-Match: w/\"v1\""], .whole), (["If-None-Match: \"v1"], .whole), (["If-None-Match: \"v0\" \"v1\""], .whole),
    (["If-None-Match: \"x,v1,x\""], .whole), (["If-None-Match: \"v1 \""], .whole), (["If-None-Match: *"], .whole),
    (["If-None-Match: W/"], .whole), (["If-None-Match: \""], .whole), (["If-None-Match:"], .whole), (["If-None-Match: ''"], .whole),
    (["If-None-Match: \"v1\"", "Range: bytes=3-5"], .notModified), (["If-None-Match: \"v0\"", "Range: bytes=3-5"], .part(3..<6)),
    (["If-None-Match: \"v1\"", "Range: bytes=10-"], .notModified),

    (["Range: bytes=3-5", "If-Range: \"v1\""], .part(3..<6)), (["Range: bytes=3-5", "If-Range: \"v0\""], .whole),
    (["Range: bytes=3-5", "If-Range: W/\"v1\""], .whole), (["Range: bytes=3-5", "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"], .whole),
    (["Range: bytes=3-5", "If-Range: v1"], .whole), (["Range: bytes=3-5", "If-Range: \"v1\", \"v1\""], .whole),
    (["Range: bytes=3-5", "If-Range: *"], .whole), (["Range: bytes=3-5", "If-Range: \"v1\"", "If-Range: \"v0\""], .whole),
    (["Range: bytes=3-5", "If-Range:"], .whole), (["Range: bytes=10-", "If-Range: \"v1\""], .notSatisfiable),
    (["Range: bytes=10-", "If-Range: \"v0\""], .whole), (["If-Range: \"v1\""], .whole), (["If-Range: \"v0\""], .whole),

    (["If-Match: \"v0\""], .whole), (["If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"], .whole),
    (["If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT"], .whole),
  ]

  @Test func conditionsAreJudgedInTheirOrder() throws {
    for (fields, answer) in Self.conditions {
      #expect(try Self.answer(Self.ten, fields) == answer, "\(fields)")
      let withoutRange: Answer = if case .part = answer { .whole } else if answer == .notSatisfiable { .whole } else { answer }
      #expect(try Self.answer(Self.ten, fields, "HEAD") == withoutRange, "HEAD \(fields)")
    }
  }

  @Test func tagsCompareByTheirBytes() throws {
    // For a text the sign of Kelvin is the letter K.
    let file = HTTPRepresentation(entityTag: "K;", count: 10)
    #expect(try Self.answer(file, ["If-None-Match: \"K;\""]) == .notModified)
    #expect(try Self.answer(file, ["If-None-Match: \"\u{212A};\""]) == .whole)
    #expect(try Self.answer(file, ["If-None-Match: \"\u{212A};\", \"K;\""]) == .notModified)
  }

  @Test func randomRangesAreThoseOfANaiveModel() throws {
    var random = SeededRandom(seed: 11)
    for _ in 0..<4000 {
      let count = Int.random(in: 0...12, using: &random)
      let file = HTTPRepresentation(entityTag: "v1", count: count)
      let first = Int.random(in: 0...14, using: &random)
      let last = Bool.random(using: &random) ? Int.random(in: 0...14, using: &random) : nil
      let field = "bytes=\(first)-\(last.map(String.init) ?? "")"
      #expect(try Self.answer(file, ["Range: \(field)"]) == Self.model(first, last, count), "\(field) of \(count)")
    }
  }

  /// Which of the bytes are asked for, one by one.
  private static func model(_ first: Int, _ last: Int?, _ count: Int) -> Answer {
    if let last, last < first { return .whole }
    let wanted = (0..<count).filter { $0 >= first && $0 <= last ?? .max }
    guard let lowest = wanted.first, let highest = wanted.last else { return .notSatisfiable }
    return .part(lowest..<highest + 1)
  }

  @Test func noFieldMakesAnImpossibleSelection() {
    let corpus = ["bytes=3-5", "bytes=-5", "bytes=5-", "bytes=0-1, 4-", "\"v1\", W/\"v2\"", "*", "W/\"v1\""].map { Array($0.utf8) }
    let tokens = ["bytes=", "-", ",", "=", "\"", "W/", "*", "\"v1\"", "9223372036854775807", "18446744073709551616", " ", "\t", "0"]
    let failures = Fuzz("http ranges and conditions", corpus: corpus, tokens: tokens, longest: 200).run { bytes, _ in
      let name = ["Range", "If-Range", "If-None-Match"]
      let value = Array(bytes)
      for (index, count) in [0, 1, 10, Int.max].enumerated() {
        for other in name {
          var text: [UInt8] = []
          var fields: [HTTPHeaders.Field] = []
          for (name, value) in [("Range", index == 0 ? value : Array("bytes=0-3".utf8)), (other, value)] {
            let start = text.count
            text += Array(name.utf8) + value
            let nameEnd = start + name.utf8.count
            fields.append(HTTPHeaders.Field(nameStart: start, nameEnd: nameEnd, valueStart: nameEnd, valueEnd: text.count))
          }
          let headers = HTTPHeaders(bytes: text, fields: other == "Range" ? [fields[1]] : fields)
          let request = HTTPRequest(method: .get, path: "/", query: nil, headers: headers, body: [])
          let selection = HTTPRepresentation(entityTag: "v1", count: count).selection(for: request)
          let isPossible =
            switch (selection.status, selection.range) {
            case (.ok, 0..<count): true
            case (.partialContent, let part?): !part.isEmpty && part.lowerBound >= 0 && part.upperBound <= count
            case (.notModified, nil), (.rangeNotSatisfiable, nil): true
            default: false
            }
          if !isPossible { return "\(other) of \(count) bytes: \(selection)" }
        }
      }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}

import TestSupport
import Testing

@testable import JSON

@Suite struct JSONFuzzTests {
  private static let corpus =
    [
      #"{"aps":{"alert":{"title":"Order","body":"It is on its way"},"badge":3,"sound":"default","mutable-content":1},"order":{"id":17}}"#,
      #"{"type":"notify","delivery":7,"revision":"0000018bcfe56800","payload":{"a":[1,2.5,-3e-7,true,false,null]},"t":"Gr\u00fc\u00dfe \ud83d\ude00"}"#,
      #"[[],{},"",0,-0,1e5,"\"\\\/\b\f\n\r\t",[[[[[[]]]]]],{"a":{"b":{"c":{"d":1}}}}]"#, " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : null } \n",
      #""text""#, "12345678901234567890", "true", #"{"a":1,"a":2,"a":{"a":3}}"#,
    ].map { Array($0.utf8) }
  private static let tokens = [
    "{", "}", "[", "]", ",", ":", "\"", "\\", "null", "true", "false", "\\u", "\\ud83d\\ude00", "{\"a\":", "[[[[[[[[[[", " ", "\t", "\"a\"",
  ]

  /// What a walk with the scanner says of a text: nothing when it is JSON.
  private static func walk(_ text: UnsafeRawBufferPointer) -> JSONError? {
    var scanner = JSONScanner(text)
    do throws(JSONError) {
      try descend(&scanner)
      try scanner.finish()
      return nil
    } catch { return error }
  }

  private static func descend(_ scanner: inout JSONScanner) throws(JSONError) {
    switch scanner.peekKind() {
    case .object:
      try scanner.openObject()
      while let key = try scanner.nextKey() {
        _ = scanner.text(key)
        try descend(&scanner)
      }
    case .array:
      try scanner.openArray()
      while try scanner.nextElement() { try descend(&scanner) }
    default:
      let span = try scanner.skip()
      (_, _, _, _) = (scanner.text(span), scanner.integer(span), scanner.double(span), scanner.bool(span))
      (_, _) = (scanner.unescapedBytes(span), scanner.matches(span, "text"))
    }
  }

  @Test func everyTextIsReadAlikeHoweverItIsRead() {
    let failures = Fuzz("json", corpus: Self.corpus, tokens: Self.tokens).run { text, _ in
      let walked = Self.walk(text)
      var scanner = JSONScanner(text)
      var skipped: JSONError?
      do throws(JSONError) {
        _ = try scanner.skip()
        try scanner.finish()
      } catch { skipped = error }
      if walked != skipped { return "walking said \(walked.map { "\($0)" } ?? "yes"), skipping \(skipped.map { "\($0)" } ?? "yes")" }
      do throws(JSONError) {
        let value = try JSONValue(parsing: text)
        if let skipped { return "the tree was made, though it is no JSON: \(skipped)" }
        let again = value.text
        guard try JSONValue(parsing: again) == value else { return "it was not the same when read again: \(again)" }
        // Written once, it is written alike for ever.
        guard try JSONValue(parsing: again).text == again else { return "it was not written alike: \(again)" }
      } catch {
        guard let skipped else { return "no tree was made, though it is JSON: \(error)" }
        if error != skipped { return "the tree said \(error), skipping \(skipped)" }
        if error.offset < 0 || error.offset > text.count { return "the error lies outside: \(error)" }
      }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}

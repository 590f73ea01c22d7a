import JSON
import TestSupport
import Testing

@testable import Notifications

/// The category as it was, in the receipt of a notification, and the responses that are checked by it.
@Suite struct DeliveredCategoryTests {
  private static let chat = NotificationCategory(
    identifier: "chat", options: [.customDismissAction],
    actions: [
      NotificationAction(identifier: "mute", title: "Mute"), NotificationAction(identifier: "reply", title: "Reply", textInput: .init()),
    ])

  /// The receipt of a notification that was delivered while its category was this.
  private static func receipt(_ category: NotificationCategory?) throws -> [UInt8] {
    try DeliveryTests.encoded().withUnsafeBytes { bytes in
      let entry = try #require(DeliveryEntryView(bytes))
      var buffer = ByteBuffer()
      ReceiptView.append(of: entry, revision: Revision(entry.source), deviceHash: 77, category: category, to: &buffer)
      return buffer.withUnsafeBytes(Array.init)
    }
  }

  private static func delivered(_ category: NotificationCategory?) throws -> DeliveredCategory {
    try receipt(category).withUnsafeBytes { try #require(ReceiptView($0)?.delivered) }
  }

  @Test func `a receipt has the category as it was`() throws {
    let ten = NotificationCategory(
      identifier: "c",
      actions: (0..<10).map { NotificationAction(identifier: Name("a\($0)"), title: "A", textInput: $0 % 2 == 0 ? nil : .init()) })
    for category in [nil, Self.chat, ten, NotificationCategory(identifier: "plain")] {
      let read = try Self.delivered(category)
      #expect(read == DeliveredCategory(category))
      #expect(read.isKnown == (category != nil))
      for action in category?.actions ?? [] { #expect(read.takesText(action.identifier) == (action.textInput != nil)) }
      #expect(read.takesText("another") == nil)
    }
    // The largest still fits into a frame's receipt, in text.
    #expect(try Self.receipt(ten).count - Self.receipt(nil).count == 40)
  }

  @Test func `a receipt that is cut or longer is none, and one of the earlier version has no category`() throws {
    let bytes = try Self.receipt(Self.chat)
    for count in 0..<bytes.count { #expect(bytes[..<count].withUnsafeBytes { ReceiptView($0) == nil }, "\(count)") }
    #expect((bytes + [0]).withUnsafeBytes { ReceiptView($0) == nil })
    var eleven = bytes
    eleven[bytes.count - 9] = 11
    #expect((eleven + Array(repeating: 0, count: 36)).withUnsafeBytes { ReceiptView($0) == nil }, "eleven actions")
    var former = Array(bytes.dropLast(10))
    former[0] = 2
    former.withUnsafeBytes { bytes in
      let receipt = ReceiptView(bytes)
      #expect(receipt != nil && receipt?.delivered == nil)
    }
    former[0] = 3
    #expect(former.withUnsafeBytes { ReceiptView($0) == nil })
  }

  @Test func `a response is judged by the category as it was`() throws {
    let (opened, dismissed) = (NotificationAction.defaultIdentifier, NotificationAction.dismissIdentifier)
    let rows: [(NotificationCategory?, Name, String?, Bool, ResponseVerdict)] = [
      (Self.chat, "mute", nil, false, .event(.response)), (Self.chat, "reply", "x", false, .event(.response)),
      (Self.chat, "mute", "x", false, .refused(.unexpectedUserText, field: "userText")),
      (Self.chat, "reply", nil, false, .refused(.missingUserText, field: "userText")),
      (Self.chat, "like", nil, false, .refused(.unknownAction, field: "action")),
      (nil, "mute", nil, false, .refused(.unknownCategory, field: "action")),
      (Self.chat, dismissed, nil, false, .event(.dismissed)), (nil, dismissed, nil, false, .silent),
      (nil, opened, nil, false, .event(.response)), (nil, opened, "x", false, .refused(.unexpectedUserText, field: "userText")),
      (Self.chat, "like", nil, true, .event(.response)), (nil, "like", "text", true, .event(.response)),
      (Self.chat, dismissed, "x", true, .refused(.unexpectedUserText, field: "userText")),
      (Self.chat, "like", String(repeating: "x", count: 4_097), true, .refused(.userTextTooLong, field: "userText")),
    ]
    for (category, action, text, isDynamic, expected) in rows {
      let verdict = try Self.delivered(category).judge(action: action, userText: text, isDynamic: isDynamic)
      #expect(verdict == expected, "\(category?.identifier.text ?? "none") \(action) \(text?.prefix(9) ?? "") \(isDynamic)")
    }
  }

  @Test(arguments: ["dynamic", "unanswered"])
  func `a response says that its action is a dynamic one, and that no extension has answered`(_ word: String) throws {
    let frame = ResponseFrame(
      response: "r", receipt: "x", identifier: "i", action: "like", isDynamic: word == "dynamic", isUnanswered: word == "unanswered")
    let text = JSONWriter.text { frame.write(to: &$0) }
    guard case .response(let read) = try withBytes(text, { try DeviceFrame($0) }) else { throw FieldError(field: text, rule: "") }
    #expect(read == frame && text.contains(#""\#(word)":true"#) && text.split(separator: "true").count == 2)
    #expect(try ContractDocument().faults(of: text, as: "frame.response").isEmpty)
    #expect(throws: DeviceFrameError.self) { try withBytes(text.replacing("true", with: "1")) { try DeviceFrame($0) } }
  }

  @Test func `published categories are read as they were written`() throws {
    let value = try #require(ApplicationCategories([Self.chat, DeviceTests.categories[0]]).value)
    #expect(try value.withUnsafeBytes { try ApplicationCategories(json: $0).categories } == [Self.chat, DeviceTests.categories[0]])
    #expect(try ContractDocument().faults(of: String(decoding: value, as: UTF8.self), as: "applicationCategories").isEmpty)
    #expect(ApplicationCategories([]).value == nil)
    for (text, field) in [
      ("{}", "categories"), (#"{"categories":[{}]}"#, "categories[0].identifier"),
      (#"{"categories":[{"identifier":"a"},{"identifier":"a"}]}"#, "categories[1].identifier"),
    ] {
      let error = #expect(throws: FieldError.self) { try withBytes(text) { try ApplicationCategories(json: $0) } }
      #expect(error?.field == field)
    }
    let actions = (0..<11).map { #"{"identifier":"a\#($0)","title":"A"}"# }.joined(separator: ",")
    #expect(throws: FieldError.self) {
      try withBytes(#"{"categories":[{"identifier":"a","actions":[\#(actions)]}]}"#) { try ApplicationCategories(json: $0) }
    }
  }
}

import JSON
import Testing

@testable import Notifications

@Suite struct DeviceTests {
  static let categories = [
    NotificationCategory(
      identifier: "INVITE", options: [.customDismissAction, .hiddenPreviewsShowTitle],
      actions: [
        NotificationAction(identifier: "ACCEPT", title: "Accept", options: [.foreground, .authenticationRequired]),
        NotificationAction(identifier: "DECLINE", title: "Decline", options: [.destructive]),
        NotificationAction(identifier: "REPLY", title: "Reply", textInput: .init(buttonTitle: "Send", placeholder: "Your \"answer\"")),
      ], intentIdentifiers: ["INIntent"], hiddenPreviewsBodyPlaceholder: "An invitation"),
    NotificationCategory(identifier: "PLAIN"),
  ]

  static var registration: Registration {
    Registration(
      device: DeviceToken(RequestFixture.token)!, application: "com.example.shop", user: "ada", since: 1_700_000_000_000, platform: "iOS",
      environment: .production, locale: "de_AT", timeZone: "Europe/Vienna",
      authorization: Authorization(
        status: .authorized, options: [.alert: true, .sound: false, .carPlay: true], previews: .whenAuthenticated),
      categories: categories)
  }

  private func read(_ json: String) throws -> Registration { try withBytes(json) { try Registration(json: $0) } }

  private func error(_ json: String) -> FieldError? {
    do {
      _ = try read(json)
      return nil
    } catch { return error as? FieldError }
  }

  @Test func aRegistrationKeepsEveryMember() throws {
    let json = JSONWriter.text { Self.registration.write(to: &$0) }
    #expect(try read(json) == Self.registration)
    #expect(JSONWriter.text { Self.registration.write(to: &$0) } == json)
    let little = Registration(device: Self.registration.device, application: "a.b", since: 0)
    #expect(try read(JSONWriter.text { little.write(to: &$0) }) == little)
  }

  @Test func `an authorization keeps each option, told or not`() throws {
    for told in Authorization.Option.allCases {
      for isAllowed in [true, false] {
        var registration = Self.registration
        registration.authorization = Authorization(status: .provisional, options: [told: isAllowed])
        let options = try #require(try read(JSONWriter.text { registration.write(to: &$0) }).authorization).options
        for option in Authorization.Option.allCases { #expect(options[option] == (option == told ? isAllowed : nil), "\(option)") }
      }
    }
    var options: Authorization.Options = [.alert: false, .sound: true]
    (options[.alert], options[.sound]) = (true, nil)
    #expect(options == [.alert: true])
  }

  @Test func theDigestIsThatOfEverythingButSince() {
    var other = Self.registration
    other.since += 1
    #expect(other.digest == Self.registration.digest)
    other.user = "grace"
    #expect(other.digest != Self.registration.digest)
  }

  @Test(arguments: [
    ("[]", ""), ("{", ""), (#"{"device":"x"}"#, "device"), (#"{"device":"TOKEN"}"#, "application"),
    (#"{"device":"TOKEN","application":"a b"}"#, "application"), (#"{"device":"TOKEN","application":"a"}"#, "since"),
    (#"{"device":"TOKEN","application":"a","since":-1}"#, "since"), (#"{"device":"TOKEN","application":"a","since":1,"user":""}"#, "user"),
    (#"{"device":"TOKEN","application":"a","since":1,"user":7}"#, "user"),
    (#"{"device":"TOKEN","application":"a","since":1,"environment":"test"}"#, "environment"),
    (#"{"device":"TOKEN","application":"a","since":1,"authorization":[]}"#, "authorization"),
    (#"{"device":"TOKEN","application":"a","since":1,"authorization":{"status":"maybe"}}"#, "authorization.status"),
    (#"{"device":"TOKEN","application":"a","since":1,"authorization":{"status":"denied","alert":1}}"#, "authorization.alert"),
    (#"{"device":"TOKEN","application":"a","since":1,"authorization":{"status":"denied","previews":"x"}}"#, "authorization.previews"),
    (#"{"device":"TOKEN","application":"a","since":1,"categories":{}}"#, "categories"),
    (#"{"device":"TOKEN","application":"a","since":1,"categories":[7]}"#, "categories[0]"),
    (#"{"device":"TOKEN","application":"a","since":1,"categories":[{"identifier":"a"},{}]}"#, "categories[1].identifier"),
    (#"{"device":"TOKEN","application":"a","since":1,"categories":[{"identifier":"a"},{"identifier":"a"}]}"#, "categories[1].identifier"),
    (#"{"device":"TOKEN","application":"a","since":1,"categories":[{"identifier":"a","options":[1]}]}"#, "categories[0].options[0]"),
    (
      #"{"device":"TOKEN","application":"a","since":1,"categories":[{"identifier":"a","actions":[{"identifier":"b"}]}]}"#,
      "categories[0].actions[0].title"
    ),
    (
      #"{"device":"TOKEN","application":"a","since":1,"categories":[{"identifier":"a","actions":[{"identifier":"b","title":"c"},{"identifier":"b","title":"c"}]}]}"#,
      "categories[0].actions[1].identifier"
    ),
    (
      #"{"device":"TOKEN","application":"a","since":1,"categories":[{"identifier":"a","actions":[{"identifier":"b","title":"c","textInput":{"placeholder":1}}]}]}"#,
      "categories[0].actions[0].textInput.placeholder"
    ),
    (
      #"{"device":"TOKEN","application":"a","since":1,"categories":[{"identifier":"a","actions":[{"identifier":"com.apple.UNNotificationDefaultActionIdentifier","title":"c"}]}]}"#,
      "categories[0].actions[0].identifier"
    ),
  ])
  func aWrongMemberIsNamed(_ json: String, _ field: String) {
    #expect(error(json.replacing("TOKEN", with: RequestFixture.token))?.field == field)
  }

  @Test func aCategoryHasAtMostTenActions() throws {
    func json(_ count: Int) -> String {
      let actions = (0..<count).map { #"{"identifier":"a\#($0)","title":"t"}"# }.joined(separator: ",")
      return #"{"device":"\#(RequestFixture.token)","application":"a","since":1,"categories":[{"identifier":"c","actions":[\#(actions)]}]}"#
    }
    #expect(try read(json(10)).categories[0].actions.count == 10)
    #expect(error(json(11))?.field == "categories[0].actions")
  }

  @Test func `where space is short a category has its first two actions`() {
    #expect(Self.categories.map { $0.shortActions.map(\.identifier) } == [["ACCEPT", "DECLINE"], []])
  }

  @Test func unknownOptionsAndMembersArePassedOver() throws {
    let registration = try read(
      #"{"device":"\#(RequestFixture.token)","application":"a","since":1,"more":{},"user":null,"categories":[{"identifier":"c","options":["new","allowInCarPlay"]}]}"#
    )
    #expect(registration.categories[0].options == [.allowInCarPlay])
    #expect(registration.user == nil)
  }

  @Test(
    arguments: [
      (nil, NotificationAction.defaultIdentifier, nil, .event(.response)),
      ("unknown", NotificationAction.defaultIdentifier, nil, .event(.response)),
      ("INVITE", NotificationAction.defaultIdentifier, "x", .refused(.unexpectedUserText, field: "userText")),
      ("INVITE", NotificationAction.dismissIdentifier, nil, .event(.dismissed)),
      ("PLAIN", NotificationAction.dismissIdentifier, nil, .silent), (nil, NotificationAction.dismissIdentifier, nil, .silent),
      ("INVITE", NotificationAction.dismissIdentifier, "x", .refused(.unexpectedUserText, field: "userText")),
      ("INVITE", "ACCEPT", nil, .event(.response)), ("INVITE", "ACCEPT", "x", .refused(.unexpectedUserText, field: "userText")),
      ("INVITE", "REPLY", "x", .event(.response)), ("INVITE", "REPLY", "", .event(.response)),
      ("INVITE", "REPLY", nil, .refused(.missingUserText, field: "userText")),
      ("INVITE", "REPLY", String(repeating: "x", count: 4096), .event(.response)),
      ("INVITE", "REPLY", String(repeating: "x", count: 4097), .refused(.userTextTooLong, field: "userText")),
      ("INVITE", "MAYBE", nil, .refused(.unknownAction, field: "action")),
      ("PLAIN", "ACCEPT", nil, .refused(.unknownAction, field: "action")),
      (nil, "ACCEPT", nil, .refused(.unknownCategory, field: "action")),
      ("other", "ACCEPT", nil, .refused(.unknownCategory, field: "action")),
    ] as [(Name?, Name, String?, ResponseVerdict)])
  func aResponseIsJudgedByItsCategory(_ category: Name?, _ action: Name, _ userText: String?, _ verdict: ResponseVerdict) {
    #expect(Self.registration.judge(category: category, action: action, userText: userText) == verdict)
  }

  @Test func aChangeLeavesTheRestAsItWas() {
    var registration = Self.registration
    RegistrationChange.settings(SettingsFrame(request: "s", authorization: Authorization(status: .denied))).apply(to: &registration)
    #expect(registration.authorization == Authorization(status: .denied))
    #expect(registration.locale == "de_AT" && registration.categories == Self.categories)
    RegistrationChange.categories(CategoriesFrame(categories: [])).apply(to: &registration)
    #expect(registration.categories.isEmpty && registration.user == "ada")
  }
}

extension Registration {
  /// Judges a response by the categories that the device has registered.
  func judge(category: Name?, action: Name, userText: String?) -> ResponseVerdict {
    DeliveredCategory(categories.first { $0.identifier == category }).judge(action: action, userText: userText)
  }
}

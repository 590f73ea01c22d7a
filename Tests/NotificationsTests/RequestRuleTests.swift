import JSON
import Testing

@testable import Notifications

/// One line of the rule book: a change to a valid request, and what it is answered with.
struct RuleCase: CustomTestStringConvertible, Sendable {
  var headers: [String: String?] = [:]
  var value: String? = #"{"aps":{"alert":"Hello"}}"#
  var reason: RejectionReason?
  var field = ""

  var testDescription: String { "\(headers) \(value?.prefix(80) ?? "null") → \(reason?.rawValue ?? "accepted") \(field)" }

  static func header(_ name: String, _ value: String?, _ reason: RejectionReason?, field: String? = nil) -> RuleCase {
    RuleCase(headers: [name: value], reason: reason, field: reason == nil ? "" : field ?? name)
  }

  static func payload(_ value: String?, _ reason: RejectionReason?, _ field: String = "") -> RuleCase {
    RuleCase(value: value, reason: reason, field: field)
  }

  static func mdm(_ value: String, _ field: String? = nil) -> RuleCase {
    RuleCase(
      headers: ["apns-push-type": "mdm"], value: value, reason: field == nil ? nil : .badRequestPayload, field: field ?? "")
  }

  static func activity(_ member: String, _ key: String? = nil) -> RuleCase {
    var rule = aps(member, key)
    rule.headers = ["apns-push-type": "liveactivity", "apns-topic": "com.example.shop.push-type.liveactivity"]
    return rule
  }

  static func aps(_ member: String, _ key: String? = nil) -> RuleCase {
    RuleCase(value: "{\"aps\":{\(member)}}", reason: key == nil ? nil : .badRequestPayload, field: key.map { "aps.\($0)" } ?? "")
  }
}

private let id = "123e4567-e89b-12d3-a456-42665544000a"
private let origin =
  #"{"cluster":"east","topic":"notifications.requests","partition":3,"offset":7,"timestamp":1699999999000,"why":"replay"}"#

@Suite struct RequestRuleTests {
  static let headerRules: [RuleCase] = [
    .header("apns-id", id, nil),
    .header("apns-id", id.uppercased(), nil),
    .header("apns-id", "", .badMessageID),
    .header("apns-id", "123e4567e89b12d3a45642665544000a", .badMessageID),
    .header("apns-id", id + "0", .badMessageID),
    .header("apns-id", "123e4567-e89b-12d3-a456_42665544000a", .badMessageID),
    .header("apns-topic", nil, .missingTopic),
    .header("apns-topic", "", .badTopic),
    .header("apns-topic", "com.example shop", .badTopic),
    .header("apns-topic", String(repeating: "a", count: 255), nil),
    .header("apns-topic", String(repeating: "a", count: 256), .badTopic),
    .header("apns-collapse-id", "", .badCollapseID),
    .header("apns-collapse-id", String(repeating: "x", count: 64), nil),
    .header("apns-collapse-id", String(repeating: "x", count: 65), .badCollapseID),
    .header("apns-collapse-id", String(repeating: "é", count: 32), nil),
    .header("apns-collapse-id", String(repeating: "é", count: 33), .badCollapseID),
    .header("apns-collapse-id", "a\u{7}b", .badCollapseID),
    .header("apns-priority", "10", nil),
    .header("apns-priority", "5", nil),
    .header("apns-priority", "1", nil),
    .header("apns-priority", "0", .badPriority),
    .header("apns-priority", "", .badPriority),
    .header("apns-priority", "10 ", .badPriority),
    .header("apns-push-type", "alert", nil),
    .header("apns-push-type", "mdm", nil),
    .header("apns-push-type", "Alert", .invalidPushType),
    .header("apns-push-type", "", .invalidPushType),
    .header("apns-push-type", "voip", .badTopic, field: "apns-topic"),
    .header("apns-expiration", "0", nil),
    .header("apns-expiration", "1700003600", nil),
    .header("apns-expiration", "9223372036854775807", nil),
    .header("apns-expiration", "9223372036854775808", .badExpirationDate),
    .header("apns-expiration", "-1", .badExpirationDate),
    .header("apns-expiration", "", .badExpirationDate),
    .header("apns-expiration", "1.5", .badExpirationDate),
    .header("apns-channel-id", "abc", .featureNotEnabled),
    .header("target", nil, .missingDeviceToken),
    .header("target", "", .missingDeviceToken),
    .header("target", "device:" + RequestFixture.token.uppercased(), nil),
    .header("target", "device:" + RequestFixture.token.dropLast(), .badDeviceToken),
    .header("target", "device:" + RequestFixture.token.dropLast(2), .badDeviceToken),
    .header("target", "device:" + String(repeating: "ab", count: 256), nil),
    .header("target", "device:" + String(repeating: "ab", count: 257), .badDeviceToken),
    .header("target", "device:" + String(repeating: "g", count: 64), .badDeviceToken),
    .header("target", RequestFixture.token, .badDeviceToken),
    .header("target", "user:ada", nil),
    .header("target", "user:", .badDeviceToken),
    .header("target", "user:" + String(repeating: "u", count: 256), nil),
    .header("target", "user:" + String(repeating: "u", count: 257), .badDeviceToken),
    .header("target", "user:a\nb", .badDeviceToken),
    .header("target", "channel:news", .featureNotEnabled),
    .header("operation", "notify", nil),
    .header("operation", "cancel", .badRequestPayload, field: "identifiers"),
    .header("operation", "Notify", .badRequestParams),
    .header("operation", "", .badRequestParams),
    .header("trigger", #"{"type":"push"}"#, nil),
    .header("trigger", #"{"type":"push","timeInterval":60}"#, .badRequestParams),
    .header("trigger", #"{"type":"timeInterval","type":"push","timeInterval":60}"#, .badRequestParams, field: "trigger.type"),
    .header("trigger", #"{"type":"timeInterval","timeInterval":60}"#, nil),
    .header("trigger", #"{"type":"calendar","dateComponents":{"hour":9}}"#, nil),
    .header("trigger", #"{"type":"timeInterval","timeInterval":60,"repeats":true,"late":1}"#, nil),
    .header("trigger", #"{"type":"timeInterval","timeInterval":60,"repeats":true,"late":0}"#, .badRequestParams, field: "trigger.late"),
    .header("trigger", #"{"type":"timeInterval","seconds":60}"#, .badRequestParams),
    .header("trigger", #"{"type":"calendar"}"#, .badRequestParams, field: "trigger.dateComponents"),
    .header("trigger", #"{"type":"moon"}"#, .badRequestParams, field: "trigger.type"),
    .header("trigger", "{", .badRequestParams),
    .header("trigger", "", .badRequestParams),
    .header("trigger", "[]", .badRequestParams),
    .header("trigger", String(repeating: " ", count: 2049), .badRequestParams),
    .header("trigger", #"{"type":"location"}"#, .badRequestParams, field: "trigger.region"),
    .header(
      "trigger", #"{"type":"location","region":{"identifier":"a","latitude":91,"longitude":0,"radius":1}}"#, .badRequestParams,
      field: "trigger.region"),
    .header(
      "trigger", #"{"type":"location","region":{"identifier":"a","latitude":9,"longitude":0,"radius":0}}"#, .badRequestParams,
      field: "trigger.region.radius"),
    .header(
      "trigger", #"{"type":"location","region":{"latitude":9,"longitude":0,"radius":5}}"#, .badRequestParams,
      field: "trigger.region.identifier"),
    .header(
      "trigger", #"{"type":"location","repeats":1,"region":{"identifier":"a","latitude":9,"longitude":0,"radius":5}}"#, .badRequestParams,
      field: "trigger.repeats"),
    .header(
      "trigger",
      #"{"type":"location","repeats":true,"region":{"identifier":"a","latitude":9,"longitude":0,"radius":5,"notifyOnEntry":false,"notifyOnExit":true}}"#,
      nil),
    .header(
      "trigger", #"{"type":"location","region":{"identifier":"a","latitude":9,"longitude":0,"radius":5,"notifyOnEntry":false}}"#,
      .badRequestParams, field: "trigger.region"),
    .header("trigger", #"{"type":"location","beacon":{"identifier":"a","uuid":"123e4567-e89b-12d3-a456-42665544000a","major":1}}"#, nil),
    .header("trigger", #"{"type":"location","beacon":{"identifier":"a"}}"#, .badRequestParams, field: "trigger.beacon.uuid"),
    .header(
      "trigger", #"{"type":"location","region":{"identifier":"a","latitude":9,"longitude":0,"radius":5},"repeat":true}"#,
      .badRequestParams),
    .header(
      "trigger", #"{"type":"location","region":{"identifier":"a","latitude":9,"longitude":0,"radius":5,"notifyOnEntrance":false}}"#,
      .badRequestParams, field: "trigger.region"),
    .header(
      "trigger", #"{"type":"location","beacon":{"identifier":"a","uuid":"123e4567-e89b-12d3-a456-42665544000a","radius":5}}"#,
      .badRequestParams, field: "trigger.beacon"),
    .header(
      "trigger",
      #"{"type":"location","region":{"identifier":"a","latitude":9,"longitude":0,"radius":5},"beacon":{"identifier":"a"}}"#,
      .badRequestParams, field: "trigger.region"),
    .header("carillon-origin", origin, nil),
    .header("carillon-origin", "", .badRequestParams),
    .header("carillon-origin", "{}", .badRequestParams),
    .header("carillon-origin", origin.replacing("replay", with: "again"), .badRequestParams),
    .header("carillon-origin", origin.replacing(":7,", with: ":-7,"), .badRequestParams),
    .header("carillon-origin", origin.replacing("notifications.requests", with: "a b"), .badRequestParams),
    .header("traceparent", "nonsense", nil),
    .header("unknown", "anything", nil),
    RuleCase(headers: ["apns-push-type": "background", "apns-priority": "10"], reason: .badPriority, field: "apns-priority"),
    RuleCase(headers: ["apns-push-type": "background", "apns-priority": "1"], reason: .badPriority, field: "apns-priority"),
    RuleCase(headers: ["apns-push-type": "background", "apns-priority": "5"]),
    RuleCase(headers: ["apns-push-type": "background"]),
    RuleCase(
      headers: ["apns-priority": "10"], value: #"{"aps":{"content-available":1}}"#, reason: .badPriority, field: "apns-priority"),
    RuleCase(headers: ["operation": "remove", "trigger": #"{"type":"push"}"#], reason: .badRequestParams, field: "trigger"),
  ]

  static let whenOpenedRules: [RuleCase] = [
    RuleCase(headers: ["target": "user:ada", "when-opened": "remove"]), RuleCase(headers: ["target": "user:ada", "When-Opened": "remove"]),
    RuleCase(headers: ["target": "user:ada", "when-opened": "cancel"], reason: .badRequestParams, field: "when-opened"),
    RuleCase(headers: ["target": "user:ada", "when-opened": ""], reason: .badRequestParams, field: "when-opened"),
    .header("when-opened", "remove", .badRequestParams),
    RuleCase(
      headers: ["target": "user:ada", "when-opened": "remove", "operation": "remove", "apns-collapse-id": "a"], reason: .badRequestParams,
      field: "when-opened"),
  ]

  static let suffixRules: [RuleCase] = PushType.allCases.flatMap { type -> [RuleCase] in
    let suffix = type.topicSuffix.description
    var priority: [String: String?] = ["apns-push-type": type.name.description]
    priority["apns-topic"] = "com.example.shop" + suffix
    var bare = priority
    bare["apns-topic"] = suffix.isEmpty ? "com.example.shop" : suffix
    return [
      RuleCase(headers: priority),
      RuleCase(headers: bare, reason: suffix.isEmpty ? nil : .badTopic, field: suffix.isEmpty ? "" : "apns-topic"),
    ]
  }

  /// What a payload without `aps` is answered with, by its push type.
  static let bareRules: [RuleCase] = PushType.allCases.flatMap { type -> [RuleCase] in
    let headers = ["apns-push-type": type.name.description, "apns-topic": "com.example.shop" + type.topicSuffix.description]
    return [#"{"call":"7","from":{"name":"Ada"}}"#, #"{"aps":null,"call":"7"}"#, "{}"].map { value in
      switch type {
      case .voip, .complication, .fileprovider: RuleCase(headers: headers, value: value)
      case .mdm: RuleCase(headers: headers, value: value, reason: .badRequestPayload, field: "mdm")
      default: RuleCase(headers: headers, value: value, reason: .badRequestPayload, field: "aps")
      }
    } + [RuleCase(headers: headers, value: #"{"aps":[]}"#, reason: .badRequestPayload, field: "aps")]
  }

  static let payloadRules: [RuleCase] = [
    .payload(nil, .payloadEmpty, "payload"),
    .payload("", .payloadEmpty, "payload"),
    .payload("[]", .badRequestPayload, "payload"),
    .payload("null", .badRequestPayload, "payload"),
    .payload("{", .badRequestPayload, "payload"),
    .payload("{}", .badRequestPayload, "aps"),
    .payload(#"{"aps":[]}"#, .badRequestPayload, "aps"),
    .payload(#"{"aps":{}}"#, nil),
    .payload(#"{"aps":{}} x"#, .badRequestPayload, "payload"),
    .payload(#"{"aps":{},"aps":{}}"#, .badRequestPayload, "aps"),
    .payload(#"{"aps":{"alert":"a"},"custom":[1,{"b":null}]}"#, nil),
    .payload(#"{"\u0061ps":{"badge":"a"}}"#, .badRequestPayload, "aps.badge"),
    .payload(#"{"aps":{"b\u0061dge":"a"}}"#, .badRequestPayload, "aps.badge"),
    .payload("{\"aps\":{\"alert\":\"" + String(repeating: "x", count: 4096 - 20) + "\"}}", nil),
    .payload("{\"aps\":{\"alert\":\"" + String(repeating: "x", count: 4096 - 19) + "\"}}", .payloadTooLarge, "payload"),
    .payload(String(repeating: "x", count: 1 << 20), .payloadTooLarge, "payload"),
    .aps(#""alert":"Hello""#), .aps(#""alert":7"#, "alert"), .aps(#""alert":null"#), .aps(#""alert":["a"]"#, "alert"),
    .aps(#""alert":{"title":"a","subtitle":"b","body":"c","launch-image":"d","loc-key":"e","loc-args":["f"],"unknown":7}"#),
    .aps(#""alert":{"title":7}"#, "alert.title"), .aps(#""alert":{"subtitle":{}}"#, "alert.subtitle"),
    .aps(#""alert":{"title":null,"subtitle":null,"body":null,"launch-image":null,"loc-key":null,"loc-args":null}"#),
    .aps(#""alert":{"launch-image":1}"#, "alert.launch-image"),
    .aps(#""alert":{"title-loc-key":1}"#, "alert.title-loc-key"), .aps(#""alert":{"subtitle-loc-key":1}"#, "alert.subtitle-loc-key"),
    .aps(#""alert":{"loc-key":1}"#, "alert.loc-key"), .aps(#""alert":{"title-loc-args":"a"}"#, "alert.title-loc-args"),
    .aps(#""alert":{"subtitle-loc-args":[1]}"#, "alert.subtitle-loc-args"), .aps(#""alert":{"loc-args":{}}"#, "alert.loc-args"),
    .aps(#""alert":{"body":"a","body":"b"}"#, "alert.body"),
    .aps(#""badge":0"#), .aps(#""badge":2147483647"#), .aps(#""badge":2147483648"#, "badge"), .aps(#""badge":7.5"#, "badge"),
    .aps(#""badge":-1"#, "badge"), .aps(#""badge":"1""#, "badge"), .aps(#""badge":true"#, "badge"),
    .aps(#""badge":1,"badge":2"#, "badge"),
    .aps(#""sound":"chime.caf""#), .aps(#""sound":{"critical":1,"name":"a","volume":0.5,"x":1}"#), .aps(#""sound":1"#, "sound"),
    .aps(#""sound":{"critical":true}"#, "sound.critical"), .aps(#""sound":{"critical":2}"#, "sound.critical"),
    .aps(#""sound":{"name":1}"#, "sound.name"), .aps(#""sound":{"volume":1.01}"#, "sound.volume"),
    .aps(#""sound":{"critical":1,"critical":0}"#, "sound"), .aps(#""sound":{"name":null,"name":"a"}"#, "sound"),
    .aps(#""sound":{"x":1,"x":2,"volume":0}"#), .aps(#""sound":{}"#),
    .aps(#""sound":{"volume":"1"}"#, "sound.volume"), .aps(#""sound":{"volume":-0.1}"#, "sound.volume"),
    .aps(#""thread-id":"a""#), .aps(#""thread-id":1"#, "thread-id"), .aps(#""category":"a""#), .aps(#""category":1"#, "category"),
    .aps(#""target-content-id":1"#, "target-content-id"), .aps(#""filter-criteria":1"#, "filter-criteria"),
    .aps(#""content-available":1"#), .aps(#""content-available":0"#), .aps(#""mutable-content":0"#),
    .aps(#""content-available":true"#, "content-available"), .aps(#""mutable-content":1,"alert":"a""#),
    .aps(#""mutable-content":2"#, "mutable-content"), .aps(#""mutable-content":"1""#, "mutable-content"),
    .aps(#""interruption-level":"passive""#), .aps(#""interruption-level":"active""#), .aps(#""interruption-level":"time-sensitive""#),
    .aps(#""interruption-level":"critical""#), .aps(#""interruption-level":"loud""#, "interruption-level"),
    .aps(#""relevance-score":0.5"#), .aps(#""relevance-score":1"#), .aps(#""relevance-score":1.5"#, "relevance-score"),
    .aps(#""relevance-score":-1"#, "relevance-score"), .aps(#""stale-date":1"#), .aps(#""stale-date":"1""#, "stale-date"),
    .aps(#""timestamp":{}"#, "timestamp"), .aps(#""dismissal-date":"a""#, "dismissal-date"), .aps(#""event":"update""#),
    .aps(#""event":"start""#), .aps(#""event":"end""#), .aps(#""event":"pause""#, "event"), .aps(#""content-state":{"a":1}"#),
    .aps(#""content-state":[]"#, "content-state"), .aps(#""attributes":1"#, "attributes"), .aps(#""attributes-type":1"#, "attributes-type"),
    .aps(#""unknown-member":[1]"#),
    .aps(#""badge":null,"sound":null,"thread-id":null,"category":null,"target-content-id":null,"filter-criteria":null"#),
    .aps(#""content-available":null,"mutable-content":null,"interruption-level":null,"relevance-score":null,"event":null"#),
    .aps(#""stale-date":null,"timestamp":null,"dismissal-date":null,"content-state":null,"attributes-type":null,"attributes":null"#),
    .aps(#""sound":{"critical":null,"name":null,"volume":null}"#), .payload(#"{"aps":{"badge":nul}}"#, .badRequestPayload, "payload"),
    .payload(#"{"aps":null}"#, .badRequestPayload, "aps"), .payload(#"{"mdm":"magic"}"#, .badRequestPayload, "aps"),
    .aps(#""alert":{"title":{"loc-key":"a"}}"#, "alert.title"), .aps(#""relevance-score":100"#, "relevance-score"),
  ]

  /// What is different in a Live Activity, and for a device management server.
  static let pushTypeRules: [RuleCase] = [
    .mdm(#"{"mdm":"magic"}"#), .mdm(#"{"mdm":"magic","aps":null}"#), .mdm(#"{"mdm":"magic","more":[1]}"#), .mdm(#"{"aps":{}}"#),
    .mdm("{}", "mdm"), .mdm(#"{"mdm":null}"#, "mdm"), .mdm(#"{"mdm":7}"#, "mdm"), .mdm(#"{"mdm":"a","mdm":"b"}"#, "mdm"),
    .mdm(#"{"mdm":"magic","aps":{"badge":"x"}}"#, "aps.badge"), .mdm(#"{"mdm":"magic","aps":7}"#, "aps"),
    .activity(#""alert":{"title":{"loc-key":"a","loc-args":["b"]},"body":{"loc-key":"c"},"sound":"chime.caf"}"#),
    .activity(#""alert":{"title":"a","body":{"loc-key":"c","loc-args":null,"more":1}}"#),
    .activity(#""relevance-score":100"#), .activity(#""relevance-score":-7.5"#), .activity(#""relevance-score":null"#),
    .activity(#""relevance-score":"100""#, "relevance-score"), .activity(#""alert":{"title":{}}"#, "alert.title"),
    .activity(#""alert":{"body":{"loc-key":7}}"#, "alert.body"), .activity(#""alert":{"body":{"loc-key":null}}"#, "alert.body"),
    .activity(#""alert":{"body":{"loc-key":"a","loc-args":"b"}}"#, "alert.body"),
    .activity(#""alert":{"subtitle":{"loc-key":"a"}}"#, "alert.subtitle"), .activity(#""alert":{"title":["a"]}"#, "alert.title"),
  ]

  static let removeRules: [RuleCase] = [
    (nil, nil, .badRequestPayload, "identifiers"), ("score", nil, nil, ""), ("score", "{}", nil, ""),
    (nil, #"{"identifiers":["a"]}"#, nil, ""), (nil, #"{"identifiers":["a","b"]}"#, .badRequestPayload, "identifiers"),
    ("score", #"{"identifiers":["a"]}"#, .badRequestPayload, "identifiers"),
    (nil, #"{"identifiers":[]}"#, .badRequestPayload, "identifiers"),
    (nil, #"{"identifiers":"a"}"#, .badRequestPayload, "identifiers"), (nil, #"{"identifiers":[""]}"#, .badRequestPayload, "identifiers"),
    (nil, #"{"identifiers":[1]}"#, .badRequestPayload, "identifiers"), (nil, "{}", .badRequestPayload, "identifiers"),
    (nil, "[", .badRequestPayload, "payload"),
    (nil, "{\"identifiers\":[\"" + String(repeating: "a", count: 65) + "\"]}", .badRequestPayload, "identifiers"),
    (nil, "{\"identifiers\":[" + (0..<101).map { "\"\($0)\"" }.joined(separator: ",") + "]}", .badRequestPayload, "identifiers"),
    (nil, String(repeating: " ", count: 16_385), .payloadTooLarge, "payload"),
  ].map { (collapseID: String?, value: String?, reason: RejectionReason?, field: String) in
    RuleCase(headers: ["operation": "remove", "apns-collapse-id": collapseID], value: value, reason: reason, field: field)
  }

  private static func removal(_ value: String, collapseID: String? = nil, _ field: String? = nil) -> RuleCase {
    RuleCase(
      headers: ["operation": "remove", "apns-collapse-id": collapseID], value: value, reason: field == nil ? nil : .badRequestPayload,
      field: field ?? "")
  }

  private static let revision = Revision(timestamp: 1, partition: 3, offset: 7)

  static let removeAllRules: [RuleCase] = [
    removal(#"{"all":true}"#), removal(#"{"all":true,"more":1}"#), removal(#"{"all":false}"#, collapseID: "score"),
    removal(#"{"all":false}"#, "identifiers"), removal(#"{"all":true}"#, collapseID: "score", "identifiers"),
    removal(#"{"all":true,"identifiers":["a"]}"#, "identifiers"), removal(#"{"all":1}"#, "all"), removal(#"{"all":null}"#, "all"),
    removal(#"{"all":true,"all":true}"#, "all"), removal(#"{"all":true,"notNewerThan":"\#(revision)"}"#, "notNewerThan"),
    removal(#"{"notNewerThan":"\#(revision)"}"#, collapseID: "score"),
    removal(#"{"notNewerThan":"x"}"#, collapseID: "score", "notNewerThan"),
    removal(#"{"notNewerThan":7}"#, collapseID: "score", "notNewerThan"),
    removal(#"{"notNewerThan":"\#(revision)","notNewerThan":"\#(revision)"}"#, collapseID: "score", "notNewerThan"),
    removal(#"{"identifiers":["a"],"notNewerThan":"\#(revision)"}"#), removal(#"{"notNewerThan":"\#(revision)"}"#, "identifiers"),
  ]

  private static let allRules =
    [headerRules, suffixRules, bareRules, payloadRules, pushTypeRules, removeRules, removeAllRules, whenOpenedRules].flatMap(\.self)

  @Test(arguments: allRules)
  func eachRuleAnswersWithItsReasonAndField(_ rule: RuleCase) {
    let reading = RequestFixture.valid(rule.headers, value: rule.value).read()
    #expect(reading.rejection?.reason == rule.reason)
    #expect((reading.rejection?.field.description ?? "") == rule.field)
    if let rejection = reading.rejection { #expect(rejection.rule.description.hasSuffix(".")) }
  }

  /// Each step also breaks every later rule, so the reason shows which one is checked first.
  @Test func rulesAreCheckedInTheirOrder() {
    let broken: [(String, String)] = [
      ("apns-id", "x"), ("apns-topic", "x y"), ("apns-collapse-id", ""), ("apns-priority", "x"), ("apns-push-type", "x"),
      ("apns-expiration", "x"), ("target", "x"), ("operation", "x"), ("trigger", "x"), ("carillon-origin", "x"),
    ]
    let fixed: [String: String?] = ["target": "device:\(RequestFixture.token)", "apns-topic": "a.b"]
    for index in broken.indices {
      var headers: [(String, String?)] = broken[index...].map { ($0.0, $0.1) }
      for (name, value) in fixed where !headers.contains(where: { $0.0 == name }) { headers.append((name, value)) }
      let fixture = RequestFixture(value: nil, headers: headers)
      #expect(fixture.read().rejection?.field.description == broken[index].0)
    }
  }

  @Test func nestingThatIsTooDeepIsRefusedAsThat() throws {
    func nested(_ count: Int) -> String { String(repeating: "[", count: count) + String(repeating: "]", count: count) }
    let deepest = RequestFixture.valid(value: #"{"aps":{},"a":\#(nested(62))}"#)
    // A device reads it within a frame.
    var entry = ByteBuffer()
    var frame = JSONWriter()
    try DeliveryEntry(try #require(deepest.read().view)).append(to: &entry)
    try entry.withUnsafeBytes { bytes in
      let view = try #require(DeliveryEntryView(bytes))
      ServerFrames.notify(
        view, revision: Revision(view.source), delivery: 1, presentation: [.banner, .list], receipt: ("r" as StaticString).bytes, to: &frame
      )
    }
    _ = try frame.withUnsafeBytes { try ServerFrame($0) }
    let tooDeep: [(RequestFixture, field: String, levels: String)] = [
      (.valid(value: #"{"aps":{},"a":\#(nested(63))}"#), "payload", "63"),
      (.valid(value: #"{"aps":{"alert":\#(nested(500))}}"#), "payload", "63"),
      (.valid(["operation": "remove"], value: #"{"identifiers":["a"],"a":\#(nested(64))}"#), "payload", "64"),
      (.valid(["trigger": #"{"type":"push","a":\#(nested(8))}"#]), "trigger", "8"),
    ]
    for (fixture, field, levels) in tooDeep {
      let rejection = fixture.read().rejection
      #expect(rejection?.field.description == field)
      #expect(rejection?.rule.description.hasSuffix("at most \(levels) objects and arrays lie inside one another.") == true)
    }
  }

  @Test func anIDInUpperCaseIsTheSameID() throws {
    let upper = try #require(RequestFixture.valid(["apns-id": id.uppercased()]).read().view)
    #expect(upper.envelope.id.description == id && !upper.envelope.isDerivedID)
    #expect(NotificationID(id.uppercased()) == NotificationID(id))
  }

  @Test func aHeaderStandingTwiceIsRefused() {
    for header in RequestHeader.allCases where header != .traceparent {
      let name = header.name.description
      let fixture = RequestFixture(headers: [(name, "a"), ("other", "x"), ("other", "x"), (name, "a")])
      #expect(fixture.read().rejection?.reason == .duplicateHeaders)
      #expect(fixture.read().rejection?.field.description == name)
      let inTwoCases = RequestFixture(headers: [(name, "a"), (name.uppercased(), "a")])
      #expect(inTwoCases.read().rejection?.reason == .duplicateHeaders)
    }
    #expect(RequestFixture(headers: [("target", nil), ("target", "user:ada"), ("apns-topic", "a.b")]).read().view != nil)
  }

  @Test func `a trace that stands more than once is dropped, and the request is accepted`() throws {
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    let valid: [(String, String?)] = [("target", "user:ada"), ("apns-topic", "a.b")]
    let once = try #require(RequestFixture(headers: valid + [("traceparent", nil), ("traceparent", trace)]).read().view)
    #expect(once.envelope.traceparent.text == trace)
    for names in [["traceparent", "traceparent"], ["traceparent", "Traceparent"], ["traceparent", "traceparent", "traceparent"]] {
      let view = try #require(RequestFixture(headers: valid + names.map { ($0, trace) }).read().view)
      #expect(view.envelope.traceparent.isEmpty)
    }
    // One that is malformed makes the other no better.
    let mixed = try #require(RequestFixture(headers: valid + [("traceparent", "x"), ("traceparent", trace)]).read().view)
    #expect(mixed.envelope.traceparent.isEmpty)
    let foreign = ["tracestate", "b3", "x-request-id"].flatMap { [($0, "a"), ($0, "b")] as [(String, String?)] }
    #expect(RequestFixture(headers: valid + foreign).read().view != nil)
  }

  @Test func `the case of a header's name does not matter`() throws {
    for header in RequestHeader.allCases {
      let name = header.name.description
      #expect(RequestHeader.named(Name(name.uppercased())) == header)
      // Bytes that differ from a hyphen as a letter differs from its capital.
      #expect(RequestHeader.named(Name(name.replacing("-", with: "\r"))) == (name.contains("-") ? nil : header))
      #expect(RequestHeader.named(Name(String(name.dropLast()) + "\u{0}")) == nil)
    }
    let fixture = RequestFixture(
      headers: [
        ("Target", "user:ada"), ("APNS-TOPIC", "com.example"), ("Apns-Collapse-Id", "order-7"), ("Apns-Expiration", "1700000060"),
        ("Apns-Id", id), ("apns-Priority", "5"),
      ])
    let view = try #require(fixture.read().view)
    #expect(view.envelope.collapseID.text == "order-7" && view.expiration == 1_700_000_060)
    #expect(view.envelope.id.description == id && view.priority == 5 && view.unknownHeader == nil)
  }

  @Test func `a header of Apple's prefix that no rule knows is noted, and named in a rejection`() throws {
    let accepted = try #require(RequestFixture.valid(["Apns-Colapse-Id": "x", "other": "y"]).read().view)
    #expect(accepted.unknownHeader?.path == "Apns-Colapse-Id")
    #expect(RequestFixture.valid(["other": "y", "apns": "z", "x-apns-topic": "w"]).read().view?.unknownHeader == nil)
    let rejected = try #require(RequestFixture(headers: [("target", "user:ada"), ("apns-topci", "a.b")]).read().rejection)
    #expect(rejected.reason == .missingTopic && rejected.rule.hasSuffix("in apns-topic. The header apns-topci is unknown."))
    // What is no plain name is not repeated, for the rejection is logged.
    for name in ["apns-\u{1B}[2J", "apns-" + String(repeating: "x", count: 60), "apns-é"] {
      let rejected = try #require(RequestFixture(headers: [("target", "user:ada"), (name, "a.b")]).read().rejection)
      #expect(rejected.rule.hasSuffix("A header whose name begins with apns- is unknown."))
    }
  }

  @Test(
    arguments: [
      (#""alertt":"x""#, "aps.alertt"), (#""alert":{"titel":"x","body":"y"}"#, "aps.alert.titel"), (#""alert":{"":"x"}"#, "aps.alert."),
      (#""alert":"x","":1,"b":2"#, "aps."), (#""alert":{"sound":1,"summary-arg":"x","action-loc-key":null}"#, nil),
      (#""content-changed":true,"url-args":["x"]"#, nil), (#""alert":"x""#, nil),
      (#""sound":{"name":"a","volumn":1}"#, "aps.sound.volumn"), (#""sound":{"name":"a","critical":1,"volume":1}"#, nil),
    ] as [(String, String?)])
  func `a member of aps that no rule knows is noted, and named in a rejection`(members: String, path: String?) throws {
    let view = try #require(RequestFixture.valid(value: #"{"aps":{\#(members)},"custom":{"alertt":1}}"#).read().view)
    #expect(view.facts.unknown?.path == path)
    let rejected = try #require(RequestFixture.valid(value: #"{"aps":{\#(members),"badge":"x"}}"#).read().rejection)
    let isPlain = path?.hasSuffix(".") == false
    #expect(rejected.rule.hasSuffix(isPlain ? "The member \(path ?? "") is unknown." : path == nil ? "0 clears it." : "is unknown."))
  }

  @Test func theRecordKeyStandsInForTheTarget() {
    guard case .user(let user)? = RequestFixture.valid(["target": nil], key: "user:ada").read().view?.target else {
      Issue.record("no user")
      return
    }
    #expect(user.text == "ada")
    #expect(RequestFixture.valid(["target": nil], key: "ada").read().rejection?.field.description == "key")
  }

  @Test func bytesThatAreNotUTF8AreRefused() {
    for (name, reason) in [("apns-collapse-id", RejectionReason.badCollapseID), ("target", .badDeviceToken)] {
      let fixture = RequestFixture.valid([name: nil])
      var record = fixture.record
      let bytes: [UInt8] = name == "target" ? Array("user:".utf8) + [0xC3] : [0x41, 0xFF]
      bytes.withUnsafeBytes { value in
        name.withCString { record.headers.take(name: $0, value: value) }
        #expect(RequestView.read(record, limits: RequestLimits()).rejection?.reason == reason)
      }
    }
  }

  @Test func theLimitsAreConfigurable() {
    let large = "{\"aps\":{\"alert\":\"" + String(repeating: "x", count: 5000) + "\"}}"
    #expect(RequestFixture.valid(value: large).read().rejection?.reason == .payloadTooLarge)
    #expect(RequestFixture.valid(value: large).read(RequestLimits(payloadBytes: 8192)).view != nil)
    let voip: [String: String?] = ["apns-push-type": "voip", "apns-topic": "com.example.shop.voip"]
    #expect(RequestFixture.valid(voip, value: large).read().view != nil)
    #expect(RequestFixture.valid(voip, value: large).read(RequestLimits(voipPayloadBytes: 100)).rejection?.reason == .payloadTooLarge)
  }

  @Test func aRuleAboutSizeNamesTheLimitThatWasSet() {
    let fixture = RequestFixture.valid(value: #"{"aps":{"alert":"\#(String(repeating: "a", count: 400))"}}"#)
    #expect(fixture.read(RequestLimits(payloadBytes: 300)).rejection?.rule.contains("300 bytes") == true)
    let call = RequestFixture.valid(["apns-push-type": "voip", "apns-topic": "com.example.shop.voip"], value: fixture.record.value.text)
    #expect(call.read(RequestLimits(payloadBytes: 300, voipPayloadBytes: 350)).rejection?.rule.contains("350 bytes") == true)
  }
}

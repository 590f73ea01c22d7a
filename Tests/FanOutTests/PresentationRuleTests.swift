import Notifications
import TestSupport
import Testing

@testable import FanOut

extension Registration {
  /// A registration of which only this is of interest.
  static func of(_ authorization: Authorization?, platform: String? = nil) -> Registration {
    Registration(
      device: DeviceToken(String(repeating: "0", count: 64))!, application: "com.example.shop", since: 0, platform: platform,
      authorization: authorization)
  }
}

@Suite struct PresentationRuleTests {
  /// A notification and the settings of its device, as plain words.
  private struct Facts {
    var pushType = PushType.alert
    var has: Set<String> = []
    var level = "active"
    /// "none" where the device has told no authorization.
    var status = "none"
    var platform: String?
    /// What is switched off; and `scheduledDelivery`, where it is switched on.
    var switched: Set<String> = []
    var granted: GrantedLevels = [.critical, .timeSensitive]
    /// The person's quiet hours hold.
    var isNight = false

    // MARK: The naive model

    /// The words of the presentation, with the level that it counts as where it is another; nil: filtered.
    var expected: (words: Set<String>, level: String?)? {
      let isShown = ["alert", "liveactivity"].contains("\(pushType.name)") && !has.isDisjoint(with: ["alert", "sound", "badge"])
      if !isShown { return ([], nil) }
      let isCritical = level == "critical" && !switched.contains("criticalAlert") && granted.contains(.critical)
      let isTimeSensitive = level == "time-sensitive" && !switched.contains("timeSensitive") && granted.contains(.timeSensitive)
      let isDemoted = ["critical", "time-sensitive"].contains(level) && !isCritical && !isTimeSensitive
      let isScheduled = (switched.contains("scheduledDelivery") || isNight) && !isCritical && !isTimeSensitive
      let isQuiet = status == "provisional" || isScheduled
      let isTold = !["denied", "notDetermined"].contains(status)
      let isTelevision = platform?.lowercased() == "tvos"
      let ways: [String: [Bool]] = [
        "banner": [has.contains("alert"), !switched.contains("alert"), !isQuiet, level != "passive", isTold, !isTelevision],
        "lockScreen": [has.contains("alert"), !switched.contains("lockScreen"), !isQuiet, isTold, !isTelevision],
        "list": [has.contains("alert"), !switched.contains("notificationCenter"), isTold, !isTelevision],
        "sound": [has.contains("sound"), isCritical || !switched.contains("sound"), !isQuiet, level != "passive", isTold, !isTelevision],
        "badge": [has.contains("badge"), !switched.contains("badge"), status != "provisional", isTold],
      ]
      var words = Set(ways.filter { !$0.value.contains(false) }.keys)
      if words.isEmpty, pushType == .alert, !has.contains("content-available") { return nil }
      if !words.isEmpty, isQuiet { words.insert("quietly") }
      return (words, isDemoted ? "active" : nil)
    }

    // MARK: The decision

    var flags: PayloadFlags {
      let bits: [String: PayloadFlags] = [
        "alert": .alert, "sound": .sound, "badge": .badge, "content-available": .contentAvailable,
      ]
      var flags = PayloadFlags(has.compactMap { bits[$0] })
      flags.level = InterruptionLevel(rawValue: level) ?? .active
      return flags
    }

    var rule: PresentationRule {
      let authorization = Authorization.Status(rawValue: status).map { status in
        var authorization = Authorization(status: status)
        for option in Authorization.Option.allCases where switched.contains(option.rawValue) {
          authorization.options[option] = option == .scheduledDelivery
        }
        return authorization
      }
      return PresentationRule(.of(authorization, platform: platform))
    }

    var answer: PresentationRule.Answer { rule.answer(for: pushType, flags, isQuiet: isNight, granted: { granted }) }
  }

  private static func words(_ options: PresentationOptions) -> Set<String> {
    let all: [(PresentationOptions, String)] = [
      (.banner, "banner"), (.lockScreen, "lockScreen"), (.list, "list"), (.sound, "sound"), (.badge, "badge"), (.quietly, "quietly"),
    ]
    return Set(all.filter { options.contains($0.0) }.map(\.1))
  }

  private static func subsets(of words: [String]) -> [Set<String>] {
    words.reduce([[]]) { sets, word in sets + sets.map { $0.union([word]) } }
  }

  private static func differs(_ facts: Facts) -> Bool {
    switch (facts.answer, facts.expected) {
    case (.filtered, nil): false
    case (.send(let options, let level), let expected?): words(options) != expected.words || level?.rawValue != expected.level
    default: true
    }
  }

  @Test func `what is shown of a notification is what the table says, for all settings`() {
    var facts = Facts()
    var count = (sent: 0, silent: 0, filtered: 0)
    let statuses = ["none"] + Authorization.Status.allCases.map(\.rawValue)
    for has in Self.subsets(of: ["alert", "sound", "badge", "content-available"]) {
      facts.has = has
      for level in InterruptionLevel.allCases {
        facts.level = level.rawValue
        for status in statuses {
          facts.status = status
          // A device without an authorization has told no switch.
          let options = [
            "alert", "sound", "badge", "lockScreen", "notificationCenter", "timeSensitive", "criticalAlert", "scheduledDelivery",
          ]
          for switched in status == "none" ? [[]] : Self.subsets(of: options) {
            facts.switched = switched
            switch facts.expected {
            case nil: count.filtered += 1
            case let expected? where expected.words.isEmpty: count.silent += 1
            case _?: count.sent += 1
            }
            if Self.differs(facts) { Issue.record("\(facts): \(facts.answer)") }
          }
        }
      }
    }
    #expect(count.sent > 10_000 && count.silent > 10_000 && count.filtered > 10_000, "\(count)")
  }

  @Test func `the push type, the platform and what the application was granted and the quiet hours count for all notifications`() {
    var (facts, random) = (Facts(), SeededRandom(seed: 7))
    for pushType in PushType.allCases {
      for platform in [nil, "iOS", "tvOS", "TVOS", "tvOS 17", "web"] {
        for _ in 0..<400 {
          func some(_ words: [String]) -> Set<String> { Set(words.filter { _ in random.next() % 2 == 0 }) }
          (facts.pushType, facts.platform) = (pushType, platform)
          facts.has = some(["alert", "sound", "badge", "content-available"])
          facts.level = InterruptionLevel.allCases.randomElement(using: &random)?.rawValue ?? ""
          facts.status = Authorization.Status.allCases.randomElement(using: &random)?.rawValue ?? ""
          facts.switched = some(Authorization.Option.allCases.map(\.rawValue))
          facts.isNight = random.next() % 2 == 0
          facts.granted = GrantedLevels(rawValue: .random(in: 0...3, using: &random))
          if Self.differs(facts) { Issue.record("\(facts): \(facts.answer)") }
        }
      }
    }
  }

  @Test func `a filtered notification says why`() {
    func reason(_ change: (inout Facts) -> Void) -> String {
      var facts = Facts(has: ["alert"], status: "authorized")
      change(&facts)
      guard case .filtered(let reason) = facts.answer else { return "sent" }
      return reason.description
    }
    #expect(reason { $0.status = "denied" } == "the person does not allow notifications on the device")
    #expect(reason { $0.status = "notDetermined" } == "the person was not asked yet whether the device may show notifications")
    #expect(reason { $0.platform = "tvOS" } == "the device's platform shows badges only, and the notification has none")
    #expect(reason { $0.switched = ["alert", "lockScreen", "notificationCenter"] } == "the device's settings let nothing of it be shown")
    #expect(reason { ($0.has, $0.isNight) = (["sound"], true) } == "nothing of it may be shown in the person's quiet hours")
    #expect(reason { ($0.has, $0.isNight, $0.level) = (["sound"], true, "critical") } == "sent")
    #expect(reason { _ in } == "sent")
  }
}

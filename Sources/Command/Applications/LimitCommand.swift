import Notifications
import Worker

/// `carillon applications limit`.
extension ApplicationsCommands {
  private static let numbers = Int(RateLimit.numbers.lowerBound)...Int(RateLimit.numbers.upperBound)
  static let perTarget = Setting<Int?>(
    "applications.per-target", .integer(numbers), "The requests that one device or person may get in a window.")
  static let perApplication = Setting<Int?>(
    "applications.per-application", .integer(numbers),
    "The requests that the application may send in a window, in each partition of the requests.")
  static let window = Setting(
    "applications.window",
    .duration(.milliseconds(RateLimit.windows.lowerBound) ... .milliseconds(RateLimit.windows.upperBound)),
    default: .seconds(1), "The length of a window.")
  static let none = Setting("applications.none", .boolean, default: false, "Ends the limit.")

  static let limit = Command(
    "applications limit", "limits how many requests of an application are accepted in a window of time",
    discussion:
      "The first requests of each window are accepted, by the timestamps of Kafka's records, in each partition of the requests. Further ones are rejected with TooManyRequests and the end of the window, and do not become dead letters. All requests count, also wrong and repeated ones, but replays and the firings of schedules do not. The flags are the whole limit: it replaces the present one. It begins five seconds later, so that all workers have read it by then. With --json the answer is an object. The exit code is 1 if somebody else has set another limit at the same time.",
    arguments: [application],
    groups: [
      SettingGroup("Limit", [perTarget, perApplication, window, none, by, isDryRun]), AnswerSettings.group, ClusterSettings.kafkaGroup,
    ],
    examples: [
      Example("applications limit com.example.shop --per-target 5", "each device and person gets at most five requests in a second"),
      Example(
        "applications limit com.example.shop --per-target 20 --per-application 2000 --window 10s", "both limits, in windows of ten seconds"),
      Example("applications limit com.example.shop --none", "ends the limit"),
    ]
  ) { values in
    let application = try name(values)
    let wanted = try rateLimit(values)
    return try await make(.limit(wanted, by: try person(values)), of: application, values) { printer, stops in
      printer.limitLine(application, stops)
    } stands: {
      $0.limits.last == wanted
    }
  }

  /// The limit that the flags ask for; nil for none.
  private static func rateLimit(_ values: SettingValues) throws(UsageError) -> RateLimit? {
    let (target, application) = (values[perTarget], values[perApplication])
    if values[none] {
      guard target == nil, application == nil else {
        throw UsageError(.contradiction, "--none ends the limit: give it without --per-target and --per-application")
      }
      return nil
    }
    guard target != nil || application != nil else {
      throw UsageError(.missing, "give --per-target, --per-application or both, or --none to end the limit")
    }
    return RateLimit(
      perTarget: target.map(Int64.init), perApplication: application.map(Int64.init), window: Int64(values[window].wholeMilliseconds))
  }
}

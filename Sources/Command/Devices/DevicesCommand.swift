import EventLoop
import JSON
import Notifications
import Operations
import Worker

/// `carillon devices`.
enum DevicesCommand {
  private static let user = Setting<Name?>("devices.user", .name("ID"), "The devices that are registered for this person.")
  private static let device = Setting<DeviceToken?>("devices.device", .deviceToken, "This device.")
  private static let app = Setting<Name?>(
    "devices.app", .name("BUNDLE-ID"),
    "With --user: only devices for this application, which are found at once. Absent: those for all applications, which reads the names of all keys in Redis."
  )
  private static let limit = Setting("devices.limit", .integer(1...1_000_000), default: 100, "Maximum number of listed devices.")

  static let command = Command(
    "devices", "shows a person's devices: where each is connected, and how many notifications wait for it",
    discussion:
      "Prints a line for each registered device: its token, its application and its person, since when it belongs to the person, its locale, the place of its registration in the devices topic, and the fan-out lane at which it is connected. Then follow the number of notifications in its mailbox, the age of the oldest, and how many are beyond the mailbox's bound or were evicted from it. It only reads Redis, one page after the other. While Redis is rebuilt, or has lost something, devices may be missing: a message then says so. A device without a signed-in person has no application name in Redis. With --json each device is an object. The exit code is 1 if there is none.",
    groups: [
      SettingGroup("Devices", [user, device, app, limit], advanced: [FanOutOptions.silence]), AnswerSettings.group,
      ClusterSettings.redisGroup,
    ],
    examples: [
      Example("devices --user ada", "all devices of a person, for all applications"),
      Example("devices --user ada --app com.example.shop --json", "those for one application, for a script"),
      Example("devices --device $(printf '0%.0s' $(seq 64))", "one device"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let question = try question(values)
    let store = try ClusterSettings.store(values)
    let loop = EventLoop(name: "devices")
    let directory = DeviceDirectory(
      on: loop, store, laneMilliseconds: values[FanOutOptions.silence].wholeMilliseconds,
      boundKeys: (TransformOptions.mailbox.declaration.key, TransformOptions.connectedMailbox.declaration.key))
    let printer = DevicesPrinter(now: WallClock.milliseconds(), width: Terminal.width)
    let (isJSON, log) = (values[AnswerSettings.json], ReadingLog())
    let end: DeviceListingEnd
    do {
      end = try await directory.list(question, limit: values[limit]) { device in
        if isJSON { StandardOutput.json(printer.json(device).text) } else { StandardOutput.line(printer.line(device)) }
      } onProgress: { looked, total in
        log.report("keys of Redis, for all applications", read: looked, of: total)
      }
      await loop.close()
    } catch {
      await loop.close()
      guard let other = error as? OtherBuckets else { throw error }
      throw Failure(
        .wrongUsage, "the keys of this Redis are spread over \(other.found) buckets: give --buckets \(other.found), as its workers have it")
    }
    StandardOutput.flush()
    say(end, of: question, limit: values[limit])
    return end.count > 0 ? .done : .answerIsNo
  }

  private static func question(_ values: SettingValues) throws(UsageError) -> DeviceQuestion {
    switch (values[user], values[device]) {
    case (let user?, nil): return .person(user, application: values[app])
    case (nil, let device?):
      guard values[app] == nil else { throw UsageError(.contradiction, "--app is for --user: a device has one application") }
      return .device(device)
    case (_?, _?): throw UsageError(.contradiction, "--user and --device exclude each other: ask for one of them")
    case (nil, nil): throw UsageError(.missing, "which devices? give --user ID for a person's, or --device TOKEN for one")
    }
  }

  /// Says on standard error what the list lacks.
  private static func say(_ end: DeviceListingEnd, of question: DeviceQuestion, limit: Int) {
    if end.hasMore { StandardError.line("there are more than \(limit) devices: --limit lists more of them") }
    if end.others > 0 {
      StandardError.line(
        "\(end.others) left out: entries of the person's list that belong to somebody else now, or are not devices. The next request for the person skips them too"
      )
    }
    if end.isIncomplete {
      StandardError.line(
        "Redis is being rebuilt, or has lost what it had: devices and notifications may be missing from this list; 'carillon status' says how it is"
      )
    }
    guard end.count == 0 else { return }
    switch question {
    case .device: StandardError.line("this device is not registered, and nothing waits for it")
    case .person(let user, let application?):
      StandardError.line(
        "\(TerminalText.visible(user)) has no registered device for \(TerminalText.visible(application)): without --app those for other applications are listed"
      )
    case .person(let user, nil): StandardError.line("\(TerminalText.visible(user)) has no registered device")
    }
  }
}

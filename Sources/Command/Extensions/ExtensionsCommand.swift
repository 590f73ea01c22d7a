import EventLoop
import Extensions
import Ingress
import JSON
import Notifications
import Worker

/// `carillon extensions check` and `carillon extensions try`.
enum ExtensionsCommand {
  private static let file = Argument("FILE", "The extensions' file: see 'carillon transform --extensions'.", completion: .file)
  private static let app = Setting<Name>.required("extensions.app", .name("BUNDLE-ID"), "The application.")
  private static let payload = Setting<String>.required(
    "extensions.payload", .fileOrInput, "A file with the payload of a request; - is standard input.")
  private static let locale = Setting<String?>(
    "extensions.locale", .string("LOCALE"), "The device's locale, such as de_AT. Absent: it has none.")

  private static let device = Setting<DeviceToken?>(
    "extensions.device", .deviceToken, "The device's token, for an extension that is called for each device. Absent: zeros.")

  private static let place = Setting(
    "extensions.place", .choice, default: ExtensionsFile.Place.workers,
    "Whose extensions: those that run in the workers, or those that run on the device.")

  static let check = Command(
    "extensions check", "checks a file of service extensions",
    discussion:
      "The first error is printed with its place and its rule (exit code 2). Without an error the extensions of each application are listed in their order.",
    arguments: [file], groups: [SettingGroup("Place", [place]), AnswerSettings.group],
    examples: [Example("extensions check extensions.json", "before the workers get it by SIGHUP")]
  ) { values in
    let extensions = try ExtensionsInForce.read(values[file][0], at: values[place])
    for chain in extensions.all {
      let names = chain.steps.map(\.name)
      if values[AnswerSettings.json] {
        StandardOutput.json(JSONValue.object(["application": chain.application, "extensions": names]).text)
      } else {
        StandardOutput.line("\(PrintedText.escaped(chain.application.text)): \(names.joined(separator: ", "))")
      }
    }
    if extensions.isEmpty {
      StandardError.line("the file is in order, and no application has extensions that run in the place \(values[place].rawValue)")
    }
    return .done
  }

  static let attempt = Command(
    "extensions try", "shows what an application's service extensions make of a payload",
    discussion:
      "Prints each extension with its outcome, its duration and its changes, and then the result. Nothing is published. The exit code is 1 if an extension has failed, or if none would be called.",
    arguments: [file],
    groups: [
      SettingGroup("Notification", [app, payload, place, locale, device, RequestSettings.payloadBytes]), MediaOptions.keeping,
      AnswerSettings.group,
    ],
    examples: [Example("extensions try extensions.json --app com.example.shop --payload payload.json", "what a device would be shown")]
  ) { values in
    let attempt = try await tried(values)
    let isJSON = values[AnswerSettings.json]
    for line in attempt.lines(isJSON: isJSON) { if isJSON { StandardOutput.json(line) } else { StandardOutput.line(line) } }
    return attempt.hasFailed ? .answerIsNo : .done
  }

  static func tried(_ values: SettingValues) async throws -> ExtensionAttempt {
    let media = try await MediaOptions.store(values)
    let extensions = try ExtensionsInForce.read(values[file][0], at: values[place], media: media)
    let bytes = try Descriptor.contents(of: values[payload], limit: 1 << 20)
    let flags = try bytes.withUnsafeBytes { source throws -> PayloadFlags in
      do throws(Rejection) {
        return try PayloadFacts(checking: source).flags
      } catch {
        throw Failure(.wrongUsage, "--payload: \(error.field): \(error.rule)")
      }
    }
    guard flags.isMutable else {
      throw Failure(
        .answerIsNo, "no extension is called: the payload needs \"mutable-content\": 1 in aps, and an alert with a title, subtitle or body")
    }
    guard let chain = extensions.chain(application: NameHash.hash(values[app])) else {
      throw Failure(
        .answerIsNo,
        "no extension is called: the file has none for \(PrintedText.echo(values[app].text)) in the place \(values[place].rawValue)"
      )
    }
    let attempt = await ExtensionAttempt(
      try bytes.withUnsafeBytes { try JSONValue(parsing: $0) }, chain, locale: values[locale],
      device: values[device]?.text ?? String(repeating: "0", count: 64),
      ContentRules(RequestLimits(payloadBytes: values[RequestSettings.payloadBytes])))
    await media?.close()
    return attempt
  }
}

/// A payload for a trial of an application's extensions.
struct ExtensionAttempt {
  private let steps: [(outcome: ExtensionRun.Outcome, content: MutableContent)]
  private let result: MutableContent

  init(_ payload: JSONValue, _ chain: ExtensionChain, locale: String?, device: String, _ rules: ContentRules) async {
    let id = NotificationID.random()
    let request = ExtensionRequest(
      id: id, identifier: Name(id.description), application: chain.application, expiration: WallClock.seconds() + 3600, locale: locale)
    // As the workers call it for recipients that share a variant.
    let variant = chain.variant(of: device, locale).map { request.varied($0, device: chain.scope == .device ? device : nil) }
    let loop = EventLoop(name: "extensions")
    let runs = await Task(executorPreference: loop) {
      await Self.runs(of: payload, request, variant, chain, rules, on: loop)
    }.value
    await loop.close()
    steps = runs.compactMap { run in run.outcomes.last.map { ($0, run.content) } }
    result = runs.last?.content ?? MutableContent(payload: payload)
  }

  /// The notification after each extension.
  private static func runs(
    of payload: JSONValue, _ request: ExtensionRequest, _ variant: ExtensionRequest?, _ chain: ExtensionChain, _ rules: ContentRules,
    on loop: EventLoop
  ) async -> [ExtensionRun] {
    let calls = ExtensionCalls(on: loop)
    let budget = calls.budget(lifetime: .max / 2)
    var runs: [ExtensionRun] = []
    var run = ExtensionRun(MutableContent(payload: payload))
    for (number, step) in chain.steps.enumerated() {
      let request = chain.varied.indices.contains(number) ? variant ?? request : request
      let passage = ExtensionPassage(run, bytes: 0, of: request, through: [step], within: budget, rules, calls)
      run = await passage.result()
      runs.append(run)
    }
    await calls.close()
    return runs
  }

  var hasFailed: Bool { steps.contains { $0.outcome.failure != nil } }

  /// The outcome of each extension, and then the result.
  func lines(isJSON: Bool) -> [String] {
    var lines: [String] = []
    for (outcome, content) in steps {
      if isJSON {
        let attachments = content.attachments.map(\.object)
        let line = JSONValue.object(present: [
          "extension": outcome.name, "state": "\(outcome.state.word)", "microseconds": outcome.microseconds, "payload": content.payload,
          "attachments": attachments.isEmpty ? nil : attachments, "reason": outcome.failure.map { "\($0)" },
        ])
        lines.append(line.text)
      } else {
        lines.append("\(outcome.name): \(outcome.state.word), \(outcome.microseconds) µs")
        if let failure = outcome.failure { lines.append("  \(PrintedText.escaped("\(failure)"))") }
        if outcome.state == .modified { lines.append("  \(Self.text(content))") }
      }
    }
    if !isJSON { lines.append("result: \(Self.text(result))") }
    return lines
  }

  private static func text(_ content: MutableContent) -> String {
    ([content.payload.text] + content.attachments.map { "attachment \($0.object.text)" }).map(PrintedJSON.text).joined(separator: "\n  ")
  }
}

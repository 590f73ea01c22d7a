import Calendars
import EventLoop
import Ingress
import Kafka
import Notifications
import Operations
import Worker

/// `carillon publish`.
enum PublishCommand {
  static let command = Command(
    "publish", "publishes one request, or many from a file",
    discussion:
      "Prints the apns-id of each request when Kafka has acknowledged it. Unknown names without an effect are reported on standard error: a header that begins with apns-, or a member of aps, its alert or its sound. With --wait it also prints the outcome at each device, and finally the devices without one: then the exit code is 1, and also if a request is rejected. "
      + RequestLine.help,
    groups: [
      PublishSettings.request, PublishSettings.content, PublishSettings.way, AnswerSettings.group, ClusterSettings.kafkaGroup,
    ],
    examples: [
      Example("publish --target user:ada --app com.example.shop --title Order --body 'On its way' --collapse-id order-7", "one request"),
      Example("publish --target user:ada --app com.example.shop --operation remove --identifiers order-7", "takes it away again"),
      Example("publish --target user:ada --app com.example.shop --title Order --wait 30s", "and says what becomes of it at each device"),
      Example("publish --app com.example.shop --lines requests.jsonl --dry-run --json", "what would be published"),
      Example("publish --app com.example.shop --lines requests.jsonl --json > acknowledged.jsonl", "many"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let topic = ClusterSettings.topics(values).requests
    let draft = try PublishSettings.draft(values, now: WallClock.milliseconds())
    let limits = values[PublishSettings.isUnchecked] ? nil : RequestLimits(values)
    let given = try requests(values, draft, limits)
    if values[PublishSettings.isDryRun] {
      let printer = RequestPrinter(isJSON: values[AnswerSettings.json])
      guard given == nil else {
        printer.print(given ?? [])
        return .done
      }
      let refused = try await LineSource(values, draft, limits).publish { printer.print($0) }
      return refused > 0 ? .answerIsNo : .done
    }
    let kafka = try ClusterSettings.kafka(values, client: "carillon-publish")
    // The person must know what was published, even if nobody reads the output.
    StandardOutput.whenItFails(.useStandardError)
    let timeout = values[PublishSettings.timeout].wholeMilliseconds
    let first = min(Admin.firstAnswerMilliseconds, Int32(timeout))
    let batches = try await Admin.with(kafka, timeoutMilliseconds: first) { admin in
      _ = try await admin.partitions(of: topic, at: kafka)
      return try await admin.writeLimits(of: [topic], at: kafka)
    }

    let loop = EventLoop(name: "publish")
    let outcomes = try await PublishedOutcomes.begin(values, limits, kafka, on: loop)
    let lane = PublishLane(
      on: loop, topic: topic, isJSON: values[AnswerSettings.json], followed: outcomes == nil ? 0 : ClusterTool.maximumFollowed)
    try await lane.start(kafka, batchBytes: batches.batchBytes(of: topic), timeoutMilliseconds: timeout)
    var refused = 0
    if let given {
      await lane.publish(given)
    } else {
      do {
        refused = try await LineSource(values, draft, limits).publish {
          await lane.publish($0)
        }
      } catch {
        _ = await lane.finish(withinMilliseconds: timeout + 2000)
        await loop.close()
        throw error
      }
    }
    let totals = await lane.finish(withinMilliseconds: timeout + 2000)
    let code = try end(given, totals, refused, topic)
    let areAllKnown = try await outcomes?.print(totals.followed, of: totals.acknowledged) ?? true
    await loop.close()
    return areAllKnown ? code : .answerIsNo
  }

  /// The requests of the flags, checked; nil if a file has them.
  static func requests(_ values: SettingValues, _ draft: RequestDraft, _ limits: RequestLimits?) throws(UsageError)
    -> [RequestToSend]?
  {
    let hasID = draft.headers[RequestHeader.id] != nil
    guard values[PublishSettings.lines] == nil else {
      guard !hasID else { throw UsageError(.contradiction, "--id is one request's: in --lines each line has its own 'id'") }
      guard values[PublishSettings.lines] != "-" || values[PublishSettings.payload] != "-" else {
        throw UsageError(.contradiction, "--lines and --payload cannot both be standard input")
      }
      return nil
    }
    guard draft.count == 1 || !hasID else {
      throw UsageError(.contradiction, "--id is one request's, and each of several --identifiers is a request of its own")
    }
    let requests = draft.records(line: 0)
    guard let limits else { return requests }
    guard draft.hasEffect else {
      throw UsageError(
        .missing,
        "the request would show nothing and do nothing: add --title, --subtitle, --body, --badge or --sound, or --content-available to wake the application"
      )
    }
    var warnings = RequestWarnings()
    var times = DueTimes()
    for request in requests { warnings.tell(try checked(request, limits, &times), line: 0) }
    return requests
  }

  private static func checked(_ request: RequestToSend, _ limits: RequestLimits, _ times: inout DueTimes) throws(UsageError) -> [String] {
    do throws(Rejection) {
      return try request.check(limits, &times).warnings
    } catch {
      throw UsageError(.contradiction, "the cluster would reject this request: \(error)", command: "publish")
    }
  }

  private static func end(_ given: [RequestToSend]?, _ totals: PublishLane.Totals, _ refused: Int, _ topic: String) throws(Failure)
    -> ExitCode
  {
    if let failure = totals.failure {
      guard given?.count != 1 else { throw Failure(.dependencyMissing, "\(failure)") }
      throw Failure(
        .dependencyMissing,
        "Kafka did not acknowledge \(totals.failed) of \(TerminalText.count(totals.acknowledged + totals.failed, "request")): publish again what failed"
      )
    }
    let isCutShort = StandardOutput.failure != nil
    if given == nil, StandardError.isTerminal || refused > 0 || isCutShort {
      StandardError.line(
        "\(totals.acknowledged) published to \(topic)" + (refused > 0 ? ", \(TerminalText.count(refused, "line")) wrong" : "")
          + (isCutShort ? "; it read no further" : ""))
    }
    if isCutShort { return .dependencyMissing }
    return refused > 0 ? .answerIsNo : .done
  }
}

/// Reads, checks and publishes the requests of a file's lines.
struct LineSource {
  private let values: SettingValues
  /// The defaults for the lines.
  let draft: RequestDraft
  /// Nil if nothing is checked.
  let limits: RequestLimits?
  private var refused = 0
  private var warnings = RequestWarnings()
  private var times = DueTimes()

  init(_ values: SettingValues, _ draft: RequestDraft, _ limits: RequestLimits?) {
    (self.values, self.draft, self.limits) = (values, draft, limits)
  }

  /// Passes the requests of all lines to `publish`. Answers how many lines are invalid.
  consuming func publish(_ publish: ([RequestToSend]) async -> Void) async throws -> Int {
    var reader = try LineReader(path: values[PublishSettings.lines] ?? "-", givenAt: values.name(of: PublishSettings.lines))
    while true {
      var requests: [RequestToSend] = []
      let now = WallClock.milliseconds()
      let hasMore = try reader.next { number, line in
        do throws(LineError) {
          requests += try self.requests(number, line, now)
        } catch {
          refused += 1
          StandardError.line("line \(number): \(error)")
        }
      }
      if !requests.isEmpty { await publish(requests) }
      if !hasMore || StandardOutput.failure != nil { return refused }
    }
  }

  mutating func requests(_ number: Int, _ line: UnsafeRawBufferPointer?, _ now: Int64) throws(LineError) -> [RequestToSend] {
    guard let line else { throw LineError("it has more than \(LineReader.longestLine) bytes") }
    var request = try RequestLine.read(line, now: now)
    request.fill(from: draft)
    guard request.count == 1 || request.headers[RequestHeader.id] == nil else {
      throw LineError("id", "'id' is one request's, and each of several 'identifiers' is a request of its own")
    }
    let records = request.records(line: number)
    guard limits == nil || request.hasEffect else {
      throw LineError(RequestDraft.effectRule)
    }
    do throws(Rejection) {
      if let limits { for record in records { warnings.tell(try record.check(limits, &times).warnings, line: number) } }
    } catch {
      throw LineError("\(error.field)", "\(error)")
    }
    return records
  }
}

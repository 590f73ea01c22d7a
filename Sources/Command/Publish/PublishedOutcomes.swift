import EventLoop
import JSON
import Kafka
import Notifications
import Operations
import Synchronization
import Worker

/// Prints the outcomes of published requests at each device: `publish --wait`, `dead-letters redrive --wait`.
struct PublishedOutcomes: Sendable {
  private let kafka: KafkaConfiguration
  private let tool: ClusterTool
  private let positions: [TopicPartition: Int64]
  private let duration: Duration
  private let printer: OutcomePrinter
  private let waitsForAbsent: Bool

  /// Notes the ends of the topics before anything is published.
  ///
  /// - Parameter waitsForAbsent: whether more is expected of devices that are not connected.
  init(
    _ tool: ClusterTool, _ kafka: KafkaConfiguration, for duration: Duration, waitsForAbsent: Bool, isJSON: Bool
  ) async throws {
    (self.kafka, self.tool, self.duration, self.waitsForAbsent) = (kafka, tool, duration, waitsForAbsent)
    printer = OutcomePrinter(isJSON: isJSON)
    do { positions = try await tool.placesToFollow() } catch let error as KafkaError { throw kafka.failure(error) }
  }

  /// Those of `publish`; nil without `--wait`.
  static func begin(_ values: SettingValues, _ limits: RequestLimits?, _ kafka: KafkaConfiguration, on loop: EventLoop) async throws
    -> PublishedOutcomes?
  {
    guard let duration = values[PublishSettings.wait] else { return nil }
    let rules = RequestRules(topics: ClusterSettings.topics(values), limits: limits ?? RequestLimits())
    let tool = ClusterTool(on: loop, kafka, rules)
    return try await PublishedOutcomes(tool, kafka, for: duration, waitsForAbsent: true, isJSON: values[AnswerSettings.json])
  }

  /// Follows requests until all outcomes are known or the time is over. False if one is missing, or a request was rejected or had no device.
  ///
  /// - Parameters:
  ///   - requests: with their places, at most ``ClusterTool/maximumFollowed``.
  ///   - all: how many were published.
  func print(
    _ requests: [(id: String, partition: Int32, offset: Int64)], of all: Int, isStopped: @Sendable () -> Bool = { false }
  ) async throws -> Bool {
    let further = all - requests.count
    if further > 0 {
      let maximum = ClusterTool.maximumFollowed
      let reason = requests.count < maximum ? "Kafka has not said where they are" : "the maximum is \(maximum)"
      StandardError.line("\(TerminalText.count(further, "request")) cannot be followed: \(reason)")
    }
    let areAllKnown = Mutex(true)
    do {
      try await tool.follow(
        requests, from: positions, forMilliseconds: duration.wholeMilliseconds, waitsForAbsent: waitsForAbsent, isStopped: isStopped
      ) {
        printer.print($1, of: $0)
      } onOutcome: { outcome in
        printer.print(outcome)
        if !outcome.isGood { areAllKnown.withLock { $0 = false } }
      }
    } catch let error as KafkaError { throw kafka.failure(error) }
    return areAllKnown.withLock { $0 }
  }
}

extension FollowedRequest {
  /// Whether every outcome is known, no request was rejected, and each had a device.
  fileprivate var isGood: Bool {
    switch explanation.state {
    case .rejected, .dead, .unregistered: false
    case .unknown, .unprocessed, .filtered, .underWay, .scheduled, .settled, .ended: isSettled
    }
  }
}

/// Prints outcomes for a person or for a program, each as soon as it is known.
private struct OutcomePrinter {
  let isJSON: Bool
  private let timeline = TimelinePrinter(prefix: "")

  init(isJSON: Bool) { self.isJSON = isJSON }

  /// Prints the outcome at a device.
  func print(_ outcome: DeviceOutcome, of id: String) {
    if isJSON {
      json(id, timeline.json(outcome))
    } else {
      line(
        id, outcome.device, TerminalText.padded(outcome.word, 12) + (outcome.sincePublication.map(TerminalText.duration) ?? "")
      )
    }
    StandardOutput.flush()
  }

  /// Prints the rest of a request's results, at its end or when the time is over.
  func print(_ outcome: FollowedRequest) {
    let explanation = outcome.explanation
    let missing = explanation.devices.filter { !$0.isFinal }
    var open = 0
    if case .underWay(let count, _, _) = explanation.state { open = count }
    if isJSON {
      json(
        outcome.id,
        .object([
          "state": timeline.word(explanation.state), "settled": outcome.isSettled, "open": open,
          "missing": missing.map(\.device),
        ]))
    } else {
      for device in missing { line(outcome.id, device.device, "no outcome yet: \(device.word)") }
      switch explanation.state {
      case .ended: break
      case .underWay:
        let further = open - missing.count
        if further > 0 { line(outcome.id, nil, "no outcome yet of \(TerminalText.count(further, "further device"))") }
      default: line(outcome.id, nil, timeline.standing(explanation))
      }
    }
    StandardOutput.flush()
  }

  private func line(_ id: String, _ device: String?, _ what: String) {
    let columns = [TerminalText.visible(id), TerminalText.padded(device.map(TerminalText.device) ?? "-", 17), what]
    StandardOutput.line(TerminalText.row(columns, width: Terminal.width))
  }

  private func json(_ id: String, _ members: JSONValue) {
    StandardOutput.json(JSONValue.object(["apnsId": id]).appending(contentsOf: members).text)
  }
}

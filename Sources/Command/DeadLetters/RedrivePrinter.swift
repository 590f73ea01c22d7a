import JSON
import Notifications
import Operations

/// The results of redriving or discarding dead letters, for a person or for a program.
struct RedrivePrinter: Sendable {
  let isDryRun: Bool
  let isDiscard: Bool
  let devicesTopic: String

  /// The work on the letters.
  var verb: String { isDiscard ? "discarded" : "redriven" }

  // MARK: For a person

  func line(_ result: LetterResult) -> String {
    var columns = [TerminalText.padded(result.letter.facts.place.description, 10)]
    switch result.kind {
    case .redriven(let place, let isExpired):
      columns.append(isDryRun ? "would be redriven" : "redriven")
      if let id = result.id { columns.append(id.description) }
      if let place { columns.append("requests/\(place.partition)@\(place.offset)") }
      if isExpired { columns.append("(it has expired)") }
    case .discarded:
      columns.append(isDryRun ? "would be discarded" : "discarded")
      columns.append(result.letter.facts.id.description)
    case .refused(let refusal): columns += [refusal == .gone ? "gone" : "left", TerminalText.visible(sentence(refusal))]
    }
    if result.letter.times > 1 { columns.append("(came \(result.letter.times) times for this reason)") }
    return columns.joined(separator: "  ")
  }

  /// Renders the counts.
  func text(_ report: RedriveReport) -> [String] {
    var lines: [String] = []
    func row(_ count: Int, _ what: String) { lines.append(TerminalText.aligned("\(count)", 10) + "  " + what) }
    row(report.done, isDryRun ? "would be \(verb)" : verb)
    for (kind, sentence) in [
      (.expired, isDryRun ? "of these have expired: they would end so, and not be shown" : "of these had expired: they are not shown"),
      (.handled, "were redriven or discarded before: --again takes them once more"),
      (.gone, "are gone: their payload did not fit into the letter, and their source does not have it any more"),
      (.left, isDryRun ? "would be left as they are" : "were left as they are: see above"),
    ] as [(RedriveCount, String)] where report.counts[kind] > 0 { row(report.counts[kind], sentence) }
    return lines
  }

  private func sentence(_ refusal: RedriveRefusal) -> String {
    switch refusal {
    case .endsWorkers: "workers' processes ended over it: when the cause is fixed, redrive this LETTER alone, with --force"
    case .ofTopic(devicesTopic): "it is a registration, which its device writes again when it next says hello: discard it"
    case .ofTopic(let topic): "it came from \(topic), and only requests of this cluster are redriven"
    case .breaksRule(let reason, RequestHeader.origin.name.description, let rule):
      "it would be rejected again: \(reason): \(RequestHeader.origin.name): \(rule) With --unset \(RequestHeader.origin.name) it counts from where this cluster read it, with --as-new from now"
    case .breaksRule(let reason, let field, let rule):
      "it would be rejected again: \(reason): \(field): \(rule) Mend it with --set or --unset, or give the cluster's limits"
    case .otherRequest(let name): "with another \(name) it is another request: add --as-new"
    case .keepsOrigin: "its carillon-origin is valid and stays, unless it becomes a new request: --as-new"
    case .placeIsNoOrigin(let fault):
      "its first place cannot be its origin: \(fault.rawValue); --as-new publishes it as a new request"
    case .tooLarge(let bytes): "it would have \(bytes) bytes with its origin, which is more than Kafka takes: remove some with --unset"
    case .gone: "its payload did not fit into the letter, and its source does not have it any more"
    }
  }

  // MARK: For a program

  func json(_ result: LetterResult) -> JSONValue {
    let id = result.id?.description
    let own: JSONValue.Members =
      switch result.kind {
      case .redriven(let place, let isExpired):
        ["result": isDryRun ? "wouldBeRedriven" : "redriven", "apnsId": id, "request": place?.description, "expired": isExpired]
      case .discarded: ["result": isDryRun ? "wouldBeDiscarded" : "discarded", "apnsId": id]
      case .refused(let refusal):
        ["result": refusal == .gone ? "gone" : "left", "apnsId": id, "why": refusal.word, "sentence": sentence(refusal)]
      }
    return JSONValue.object(["letter": result.letter.facts.place.description]).appending(contentsOf: .object(present: own))
      .appending(["reason": result.letter.facts.letter.reason, "times": result.letter.times])
  }

  /// Renders the counts.
  ///
  /// - Parameter following: how many redriven requests were not followed, and how many notifications wait in mailboxes; nil if nothing was
  ///   followed.
  func json(_ report: RedriveReport, following: (notFollowed: Int, waiting: Int)? = nil) -> JSONValue {
    JSONValue.object(["dryRun": isDryRun])
      .appending(contentsOf: report.counts.json(without: [isDiscard ? .redriven : .discarded]))
      .appending(contentsOf: .object(present: ["notFollowed": following?.notFollowed, "waiting": following?.waiting]))
      .appending(["interrupted": report.isInterrupted])
  }
}

extension RedriveRefusal {
  /// The word for a program: the name of the case.
  fileprivate var word: String { String("\(self)".prefix { $0 != "(" }) }
}

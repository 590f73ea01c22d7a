import JSON
import Notifications
import Operations

/// What became of a letter that was redriven or discarded, for a person or for a program.
struct LetterResultPrinter: Sendable {
  let isDryRun: Bool
  let devicesTopic: String

  func line(_ result: LetterResult) -> String {
    var columns = [TerminalText.padded(result.letter.place.description, 10)]
    switch result.kind {
    case .redriven(let place, let isExpired):
      columns.append(isDryRun ? "would be redriven" : "redriven")
      if let id = result.id { columns.append(id.description) }
      if let place { columns.append("requests/\(place.partition)@\(place.offset)") }
      if isExpired { columns.append("(it has expired)") }
    case .discarded:
      columns.append(isDryRun ? "would be discarded" : "discarded")
      columns.append(result.letter.id.description)
    case .refused(let refusal): columns += [refusal == .gone ? "gone" : "left", TerminalText.visible(sentence(refusal))]
    }
    return columns.joined(separator: "  ")
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
    return JSONValue.object(["letter": result.letter.place.description]).appending(contentsOf: .object(present: own))
      .appending(["reason": result.letter.letter.reason])
  }
}

extension RedriveRefusal {
  /// The word for a program: the name of the case.
  fileprivate var word: String { String("\(self)".prefix { $0 != "(" }) }
}

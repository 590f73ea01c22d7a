import JSON
import Notifications
import Operations
import Synchronization

/// Prints violations when they are found. From any thread.
final class LoadNotes: Sendable {
  private struct State {
    var latest: [String] = []
    var count = 0
  }

  /// Whether a live view shows the latest ones.
  let isLive: Bool
  private let isJSON: Bool
  private let state = Mutex(State())

  /// The most violations that are printed. The report has the numbers of all.
  private static let maximum = 1_000
  /// The most violations that a live view shows.
  private static let shown = 8

  init(isJSON: Bool, isLive: Bool) { (self.isJSON, self.isLive) = (isJSON, isLive) }

  /// The latest ones, for a live view.
  var latest: [String] { state.withLock { $0.latest.isEmpty ? [] : [""] + $0.latest } }

  func take(_ violation: LoadViolation, _ names: LoadNames, _ plan: LoadPlan) {
    let count = state.withLock { state in
      state.count += 1
      return state.count
    }
    guard count <= Self.maximum else {
      if count == Self.maximum + 1 { StandardError.line("there are more violations; only the report counts them") }
      return
    }
    let (id, token) = (names.id(violation.request).description, names.token(violation.device).text)
    let target = names.target(plan.request(violation.request).target)
    if isJSON {
      let object: JSONValue = [
        "violation": .string(violation.kind.rawValue), "id": .string(id), "device": .string(token), "target": .string(target.text),
        "atSeconds": .number("\(Double(violation.at / 1_000_000) / 1000)"),
      ]
      StandardOutput.json(object.text)
      return StandardOutput.flush()
    }
    let line = "WRONG  \(id) at \(token): \(violation.kind.words)  (carillon explain \(id))"
    guard isLive else {
      StandardOutput.line(line)
      return StandardOutput.flush()
    }
    state.withLock { state in
      state.latest.append(line)
      if state.latest.count > Self.shown { state.latest.removeFirst() }
    }
  }
}

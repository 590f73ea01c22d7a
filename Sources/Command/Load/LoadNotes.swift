import JSON
import Notifications
import Operations
import Synchronization
import Worker

/// Prints violations when they are found, and what has become of the run's processes. From any thread.
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

  init(_ values: SettingValues) {
    isJSON = values[AnswerSettings.json]
    isLive = !isJSON && Terminal.width != nil
  }

  /// The latest ones, for a live view.
  var latest: [String] { state.withLock { $0.latest.isEmpty ? [] : [""] + $0.latest } }

  func take(_ finding: LoadFinding) {
    let count = state.withLock { state in
      state.count += 1
      return state.count
    }
    guard count <= Self.maximum else {
      if count == Self.maximum + 1 { StandardError.line("there are more violations; only the report counts them") }
      return
    }
    let (id, token) = (finding.id.description, finding.device.text)
    if isJSON {
      let object: JSONValue = [
        "violation": .string(finding.kind.rawValue), "id": .string(id), "device": .string(token), "target": .string(finding.target.text),
        "atSeconds": .number("\(Double(finding.atMilliseconds) / 1000)"),
      ]
      StandardOutput.json(object.text)
      return StandardOutput.flush()
    }
    let line = "WRONG  \(id) at \(token): \(finding.kind.words)  (carillon explain \(id))"
    guard isLive else {
      StandardOutput.line(line)
      return StandardOutput.flush()
    }
    keep(line)
  }

  /// Says what has become of the run's processes.
  func say(_ line: String) {
    if isLive { keep(line) }
    StandardError.line(line)
  }

  private func keep(_ line: String) {
    state.withLock { state in
      state.latest.append(line)
      if state.latest.count > Self.shown { state.latest.removeFirst() }
    }
  }
}

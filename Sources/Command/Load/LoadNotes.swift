import Operations
import Synchronization
import Worker

/// Prints violations when they are found, and keeps them. From any thread.
final class LoadNotes: Sendable {
  private struct State {
    var findings: [LoadFinding] = []
    var count = 0
  }

  /// Whether a live view shows the latest ones.
  let isLive: Bool
  private let isJSON: Bool
  private let state = Mutex(State())

  /// The most violations that a live view shows.
  private static let shown = 8

  init(_ values: SettingValues) {
    isJSON = values[AnswerSettings.json]
    isLive = !isJSON && Terminal.width != nil
  }

  /// The latest ones, for a live view.
  var latest: [String] { state.withLock { $0.findings.isEmpty ? [] : [""] + $0.findings.suffix(Self.shown).map(LoadPrinter.line) } }

  /// The first ones, for the result of a share.
  var findings: [LoadFinding] { state.withLock { $0.findings } }

  func take(_ finding: LoadFinding) {
    let maximum = LoadShareResult.maximumFindings
    let count = state.withLock { state in
      state.count += 1
      if state.count <= maximum { state.findings.append(finding) }
      return state.count
    }
    if count <= maximum {
      if !isLive { LoadPrinter.print(finding, isJSON: isJSON) }
    } else if count == maximum + 1 {
      StandardError.line("there are more violations; only the report counts them")
    }
  }
}

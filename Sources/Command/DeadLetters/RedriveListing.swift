import JSON
import Operations
import Synchronization

/// Prints the results of letters. A dry run on a terminal prints counts and a screenful of lines instead.
final class RedriveListing: Sendable {
  private struct State {
    var summary: RedriveSummary
    var screen: Screenful
  }

  private let printer: RedrivePrinter
  private let isJSON: Bool
  /// Nil if each line is printed at once.
  private let state: Mutex<State?>

  /// - Parameter height: the lines of the terminal; nil to print each line at once.
  init(_ printer: RedrivePrinter, isJSON: Bool, height: Int?) {
    (self.printer, self.isJSON) = (printer, isJSON)
    state = Mutex(height.map { State(summary: RedriveSummary(isDiscard: printer.isDiscard), screen: Screenful(height: $0)) })
  }

  /// Takes the result of a letter.
  func take(_ result: LetterResult) {
    let isKept = state.withLock { state in
      state?.summary.take(result.letter, refusal: printer.refusal(result))
      state?.screen.take { printer.line(result) }
      return state != nil
    }
    guard !isKept else { return }
    if isJSON { StandardOutput.json(printer.json(result).text) } else { StandardOutput.line(printer.line(result)) }
  }

  /// Prints the counts, after the collected lines if they were not printed.
  func finish(_ report: RedriveReport, _ letters: LetterPrinter) {
    let counts = printer.text(report)
    let lines = state.withLock { state in
      state.map { state in
        state.screen.lines(
          below: state.summary.table(letters) + [""] + counts + state.summary.reasons.map { "  " + $0 },
          all: "--no-summary prints a line for each letter")
      }
    }
    for line in lines ?? counts { StandardOutput.line(line) }
  }
}

import Operations

/// The counts of a dry run, by reason and application, and by refusal. A value of bounded size.
struct RedriveSummary {
  private let isDiscard: Bool
  private var groups = LetterGroups()
  private var refusals: [String: Int] = [:]

  /// The most refusals that are counted separately.
  private static let maximum = 1_000
  /// The most groups and refusals that are shown.
  private static let shown = 10

  init(isDiscard: Bool) { self.isDiscard = isDiscard }

  /// Takes a letter.
  ///
  /// - Parameter refusal: why it would be left; nil if it would not.
  mutating func take(_ letter: LetterSummary, refusal: String?) {
    groups.take(letter, as: refusal == nil ? done : .pending)
    guard let refusal else { return }
    refusals[refusals[refusal] != nil || refusals.count < Self.maximum ? refusal : "for other reasons", default: 0] += 1
  }

  private var done: LetterStanding { isDiscard ? .discarded : .redriven }

  /// Renders a table of the groups, those first whose letters would be handled.
  func table(_ printer: LetterPrinter) -> [String] {
    printer.table(
      groups.sorted(by: done), [(done.rawValue, { $0.counts[done] ?? 0 }), ("left", { $0.counts[.pending] ?? 0 })], atMost: Self.shown)
  }

  /// Renders why letters would be left, the most frequent reasons first.
  var reasons: [String] {
    let sorted = refusals.sorted { $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value }
    let further = sorted.dropFirst(Self.shown).reduce(0) { $0 + $1.value }
    return sorted.prefix(Self.shown).map { TerminalText.aligned("\($0.value)", 10) + "  " + TerminalText.visible($0.key) }
      + (further > 0 ? [TerminalText.aligned("\(further)", 10) + "  for other reasons"] : [])
  }
}

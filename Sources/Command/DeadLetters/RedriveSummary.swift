import Notifications
import Operations

/// The counts of a dry run, by reason and application, and by refusal. A value of bounded size.
struct RedriveSummary {
  private struct Key: Hashable {
    let reason: Name
    let application: Name?
  }

  private struct Group {
    var done = 0
    var left = 0
    var oldest = Int64.max
    var newest = Int64.min
    var count: Int { done + left }
  }

  private var groups: [Key: Group] = [:]
  private var refusals: [String: Int] = [:]
  private var further = Group()

  /// The most groups and refusals that are counted separately, since producers may invent names of applications.
  private static let maximum = 1_000
  /// The most groups and refusals that are shown.
  private static let shown = 10

  /// Takes a letter.
  ///
  /// - Parameter refusal: why it would be left; nil if it would not.
  mutating func take(_ letter: LetterFacts, refusal: String?) {
    let key = Key(reason: Name(letter.letter.reason), application: letter.application)
    if groups[key] != nil || groups.count < Self.maximum {
      Self.count(letter, refusal, in: &groups[key, default: Group()])
    } else {
      Self.count(letter, refusal, in: &further)
    }
    guard let refusal else { return }
    refusals[refusals[refusal] != nil || refusals.count < Self.maximum ? refusal : "for other reasons", default: 0] += 1
  }

  private static func count(_ letter: LetterFacts, _ refusal: String?, in group: inout Group) {
    if refusal == nil { group.done += 1 } else { group.left += 1 }
    (group.oldest, group.newest) = (min(group.oldest, letter.time), max(group.newest, letter.time))
  }

  /// Renders a table of the groups, those with the most letters first.
  ///
  /// - Parameters:
  /// - verb: the work on them.
  ///   - now: milliseconds since 1970.
  func table(_ verb: String, now: Int64) -> [String] {
    func age(_ time: Int64) -> String { TerminalText.duration(max(0, now - time)) }
    func row(_ words: [String], _ group: Group) -> [String] {
      words + ["\(group.count)", "\(group.done)", "\(group.left)", age(group.oldest), age(group.newest)]
    }
    let sorted = groups.sorted { one, other in
      if one.value.count != other.value.count { return one.value.count > other.value.count }
      return (one.key.reason, one.key.application ?? "") < (other.key.reason, other.key.application ?? "")
    }
    var rows = sorted.prefix(Self.shown).map { key, group in
      row([TerminalText.visible(key.reason), key.application.map { TerminalText.visible($0) } ?? "-"], group)
    }
    let rest = sorted.dropFirst(Self.shown).reduce(further) { sum, next in
      Group(
        done: sum.done + next.value.done, left: sum.left + next.value.left, oldest: min(sum.oldest, next.value.oldest),
        newest: max(sum.newest, next.value.newest))
    }
    if rest.count > 0 { rows.append(row(["others", ""], rest)) }
    return TerminalTable(heading: ["reason", "application", "letters", verb, "left", "oldest", "newest"], words: [1], alignsLast: true)
      .lines(rows, width: nil)
  }

  /// Renders why letters would be left, the most frequent reasons first.
  var reasons: [String] {
    let sorted = refusals.sorted { $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value }
    let further = sorted.dropFirst(Self.shown).reduce(0) { $0 + $1.value }
    return sorted.prefix(Self.shown).map { TerminalText.aligned("\($0.value)", 10) + "  " + TerminalText.visible($0.key) }
      + (further > 0 ? [TerminalText.aligned("\(further)", 10) + "  for other reasons"] : [])
  }
}

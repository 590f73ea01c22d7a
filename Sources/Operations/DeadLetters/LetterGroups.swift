package import Notifications

/// Letters of one reason and one application.
package struct LetterGroup: Sendable, Equatable {
  /// Their reason.
  package var reason: String
  /// Their application; nil if they name none.
  package var application: Name?
  /// The number of letters of each standing.
  package var counts: [LetterStanding: Int] = [:]
  /// The time of the first letter, in milliseconds since 1970.
  package var oldest: Int64
  /// The time of the last letter, in milliseconds since 1970.
  package var newest: Int64

  /// The number of letters.
  package var count: Int { counts.values.reduce(0, +) }
}

/// Counts letters by reason and application, in any order. A value; ``maximum`` bounds its memory.
package struct LetterGroups: Sendable {
  private struct Key: Hashable {
    let reason: Name
    let application: Name?
  }

  /// The most groups, since producers may invent names of applications. Letters of further groups are counted without application.
  static let maximum = 10_000
  /// The reason of further letters, if there are even more groups.
  static let furtherReason: Name = "…"

  private var groups: [Key: LetterGroup] = [:]

  /// Makes it without letters.
  package init() {}

  /// Counts a letter.
  package mutating func take(_ summary: LetterSummary) {
    let letter = summary.facts
    let key = key(Key(reason: Name(letter.letter.reason), application: letter.application))
    var group =
      groups[key] ?? LetterGroup(reason: key.reason.text, application: key.application, oldest: letter.time, newest: letter.time)
    group.counts[summary.standing, default: 0] += 1
    (group.oldest, group.newest) = (min(group.oldest, letter.time), max(group.newest, letter.time))
    groups[key] = group
  }

  private func key(_ key: Key) -> Key {
    guard groups.count >= Self.maximum, groups[key] == nil else { return key }
    let reason = Key(reason: key.reason, application: nil)
    return groups[reason] != nil || groups.count < 2 * Self.maximum ? reason : Key(reason: Self.furtherReason, application: nil)
  }

  /// The groups, those with the most pending letters first.
  package func sorted() -> [LetterGroup] {
    func rank(_ group: LetterGroup) -> (Int, Int, Name, Name) {
      (-(group.counts[.pending] ?? 0), -group.count, Name(group.reason), group.application ?? "")
    }
    return groups.values.sorted { rank($0) < rank($1) }
  }

  /// The number of letters.
  package var count: Int { groups.values.reduce(0) { $0 + $1.count } }
}

public import Notifications

/// Letters of one reason and one application.
public struct LetterGroup: Sendable, Equatable {
  /// Why they are there.
  public var reason: String
  /// The application; nil where the letters tell none.
  public var application: Name?
  /// How many stand how.
  public var counts: [LetterStanding: Int] = [:]
  /// How many of them came again for the same reason.
  public var again = 0
  /// When the first of them was written, in milliseconds since 1970.
  public var oldest: Int64
  /// When the last of them was written, in milliseconds since 1970.
  public var newest: Int64

  /// How many they are.
  public var count: Int { counts.values.reduce(0, +) }
}

/// Counts letters by reason and application. A value, which takes letters in any order; its memory is bounded by ``maximum``.
public struct LetterGroups: Sendable {
  private struct Key: Hashable {
    let reason: Name
    let application: Name?
  }

  /// Groups at most: producers may invent names of applications. The letters of further ones are in groups without application.
  static let maximum = 10_000
  /// What stands for the reason of letters when there are more groups than that.
  static let furtherReason: Name = "…"

  private var groups: [Key: LetterGroup] = [:]

  /// Nothing.
  init() {}

  /// Takes a letter.
  ///
  /// - Parameter times: how often it has come for its reason.
  mutating func take(_ letter: LetterFacts, _ standing: LetterStanding, times: Int) {
    let key = key(Key(reason: Name(letter.letter.reason), application: letter.application))
    var group =
      groups[key] ?? LetterGroup(reason: key.reason.text, application: key.application, oldest: letter.time, newest: letter.time)
    group.counts[standing, default: 0] += 1
    if times > 1 { group.again += 1 }
    (group.oldest, group.newest) = (min(group.oldest, letter.time), max(group.newest, letter.time))
    groups[key] = group
  }

  private func key(_ key: Key) -> Key {
    guard groups.count >= Self.maximum, groups[key] == nil else { return key }
    let reason = Key(reason: key.reason, application: nil)
    return groups[reason] != nil || groups.count < 2 * Self.maximum ? reason : Key(reason: Self.furtherReason, application: nil)
  }

  /// The groups, those with the most that is pending first.
  public var sorted: [LetterGroup] {
    groups.values.sorted { one, other in
      let (a, b) = (one.counts[.pending] ?? 0, other.counts[.pending] ?? 0)
      if a != b { return a > b }
      if one.count != other.count { return one.count > other.count }
      return (Name(one.reason), one.application ?? "") < (Name(other.reason), other.application ?? "")
    }
  }

  /// How many letters they have.
  public var count: Int { groups.values.reduce(0) { $0 + $1.count } }
}

/// Finds the word that a mistyped one probably stands for.
public enum Suggestion {
  /// The nearest word; nil if none is near enough.
  ///
  /// - Parameter maximum: the most different letters; nil: a third of the letters plus one.
  public static func nearest(to typed: String, in words: [String], atMost maximum: Int? = nil) -> String? {
    guard (1...longestWord).contains(typed.utf8.count) else { return nil }
    let allowed = maximum ?? max(1, typed.count / 3)
    let near = words.filter { $0.utf8.count <= 2 * longestWord }
    let ranked = near.map { (word: $0, distance: distance(typed, $0)) }.filter { $0.distance <= allowed }
    if let best = ranked.min(by: { ($0.distance, $0.word) < ($1.distance, $1.word) }) { return best.word }
    // A beginning or an end of a longer word: `--coll` for `--collapse-id`, or `window` for `fanout.window`.
    let longer = typed.count >= 3 ? Set(words).filter { $0.hasPrefix(typed) || $0.hasSuffix("." + typed) } : []
    return longer.count == 1 ? longer.first : nil
  }

  /// A longer text is not a mistyped word, and comparing it with each word would take long.
  private static let longestWord = 100

  /// The suggestion as the end of an error; empty if there is none.
  public static func question(_ word: String?) -> String { word.map { "; did you mean '\($0)'?" } ?? "" }

  /// The letters to change, add, remove or swap with their neighbour (the restricted Damerau-Levenshtein distance).
  static func distance(_ first: String, _ second: String) -> Int {
    let (a, b) = (Array(first), Array(second))
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, beforeLast[j - 1] + 1) }
        row.append(cost)
      }
      (beforeLast, last) = (last, row)
    }
    return last[b.count]
  }
}

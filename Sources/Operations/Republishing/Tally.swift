package import JSON

/// Counts by their kinds. A kind's raw value is its name in JSON.
package struct Tally<Kind: CaseIterable & Hashable & Sendable & RawRepresentable<String>>: Sendable, Hashable {
  /// Without zeros, so that equal tallies have equal counts.
  private var counts: [Kind: Int] = [:]

  /// Makes a tally of zeros.
  package init() {}

  /// The count of a kind.
  package internal(set) subscript(kind: Kind) -> Int {
    get { counts[kind] ?? 0 }
    set { counts[kind] = newValue == 0 ? nil : newValue }
  }

  static func + (one: Tally, other: Tally) -> Tally {
    var sum = one
    sum.counts.merge(other.counts, uniquingKeysWith: +)
    return sum
  }

  /// The counts as an object, without these kinds.
  package func json(without omitted: Set<Kind> = []) -> JSONValue {
    .object(Kind.allCases.filter { !omitted.contains($0) }.map { .init($0.rawValue, self[$0]) })
  }

  /// Reads the members of an object, where a count of zero may be missing; nil if one is not a count up to the limit.
  init?(_ json: JSONValue, upTo limit: Int64) {
    for kind in Kind.allCases {
      guard let value = json[kind.rawValue] else { continue }
      guard let count = value.integerValue, (0...limit).contains(count) else { return nil }
      self[kind] = Int(count)
    }
  }
}

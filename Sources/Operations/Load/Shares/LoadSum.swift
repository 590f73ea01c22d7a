/// Adds the numbers of all shares of one run.
package enum LoadSum {
  /// The numbers of a share, with the name of their file.
  package typealias Part = (file: String, share: LoadShareResult)

  /// Adds the numbers. Each share follows its own requests to its own devices, so no pair of them counts twice.
  ///
  /// - Throws: what is missing, stands twice, or is of another run.
  package static func sum(_ parts: [Part]) throws(LoadShareResult.Problem) -> LoadResult {
    let parts = parts.sorted { $0.share.share.number < $1.share.share.number }
    guard let first = parts.first else { throw LoadShareResult.Problem("no file was given") }
    for (former, part) in zip(parts, parts.dropFirst()) {
      if let difference = difference(first.share, part.share) {
        throw LoadShareResult.Problem("\(first.file) and \(part.file) are of different runs: \(difference)")
      }
      if former.share.share.number == part.share.share.number {
        throw LoadShareResult.Problem("\(former.file) and \(part.file) are both share \(part.share.share.number)")
      }
    }
    let missing = Set(1...first.share.share.count).subtracting(parts.map(\.share.share.number)).sorted()
    guard missing.isEmpty else {
      let numbers = missing.map(String.init).joined(separator: ", ")
      throw LoadShareResult.Problem("of \(first.share.share.count) shares the file of share \(numbers) is missing")
    }
    var sum = first.share.result
    for part in parts.dropFirst() { sum.add(part.share.result) }
    sum.plan = first.share.share.whole
    sum.shares = parts.map(\.share)
    return sum
  }

  /// What makes two results those of different runs; nil if they are of one.
  private static func difference(_ one: LoadShareResult, _ other: LoadShareResult) -> String? {
    if !one.run.utf8.elementsEqual(other.run.utf8) { return "their names (--run)" }
    if one.result.startedAt != other.result.startedAt { return "when they began (--start)" }
    if one.share.count != other.share.count { return "how many shares they have (--share)" }
    return one.plan.utf8.elementsEqual(other.plan.utf8) ? nil : "their plans (--seed, --profile, …)"
  }
}

/// The partitions of a topic as a log line shows them.
public enum PartitionNames {
  /// Numbers in order, with ranges: `0-5,9`; `none` if empty.
  public static func text(_ numbers: some Sequence<Int32>) -> String {
    var ranges: [ClosedRange<Int32>] = []
    for number in Set(numbers).sorted() {
      if let last = ranges.last, last.upperBound + 1 == number {
        ranges[ranges.count - 1] = last.lowerBound...number
      } else {
        ranges.append(number...number)
      }
    }
    if ranges.isEmpty { return "none" }
    return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
  }
}

import Notifications

/// The events that existed before following began, sorted by time.
///
/// Partitions are read one after the other, but people read by time. A bounded number of events is sorted. Events of one partition, hence
/// of one device, always keep their order.
struct PastEvents {
  private static let bound = 10_000

  private var entries: [(time: String, number: Int, line: String)] = []
  private var latest: [Int32: String] = [:]

  /// Keeps a line, and prints the oldest if there are too many.
  mutating func add(_ line: String, _ event: EventRecord) {
    // Times in one format compare as texts. An event that is earlier than the one before it in its partition, by another worker's clock,
    // gets that one's time.
    let time = max(event.attribute(EventHeader.time.rawValue) ?? "", latest[event.partition] ?? "")
    latest[event.partition] = time
    entries.append((time, entries.count, line))
    if entries.count == Self.bound { printAll() }
  }

  /// Prints the kept lines.
  mutating func printAll() {
    entries.sort { ($0.time, $0.number) < ($1.time, $1.number) }
    for entry in entries { StandardOutput.line(entry.line) }
    entries.removeAll()
  }
}

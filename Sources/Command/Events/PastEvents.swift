import Notifications

/// Events that were there before anybody followed them: partitions are read one after the other, but people read by time.
///
/// They are put in the order of their times as far as a bounded number of them reaches, and those of one partition, so those of one
/// device, always keep their order.
struct PastEvents {
  private struct Entry {
    let time: String
    let number: Int
    let line: String
  }

  private static let bound = 10_000

  private var entries: [Entry] = []
  private var latest: [Int32: String] = [:]

  /// Keeps a line for later; prints when there are too many.
  mutating func add(_ line: String, _ event: EventRecord) {
    // Times of one form compare as texts. One that is earlier than its forerunner's in the partition, by another worker's clock, waits for it.
    let time = max(event.attribute(EventHeader.time.rawValue) ?? "", latest[event.partition] ?? "")
    latest[event.partition] = time
    entries.append(Entry(time: time, number: entries.count, line: line))
    if entries.count == Self.bound { printAll() }
  }

  /// Prints what is kept.
  mutating func printAll() {
    entries.sort { ($0.time, $0.number) < ($1.time, $1.number) }
    for entry in entries { StandardOutput.line(entry.line) }
    entries.removeAll()
  }
}

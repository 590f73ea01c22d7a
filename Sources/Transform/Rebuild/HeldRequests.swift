import Kafka

/// Requests that were read and are not judged yet, in the order of each partition. A value.
struct HeldRequests {
  /// One item that was read.
  enum Item {
    /// A record of a batch.
    case record(RecordBatch, Int)
    /// An unreadable stretch, with its last offset.
    case unreadable(through: Int64)
    /// The end of the partition at that time.
    case end(Int64)
  }

  private struct Queue {
    var items: [Item] = []
    var first = 0
  }

  private var queues: [Int: Queue] = [:]

  /// Appends the next item of a partition.
  mutating func append(_ item: Item, of index: Int) { queues[index, default: Queue()].items.append(item) }

  /// The partitions with held items.
  var partitions: [Int] { Array(queues.keys) }

  /// Whether a partition has held items.
  func holds(_ index: Int) -> Bool { queues[index] != nil }

  /// The first held item of a partition.
  func first(of index: Int) -> Item? { queues[index].map { $0.items[$0.first] } }

  /// Removes the first held item of a partition.
  mutating func removeFirst(of index: Int) {
    guard var queue = queues.removeValue(forKey: index) else { return }
    queue.first += 1
    guard queue.first < queue.items.count else { return }
    // This releases the batches of removed items, at a cost that does not grow with the rest.
    if queue.first >= 1024, 2 * queue.first >= queue.items.count {
      queue.items.removeFirst(queue.first)
      queue.first = 0
    }
    queues[index] = queue
  }
}

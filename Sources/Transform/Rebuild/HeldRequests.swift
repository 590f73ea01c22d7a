import Kafka

/// What was read of partitions of requests and is not judged yet, in its order. A value.
struct HeldRequests {
  /// What was read.
  enum Item {
    /// A record of a batch.
    case record(RecordBatch, Int)
    /// A stretch that nobody can read, with its last offset.
    case unreadable(through: Int64)
    /// The end of the partition, as it was then.
    case end(Int64)
  }

  private struct Queue {
    var items: [Item] = []
    var first = 0
  }

  private var queues: [Int: Queue] = [:]

  /// Appends what was read next of a partition.
  mutating func append(_ item: Item, of index: Int) { queues[index, default: Queue()].items.append(item) }

  /// The partitions of which something is held.
  var partitions: [Int] { Array(queues.keys) }

  /// Whether something of a partition is held.
  func holds(_ index: Int) -> Bool { queues[index] != nil }

  /// What is next of a partition.
  func first(of index: Int) -> Item? { queues[index].map { $0.items[$0.first] } }

  /// Removes what was next of a partition.
  mutating func removeFirst(of index: Int) {
    guard var queue = queues.removeValue(forKey: index) else { return }
    queue.first += 1
    guard queue.first < queue.items.count else { return }
    // The batches of what is gone are freed, at a cost that does not grow with what is left.
    if queue.first >= 1024, 2 * queue.first >= queue.items.count {
      queue.items.removeFirst(queue.first)
      queue.first = 0
    }
    queues[index] = queue
  }
}

import CRdKafka
import Synchronization

/// What the group's coordinator wants of a consumer, taken down inside librdkafka's callback and carried out afterwards.
///
/// librdkafka then waits for the answer (`rd_kafka_incremental_assign` and its like), so revoking may take its time. Callbacks come on
/// the thread that serves the consumer's queue: the loop's, and when the consumer closes the closing thread's.
final class RebalanceInbox: Sendable {
  /// - Note: `@unchecked Sendable` because the list is this value's alone, handed on once under the inbox' lock.
  struct Change: @unchecked Sendable {
    var isAssignment: Bool
    var isLost: Bool
    var partitions: PartitionList
  }

  private let changes = Mutex<[Change]>([])
  private let count = Atomic<Int>(0)
  private let isClosing = Atomic<Bool>(false)

  /// From now on whatever is asked is answered with giving everything up.
  func close() { isClosing.store(true, ordering: .releasing) }

  var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

  func next() -> Change? {
    guard !isEmpty else { return nil }
    let change = changes.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    if change != nil { count.subtract(1, ordering: .relaxed) }
    return change
  }

  func take(_ client: OpaquePointer, _ code: rd_kafka_resp_err_t, _ partitions: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
    guard !isClosing.load(ordering: .acquiring), let copy = rd_kafka_topic_partition_list_copy(partitions) else {
      rd_kafka_assign(client, nil)
      return
    }
    let change = Change(
      isAssignment: code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, isLost: rd_kafka_assignment_lost(client) != 0,
      partitions: PartitionList(owning: copy))
    changes.withLock { $0.append(change) }
    count.add(1, ordering: .relaxed)
  }
}

import CRdKafka
import Synchronization

/// The group's requests to a consumer, noted in librdkafka's callbacks and executed afterwards.
///
/// librdkafka waits for the answer (`rd_kafka_incremental_assign` and the like), so a revocation may take time. Callbacks come on the
/// thread that serves the consumer's queue: the loop's, and during a close the closing thread.
final class RebalanceInbox: Sendable {
  /// - Note: `@unchecked Sendable` because only this value owns the list, and hands it on once under the inbox' lock.
  struct Change: @unchecked Sendable {
    var isAssignment: Bool
    var isLost: Bool
    var partitions: PartitionList
  }

  private let changes = Mutex<[Change]>([])
  private let count = Atomic<Int>(0)
  private let isClosing = Atomic<Bool>(false)
  private let joining = Atomic<Bool>(false)
  private let wasLetIn = Atomic<Bool>(false)
  private let wasAssigned = Atomic<Bool>(false)
  private let hasLeft = Atomic<Bool>(false)
  /// Whether closing alone leaves the member's place taken until its session ends.
  let isStatic: Bool

  init(isStatic: Bool) { self.isStatic = isStatic }
  private let goneTopics = Mutex<Set<String>>([])
  private let hasGone = Atomic<Bool>(false)

  /// Whether the member waits for its group to rebalance.
  ///
  /// A commit that is sent then waits at the broker until the group has a new generation. Its refusal makes librdkafka 2.0.2 drop the whole
  /// assignment as lost (its issue 4059, fixed in 2.10.0).
  var isJoining: Bool { joining.load(ordering: .relaxed) }

  /// Whether the group may have accepted the member, but has not assigned it anything, not even an empty list.
  ///
  /// Before version 2.3.0 librdkafka aborts the process when it frees such a member (its issue 4312).
  var isUnassignedMember: Bool { wasLetIn.load(ordering: .acquiring) && !wasAssigned.load(ordering: .acquiring) }

  /// Whether the group may have the member.
  var isMember: Bool { wasLetIn.load(ordering: .acquiring) && !hasLeft.load(ordering: .acquiring) }

  /// Whether the group has assigned the member something, if only an empty list.
  var isAssigned: Bool { wasAssigned.load(ordering: .acquiring) }

  /// Whether a topic was reported missing since the last take. If it exists again, it is another one.
  var hasGoneTopics: Bool { hasGone.load(ordering: .relaxed) }

  /// Takes the topics that were reported missing.
  func takeGoneTopics() -> Set<String> {
    hasGone.store(false, ordering: .relaxed)
    return goneTopics.withLock { topics in
      defer { topics = [] }
      return topics
    }
  }

  /// librdkafka reports `TOPIC [PARTITION]. …` for a partition of a missing topic, with each answer of the brokers.
  private func partitionGone(_ reason: String) {
    guard let end = reason.firstRange(of: " [") else { return }
    goneTopics.withLock { _ = $0.insert(String(reason[..<end.lowerBound])) }
    hasGone.store(true, ordering: .relaxed)
  }

  /// From now on, answers every request by unassigning everything.
  ///
  /// - Parameter client: its requests that wait for an answer get theirs now: until then a member cannot leave its group.
  func close(answeringFor client: OpaquePointer? = nil) {
    isClosing.store(true, ordering: .releasing)
    guard let client else { return }
    // Before the close librdkafka refuses to unassign everything, of a cooperative group.
    while let change = next() { if !assignNothing(client, isAssignment: change.isAssignment) { rd_kafka_assign(client, nil) } }
  }

  var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

  func next() -> Change? {
    guard !isEmpty else { return nil }
    let change = changes.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    if change != nil { count.subtract(1, ordering: .relaxed) }
    return change
  }

  /// Registers the callbacks. The inbox must live as long as the client.
  func attach(to configuration: ConfigurationObject) {
    let opaque = Unmanaged.passUnretained(self).toOpaque()
    rd_kafka_conf_set_opaque(configuration.pointer, opaque)
    rd_kafka_conf_set_rebalance_cb(configuration.pointer) { client, code, partitions, opaque in
      guard let client, let partitions, let opaque else { return }
      Unmanaged<RebalanceInbox>.fromOpaque(opaque).takeUnretainedValue().take(client, code, partitions)
    }
    // In batch mode, errors of one partition arrive only here.
    rd_kafka_conf_set_error_cb(configuration.pointer) { _, code, reason, opaque in
      switch rd_kafka_resp_err_t(rawValue: code) {
      case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        guard let opaque, let reason else { break }
        Unmanaged<RebalanceInbox>.fromOpaque(opaque).takeUnretainedValue().partitionGone(String(cString: reason))
      default: break
      }
    }
    rd_kafka_conf_interceptor_add_on_new(
      configuration.pointer, "carillon",
      { client, _, opaque, _, _ in
        rd_kafka_interceptor_add_on_request_sent(
          client, "carillon",
          { _, _, _, _, request, _, _, _, opaque in
            if request == joinGroup, let opaque { Unmanaged<RebalanceInbox>.fromOpaque(opaque).takeUnretainedValue().setJoining(true) }
            return RD_KAFKA_RESP_ERR_NO_ERROR
          }, opaque)
        return rd_kafka_interceptor_add_on_response_received(
          client, "carillon",
          { _, _, _, _, request, _, _, _, _, error, opaque in
            guard request == joinGroup || request == syncGroup || request == leaveGroup, let opaque else {
              return RD_KAFKA_RESP_ERR_NO_ERROR
            }
            let inbox = Unmanaged<RebalanceInbox>.fromOpaque(opaque).takeUnretainedValue()
            if request == leaveGroup, error == RD_KAFKA_RESP_ERR_NO_ERROR { inbox.hasLeft.store(true, ordering: .releasing) }
            if request == joinGroup { inbox.wasLetIn.store(true, ordering: .releasing) }
            if request == syncGroup || error != RD_KAFKA_RESP_ERR_NO_ERROR { inbox.setJoining(false) }
            return RD_KAFKA_RESP_ERR_NO_ERROR
          }, opaque)
      }, opaque)
  }

  private func setJoining(_ value: Bool) { joining.store(value, ordering: .relaxed) }

  private func take(
    _ client: OpaquePointer, _ code: rd_kafka_resp_err_t, _ partitions: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
  ) {
    let isAssignment = code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS
    if isAssignment { wasAssigned.store(true, ordering: .releasing) }
    guard !isClosing.load(ordering: .acquiring), let copy = rd_kafka_topic_partition_list_copy(partitions) else {
      // A static member leaves before the close.
      if !isStatic || !assignNothing(client, isAssignment: isAssignment) { rd_kafka_assign(client, nil) }
      return
    }
    let change = Change(
      isAssignment: isAssignment, isLost: rd_kafka_assignment_lost(client) != 0,
      partitions: PartitionList(owning: copy))
    changes.withLock { $0.append(change) }
    count.add(1, ordering: .relaxed)
  }
}

/// Takes no partition, of a cooperative group; returns whether librdkafka accepts that.
private func assignNothing(_ client: OpaquePointer, isAssignment: Bool) -> Bool {
  let none = PartitionList(capacity: 0)
  let refusal = withExtendedLifetime(none) {
    isAssignment ? rd_kafka_incremental_assign(client, none.pointer) : rd_kafka_incremental_unassign(client, none.pointer)
  }
  return KafkaError.of(refusal, "take nothing") == nil
}

// Keys of requests in Kafka's protocol.
private let joinGroup: Int16 = 11
private let leaveGroup: Int16 = 13
private let syncGroup: Int16 = 14

/// A partition of a consumer, with a small index and the generation of its assignment.
public struct AssignedPartition: Sendable, Hashable {
  /// Which partition.
  public let topicPartition: TopicPartition
  /// The consumer's number for it, dense from 0 and the same whenever it is assigned again: for arrays.
  public let index: Int
  /// A new number for every assignment of the partition.
  public let generation: UInt32
  /// Where reading begins; nil if the committed offset decides, or `auto.offset.reset` if there is none.
  public let startOffset: Int64?
  /// For an offer: whether the partition was read here until now and starts again.
  public let startsAgain: Bool
}

/// Gets a consumer's events, always on the loop.
///
/// Any method may be called while records of an earlier batch are in use. It may call the consumer.
public protocol ConsumerHandler: AnyObject {
  /// Records arrived, of several partitions. Those of one partition are in the order of their offsets.
  func consumerReceived(_ batch: RecordBatch)

  /// The group has assigned partitions, and the consumer reads none before `begin`. Only with `offersPartitions`.
  func consumerOffered()

  /// Partitions are assigned, for the first time or again. None is paused: pause here those that must wait.
  func consumerAssigned(_ partitions: [AssignedPartition])

  /// Partitions are being revoked. No more records of them arrive.
  ///
  /// Unless they are lost, `commit` works for them until `revocation.finish()`. So finish the records in flight, commit, then call that.
  /// After the consumer's `revocationTimeout` it is called for you. Lost partitions have another owner already.
  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation)

  /// An error occurred that librdkafka usually recovers from. `isFatal` asks for a new consumer.
  func consumerFailed(_ error: KafkaError)

  /// A batch cannot be decompressed, or its checksum is wrong. All records before it were given.
  ///
  /// - Returns: whether the partition continues after it at once; else it stops until `Consumer.skip`.
  func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool

  /// The newest record of the partition was given. Only with `reportsPartitionEnd`.
  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64)
}

extension ConsumerHandler {
  /// Does nothing, for owners that want no offers.
  public func consumerOffered() {}

  /// Reports it as a failure like others.
  public func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
    consumerFailed(stretch.error)
    return true
  }

  /// Does nothing, for owners that need no ends.
  public func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {}
}

/// The consent that a consumer waits for during a revocation.
public final class Revocation {
  private var onFinish: (() -> Void)?

  init(_ onFinish: @escaping () -> Void) { self.onFinish = onFinish }

  /// Whether consent was given, or the time is over.
  public var isFinished: Bool { onFinish == nil }

  /// Consents. Later calls change nothing.
  public func finish() {
    let body = onFinish
    onFinish = nil
    body?()
  }
}

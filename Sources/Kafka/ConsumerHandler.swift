import EventLoop

/// A partition as a consumer has it: by a small index, and by a generation that tells this assignment from an earlier one.
public struct AssignedPartition: Sendable, Hashable {
  /// Which partition.
  public let topicPartition: TopicPartition
  /// The consumer's number for it, dense from 0 and the same whenever it comes back: meant for arrays.
  public let index: Int
  /// New with every assignment of the partition.
  public let generation: UInt32
  /// Where reading begins; nil when the group's committed offset decides (or `auto.offset.reset`, where none is committed).
  public let startOffset: Int64?
  /// It was read here until now and starts again; said of an offer.
  public let startsAgain: Bool
}

/// What a consumer tells its owner, always on the loop.
///
/// Any of its methods may be called while `records` of an earlier batch are still worked on. It may call the consumer back.
public protocol ConsumerHandler: AnyObject {
  /// Records, of several partitions, those of one partition in the order of their offsets.
  func consumerReceived(_ batch: RecordBatch)

  /// The group has given partitions to this consumer, which reads none of them before `begin`; only when the options ask for it.
  func consumerOffered(_ partitions: [AssignedPartition])

  /// Partitions have come, for the first time or again: none of them is paused, so pause here those that must be.
  func consumerAssigned(_ partitions: [AssignedPartition])

  /// Partitions are going: no record of them comes any more.
  ///
  /// Unless they are lost, `commit` still works for them until `revocation.finish()`, so let what is in flight end and commit it, then
  /// call that; after the consumer's `revocationTimeout` it is called for you. Lost ones belong to somebody else already.
  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation)

  /// Something went wrong that librdkafka mostly mends by itself; `isFatal` asks for a new consumer.
  func consumerFailed(_ error: KafkaError)

  /// A batch cannot be read: not decompressed, or its checksum is wrong. All records before it were given.
  ///
  /// - Returns: whether the partition is read on behind it at once; else it stands still until `Consumer.skip`.
  func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool

  /// The newest record of the partition has been given; only told when the options ask for it.
  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64)
}

extension ConsumerHandler {
  /// Nothing is done unless the owner has asked for offers.
  public func consumerOffered(_ partitions: [AssignedPartition]) {}

  /// It is a failure like others.
  public func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
    consumerFailed(stretch.error)
    return true
  }

  /// Nothing is done unless the owner wants to know.
  public func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {}
}

/// The consent that a consumer waits for before it gives partitions away: loop-confined.
public final class Revocation {
  private var onFinish: (() -> Void)?

  init(_ onFinish: @escaping () -> Void) { self.onFinish = onFinish }

  /// Whether consent has been given, or its time has passed.
  public var isFinished: Bool { onFinish == nil }

  /// Consents; calls after the first change nothing.
  public func finish() {
    let body = onFinish
    onFinish = nil
    body?()
  }
}

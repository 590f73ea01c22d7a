import EventLoop
import Kafka
import Notifications
import Operations
import Worker

extension ClusterTool {
  /// Reads the registered devices of a person.
  func devices(of user: Name, _ application: Name?) async throws -> TargetDevices {
    var devices = TargetDevices(of: ["user:\(user)"], application: application)
    try await Admin.with(kafka) { try await devices.read(rules.topics.devices, reader, $0) }
    return devices
  }

  /// Prints events until the limit, or until none has come for the given time; else until the process ends.
  ///
  /// - Returns: the number of printed events.
  func follow(
    _ positions: [(TopicPartition, StartPosition)], _ filter: EventFilter, isJSON: Bool, limit: Int?, idleMilliseconds: Int?
  ) async throws -> Int {
    let reader = EventReader(on: loop, filter, isJSON: isJSON, limit: limit, idleMilliseconds: idleMilliseconds)
    var options = Consumer.Options()
    options.reportsPartitionEnd = true
    let consumer = try Consumer(on: loop, kafka, options, handler: reader)
    var failure: (any Error)?
    do {
      try await consumer.assign(positions)
      await reader.untilEnd()
    } catch {
      failure = error
    }
    reader.close()
    await consumer.close(withinMilliseconds: 2000)
    if let failure { throw failure }
    return reader.count
  }
}

/// Takes records, prints events, and decides when to stop.
private final class EventReader: ConsumerHandler {
  private(set) var count = 0
  private var filter: EventFilter
  private let isJSON: Bool
  private let limit: Int
  private let idleMilliseconds: Int?
  private var idle: Timer?
  private var catchUp: Timer?
  /// Whether anything has arrived. Before that the connection to Kafka is only being made.
  private var hasBegun = false
  /// Partitions whose present end is not reached yet, so that silence does not count.
  private var unread: Set<Int> = []
  private var past = PastEvents()
  private var isEnded = false
  private var whenEnded: CheckedContinuation<Void, Never>?

  init(on loop: EventLoop, _ filter: EventFilter, isJSON: Bool, limit: Int?, idleMilliseconds: Int?) {
    self.filter = filter
    self.isJSON = isJSON
    self.limit = limit ?? .max
    self.idleMilliseconds = idleMilliseconds
    if idleMilliseconds != nil { idle = Timer(on: loop) { [unowned self] in end() } }
    catchUp = Timer(on: loop) { [unowned self] in endCatchUp() }
  }

  func untilEnd() async {
    waitOn()
    await withCheckedContinuation { continuation in
      // Checked here, since other tasks may run between a check and an await.
      if isEnded { continuation.resume() } else { whenEnded = continuation }
    }
  }

  func close() {
    idle?.close()
    catchUp?.close()
    (idle, catchUp) = (nil, nil)
  }

  /// How long the first records may take before silence counts, in milliseconds.
  private static let patience = 30_000
  /// How long a partition that nobody can read may delay the events of the others, in milliseconds.
  private static let catchUpMilliseconds = 2000

  private func waitOn() {
    if let idleMilliseconds { idle?.start(after: unread.isEmpty ? idleMilliseconds : max(idleMilliseconds, Self.patience)) }
    if !unread.isEmpty { catchUp?.start(after: hasBegun ? Self.catchUpMilliseconds : Self.patience) }
  }

  /// Prints each event at once from now on.
  private func endCatchUp() {
    unread.removeAll()
    catchUp?.stop()
    past.printAll()
    StandardOutput.flush()
  }

  private func end() {
    isEnded = true
    past.printAll()
    StandardOutput.flush()
    let waiting = whenEnded
    whenEnded = nil
    waiting?.resume()
  }

  // MARK: Records

  func consumerReceived(_ batch: RecordBatch) {
    hasBegun = true
    let width = Terminal.width
    for index in batch.indices where !isEnded {
      let event = EventRecord(batch[index])
      guard filter.admits(event) else { continue }
      let line = isJSON ? EventPrinter.json(event) : EventPrinter.text(event, width: width)
      if unread.isEmpty { StandardOutput.line(line) } else { past.add(line, event) }
      count += 1
      if count == limit { end() }
    }
    StandardOutput.flush()
    waitOn()
  }

  func consumerAssigned(_ partitions: [AssignedPartition]) { unread.formUnion(partitions.map(\.index)) }

  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {
    guard unread.remove(partition.index) != nil else { return }
    hasBegun = true
    waitOn()
    if unread.isEmpty { endCatchUp() }
  }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }

  func consumerFailed(_ error: KafkaError) { StandardError.line("\(error)") }
}

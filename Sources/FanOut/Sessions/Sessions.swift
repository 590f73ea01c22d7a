import Cryptography
import EventLoop
import HTTP
import JSON
import Kafka
import Notifications
import Store
import Worker

/// All connections of a lane by their generation, their shared parts, and the times at which each resyncs.
final class Sessions {
  let settings: FanOutSettings
  let logger: Logger
  let metrics: FanOutMetrics
  let mailboxes: Mailboxes
  let presences: Presences
  let receipts: Receipts
  /// Nil if the cluster serves no media.
  private let mediaLinks: MediaLinks?
  let outcomes: PendingOutcomes
  let expiration: ExpirationRule
  let events: EventProducer
  /// What a newer program has written.
  let newer: NewerLayouts
  /// Which applications are stopped.
  let applications: ApplicationsReader
  /// When it is quiet for whom.
  let people: People
  /// The categories of applications whose devices have not registered them.
  let categories: PublishedCategories
  /// How often devices have changed their registrations.
  private var changes: DeviceBudget
  private let shards: Shards
  private var all: [UInt64: Session] = [:]
  /// When open sessions resync.
  private var resyncs: SessionWheel
  /// When those of them that asked for heartbeats get one.
  private var heartbeats: SessionWheel
  /// Sessions that resync out of turn, a part of them each second.
  private var early: [UInt64] = []
  /// The partition of `deliveries` that the lane reads.
  private var partition: Int32 = -1
  /// Seconds since the lane's start.
  private(set) var seconds: UInt32 = 0
  /// Whether expirations may be judged by the machine's clock; without it nothing is sent and nothing expires.
  var isClockRight = false
  private var frames = JSONWriter(capacity: 8192)
  /// Runs their tasks.
  weak var owner: FanOutCore?

  init(
    _ settings: FanOutSettings, _ shards: Shards, _ events: EventProducer, _ receipts: Receipts, _ applications: ApplicationsReader,
    _ people: People,
    _ categories: PublishedCategories, logger: Logger, metrics: FanOutMetrics
  ) {
    self.settings = settings
    self.logger = logger
    self.metrics = metrics
    self.shards = shards
    self.events = events
    self.receipts = receipts
    self.applications = applications
    self.people = people
    self.categories = categories
    changes = DeviceBudget(perMinute: settings.changesPerMinute)
    mediaLinks = settings.media.map { MediaLinks($0, settings.keys) }
    mailboxes = Mailboxes(shards)
    presences = Presences(shards, keptMilliseconds: settings.longestLifetime * 1000)
    outcomes = PendingOutcomes(events, mailboxes)
    newer = NewerLayouts(metrics.newer, logger: logger)
    expiration = ExpirationRule(oneAttemptSeconds: settings.oneAttemptSeconds)
    metrics.connectionsLimit.set(settings.limits.connections)
    resyncs = SessionWheel(periodSeconds: settings.limits.refreshSeconds)
    heartbeats = SessionWheel(periodSeconds: settings.limits.pingSeconds)
  }

  /// Sets the partition of `deliveries` that the lane reads.
  func begin(partition: Int32) { self.partition = partition }

  /// Counts a change of a device's registration. Returns whether it may change as often in this minute.
  ///
  /// - Parameter movesSchedules: whether the change may be one of the time zone.
  func mayChange(_ device: UInt64, movesSchedules: Bool) -> Bool {
    changes.takes(device, weight: movesSchedules ? settings.zoneChangeWeight : 1, at: UInt64(SteadyClock.milliseconds()))
  }

  // MARK: The registry

  /// Makes a session for a new connection.
  func make() -> Session {
    // No two sessions ever have the same generation. The present second is partly over, so it is not counted.
    Session(self, generation: RandomBytes.number(), helloDeadline: seconds + 1 + UInt32(settings.limits.helloSeconds))
  }

  subscript(generation: UInt64) -> Session? { all[generation] }

  var generations: some Collection<UInt64> { all.keys }

  func connected(_ session: Session) {
    all[session.generation] = session
    metrics.connections.set(Double(all.count))
  }

  func ended(_ session: Session, _ end: WebSocketEnd) {
    all[session.generation] = nil
    metrics.connections.set(Double(all.count))
    metrics.ended(end)
  }

  /// The presence of a session's device.
  func presence(_ generation: UInt64) -> Presence { Presence(partition: partition, generation: generation) }

  /// Begins the resyncs of a session that is open now, and its heartbeats where its device has asked for them.
  func opened(_ session: Session, heartbeat: Bool) {
    metrics.sessions.increment()
    resyncs.add(session.generation)
    if heartbeat { heartbeats.add(session.generation) }
  }

  /// Removes the presence of a session that has ended, unless a newer session has replaced it.
  func leave(_ token: String, _ generation: UInt64) { presences.leave(token, presence(generation)) }

  /// A link to a file for the device of a token with this hash; nil if the cluster serves no media.
  func link(to hash: MediaHash, deviceHash: UInt64) -> MediaLink? {
    mediaLinks?.link(to: hash, deviceHash: deviceHash, now: WallClock.seconds())
  }

  /// Whether Redis takes calls.
  var isRedisUp: Bool { shards.isUp }

  /// Makes a text frame of the JSON that `write` writes.
  func frame(_ write: (inout JSONWriter) -> Void) -> WebSocketFrame {
    frames.reset()
    write(&frames)
    return frames.withUnsafeBytes { bytes in WebSocketFrame.text(count: bytes.count) { $0.copyMemory(from: bytes) } }
  }

  // MARK: Time

  /// Does the work of one second; called once a second.
  func tick() {
    seconds += 1
    let now = WallClock.seconds()
    for session in all.values { session.checkDeadlines(now: now) }
    for generation in resyncs.turn(at: seconds, isOver: { all[$0] == nil }) { resync(generation) }
    for generation in heartbeats.turn(at: seconds, isOver: { all[$0] == nil }) { all[generation]?.send(ServerFrames.heartbeat) }
    let share = min(early.count, max(Self.earlyPerSecond, early.count / 5))
    for generation in early.suffix(share) { resync(generation) }
    early.removeLast(share)
    outcomes.emitUnsent()
    metrics.acknowledgements.set(outcomes.count)
  }

  private static let earlyPerSecond = 500

  /// Resyncs a session before its turn.
  func resyncSoon(_ generation: UInt64) { if early.last != generation { early.append(generation) } }

  private func resync(_ generation: UInt64) {
    if all[generation]?.open != nil { owner?.run(.resync(generation)) }
  }

  /// Resyncs every session with its mailbox, spread over a few seconds, after deliveries may have been missed.
  func resyncAll(_ reason: String) {
    guard !all.isEmpty else { return }
    logger.warning("all sessions resync with their mailboxes", ["reason": reason])
    early = all.keys.shuffled()
  }

  // MARK: Deliveries

  /// Takes a record of the lane's partition. It may be for a session that the lane does not hold.
  func received(_ record: RecordView) {
    let verdict = take(record)
    metrics.count(verdict)
    if verdict == .unreadable {
      logger.warning(
        "a delivery record cannot be read; its device finds the notification in its mailbox",
        ["topic": record.topic, "partition": record.partition, "offset": record.offset])
    }
  }

  private func take(_ record: RecordView) -> DeliveryVerdict {
    guard let value = record.value, let delivery = DeliveryRecord(value) else { return .unreadable }
    guard let session = all[delivery.generation], let open = session.open else { return .noSession }
    switch delivery.kind {
    case .takeover: session.takenOver()
    case .notify, .remove: return open.take(delivery, value)
    }
    return .control
  }
}

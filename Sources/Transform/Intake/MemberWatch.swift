package import EventLoop
package import Kafka
import Notifications
package import Store
package import Worker

/// Beats in Redis for the lanes of a process, and removes from the group those of processes that are silent.
///
/// Kafka would wait for the end of their session, six seconds by default. Its own loop and connection keep a busy lane from looking dead.
package actor MemberWatch: LoopActor {
  /// Its loop.
  package nonisolated let loop = EventLoop(name: "members")
  private let kafka: KafkaConfiguration
  private let store: StoreConfiguration
  private let group: String
  private let topic: String
  private let logger: Logger
  /// What the names of this process's members end with.
  private let suffix: String
  private var members: [String] = []
  /// How many of them have beaten.
  private var known = 0
  private var sessionMilliseconds = 0
  private var silence = SilentMembers()
  private var shards: Shards?
  private var work: Task<Void, Never>?
  private var removal: Task<Void, Never>?
  private var isClosed = false

  /// How long a removal may take, in milliseconds. After that the members' sessions have almost ended.
  private static let removalMilliseconds: Int64 = 4_000

  /// Makes one that is idle until a lane joins.
  ///
  /// - Parameters:
  ///   - topic: what the group reads.
  ///   - isNamed: whether somebody has given the worker its name. Under this name it takes its place in the group again when it is
  ///     restarted. Otherwise it is another member each time, since two containers of one host may have the same host and process id.
  package init(
    _ kafka: KafkaConfiguration, _ store: StoreConfiguration, group: String, reading topic: String, isNamed: Bool, logger: Logger
  ) {
    (self.kafka, self.group, self.topic, self.logger) = (kafka, group, topic, logger)
    suffix = isNamed ? "" : "." + String(UInt64.random(in: .min ... .max), radix: 36)
    var store = store
    // Nothing waits for a heartbeat, and another one follows.
    store.callDeadlineMilliseconds = min(store.callDeadlineMilliseconds, Int(SilentMembers.interruptedMilliseconds))
    self.store = store
  }

  /// Begins to beat for a lane that joins the group; returns its name as a static member.
  nonisolated func join(_ worker: Name, sessionMilliseconds: Int) -> String {
    // Brokers may refuse other characters, and names of more than 249. The number keeps apart what then looks the same, and two clusters
    // on one Kafka.
    let number = NameHash.hash("\(topic)\n\(worker.text)")
    let readable = String(worker.text.unicodeScalars.map { Self.isAllowed($0) ? Character($0) : "_" }.prefix(150))
    let name = "\(readable).\(String(number, radix: 36))\(suffix)"
    Task { await begin(name, sessionMilliseconds) }
    return name
  }

  private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil || "-._".unicodeScalars.contains(scalar))
  }

  private func begin(_ name: String, _ sessionMilliseconds: Int) {
    guard !isClosed else { return }
    self.sessionMilliseconds = sessionMilliseconds
    if !members.contains(name) { members.append(name) }
    guard work == nil else { return }
    let shards = Shards(on: loop, store, clientName: "carillon-members")
    self.shards = shards
    shards.start()
    work = Task { await beat(GroupHeartbeats(shards, group: group)) }
  }

  private func beat(_ heartbeats: GroupHeartbeats) async {
    while !isClosed {
      let began = SteadyClock.milliseconds()
      do {
        let own = members
        let answer = try await heartbeats.beat(own, forgottenMilliseconds: sessionMilliseconds)
        tell(answer, own)
        let others = answer.beats.filter { !own.contains($0.key) }
        let silent = silence.answered(others, at: SteadyClock.milliseconds(), by: answer.time)
        if !silent.isEmpty { remove(try await heartbeats.claim(silent), silent, by: answer.time) }
      } catch {
        // The lanes report the errors of Redis, which may have lost the heartbeats.
        silence.interrupted()
        known = 0
      }
      let took = SteadyClock.milliseconds() - began
      await loop.sleep(milliseconds: Int(max(SilentMembers.intervalMilliseconds - took, SilentMembers.intervalMilliseconds / 5)))
    }
    await heartbeats.leave(members)
  }

  /// Logs that another worker has removed this one's members.
  private func tell(_ answer: GroupHeartbeats.Answer, _ own: [String]) {
    if known > 0, answer.new > own.count - known {
      logger.warning("this worker had been silent, and others may have taken its partitions: its lanes join the group again")
    }
    known = own.count
  }

  /// Removes members beside the heartbeats.
  private func remove(_ claimed: [String], _ silent: [String: Int64], by time: Int64) {
    guard !claimed.isEmpty else { return }
    for name in claimed {
      logger.warning(
        "a worker is silent: its lane is removed from the group", ["member": name, "silentMs": Int(time - (silent[name] ?? time))])
    }
    removal = Task { [kafka, group, topic, logger, sessionMilliseconds, former = removal] in
      do throws(KafkaError) {
        let gone = try await StaticMembers.remove(
          claimed, from: group, reading: topic, sessionTimeoutMilliseconds: sessionMilliseconds,
          withinMilliseconds: Self.removalMilliseconds, kafka)
        guard gone.count < claimed.count else { return logger.info("the silent lanes have left the group", ["lanes": gone.count]) }
        logger.warning("silent lanes stay in the group until their session ends", ["lanes": claimed.count - gone.count])
      } catch {
        logger.warning("silent lanes stay in the group until their session ends", ["error": "\(error)"])
      }
      await former?.value
    }
  }

  private func stop() async {
    isClosed = true
    work?.cancel()
    await work?.value
    // It ends in its time, and leaves no place taken.
    await removal?.value
    shards?.close()
    shards = nil
  }

  /// Ends the heartbeats, after the lanes have left their group.
  package nonisolated func close() async {
    await stop()
    await loop.close()
  }
}

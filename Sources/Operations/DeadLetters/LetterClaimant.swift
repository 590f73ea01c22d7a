import EventLoop
import Kafka
import Notifications
import Worker

/// Another run has claimed the letters, because this one was silent for too long.
package struct LetterClaimLost: Error, Sendable, CustomStringConvertible {
  /// The person who runs it.
  package var by: String

  /// The error in words.
  package var description: String { "\(by) has claimed the dead letters, because this run was silent for too long" }
}

/// Claims the dead letters for one run at a time.
///
/// Without it two runs would both write the pending letters. Claims lie in Kafka beside the letters' states. A killed run is silent, and
/// the next run claims the letters after `silence` of its own clock. A run that only stood still may write one round beside its successor.
/// The cluster judges the second copies as repeats.
final class LetterClaimant {
  /// Called once for each run that this one waits for.
  var onWaiting: ((LetterClaim) -> Void)?
  /// Whether to stop waiting.
  var isStopped: () -> Bool = { false }

  private let loop: EventLoop
  private let admin: Admin
  private let reader: TopicReader
  private let producer: Producer
  private let topic: ProducerTopic
  private let headers = RecordHeaders()
  private let run = String(UInt64.random(in: 1...(.max)), radix: 16)
  private let by: String
  private let silence: Int64
  private var claims = LetterClaims()
  /// The next offset to read; nil before the first look.
  private var position: Int64?
  private let timer: Timer

  /// In milliseconds: how far back claims are read, and the intervals of renewals and of looks by others.
  private static let (windowMilliseconds, renewalMilliseconds, lookMilliseconds): (Int64, Int, Int) = (60 * 60 * 1000, 3_000, 500)
  /// Nobody waits for the renewal of an older claim. The clocks of two machines do not differ that much.
  private static let oldMilliseconds: Int64 = 5 * 60 * 1000

  /// - Parameter silence: how long a run may be silent before the next one claims the letters, in milliseconds.
  init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, topic: String, by: String, silence: Int64, _ admin: Admin, _ reader: TopicReader
  ) throws(KafkaError) {
    (self.loop, self.by, self.silence, self.admin, self.reader) = (loop, by, silence, admin, reader)
    var options = Producer.Options()
    options.lingerMilliseconds = 0
    producer = try Producer(on: loop, kafka, options)
    self.topic = try producer.topic(topic)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in renew() }
  }

  /// Waits until this run has the letters; false if it was stopped before.
  func claim() async throws(KafkaError) -> Bool {
    var (waitsFor, since): (Int64?, Int64) = (nil, SteadyClock.milliseconds())
    var told: String?
    while !isStopped() {
      try await look()
      if claims.newest != waitsFor { (waitsFor, since) = (claims.newest, SteadyClock.milliseconds()) }
      if let holder = claims.holder, SteadyClock.milliseconds() - since < silence,
        WallClock.milliseconds() - holder.at < Self.oldMilliseconds
      {
        if holder.run != told { onWaiting?(holder) }
        told = holder.run
        await loop.sleep(milliseconds: Self.lookMilliseconds)
        continue
      }
      try await look(through: try await say(.begins(after: claims.newest)))
      guard claims.holder?.run == run else { continue }
      timer.start(after: Self.renewalMilliseconds, repeating: Self.renewalMilliseconds)
      return true
    }
    return false
  }

  /// Checks that this run still has the letters.
  func check() async throws {
    try await look(through: try await say(.goesOn))
    if let holder = claims.holder, holder.run == run { return }
    throw LetterClaimLost(by: claims.holder?.by ?? "another run")
  }

  /// Releases the letters for the next run, and closes.
  func close() async {
    timer.close()
    if claims.holder?.run == run { _ = try? await say(.ends) }
    await producer.close(withinMilliseconds: 1_000)
  }

  /// Renews the claim. `check` finds out whether it counts.
  private func renew() {
    fill(.goesOn)
    _ = producer.produce(topic, partition: LetterClaim.partition, key: nil, value: nil, headers: headers, opaque: 0)
  }

  private func fill(_ kind: LetterClaim.Kind) {
    headers.removeAll()
    for (name, value) in LetterClaim(kind, run: run, by: by, at: WallClock.milliseconds()).headers { headers.append(name, value) }
  }

  /// Writes a claim; answers its offset.
  private func say(_ kind: LetterClaim.Kind) async throws(KafkaError) -> Int64 {
    fill(kind)
    return try await producer.send(topic, partition: LetterClaim.partition, key: nil, value: nil, headers: headers).offset
  }

  /// Reads the claims that were written since the last look, at least up to this offset.
  private func look(through offset: Int64? = nil) async throws(KafkaError) {
    let partition = TopicPartition(topic.name, LetterClaim.partition)
    let first: Int64
    if let position {
      first = position
    } else {
      let from = TimeRange(from: WallClock.milliseconds() - Self.windowMilliseconds)
      let stretches = try await admin.stretches(of: topic.name, from)
      first = stretches.first { $0.partition == partition }?.offsets.lowerBound ?? 0
    }
    let end = max(try await admin.ends(of: [partition])[partition]?.upperBound ?? 0, offset.map { $0 + 1 } ?? 0)
    let found = Gathered(claims)
    try await reader.read([TopicStretch(partition, first, end)], "who works on dead letters") { record in
      if let claim = LetterClaim(headers: record.texts) { found.value.take(claim, at: record.offset) }
    }
    (claims, position) = (found.value, max(first, end))
  }
}

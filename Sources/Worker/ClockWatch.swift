import JSON
import Notifications
public import Store

/// Compares the machine's clock with that of Redis for each lane, and reports a difference.
///
/// It cannot tell which of the two is wrong. If the workers of all machines report the same, it is Redis' clock.
public final class ClockWatch {
  private let shards: Shards
  private let metrics: RedisMetrics
  private let logger: Logger
  private let health: Health
  private var trust = ClockTrust()
  /// Called after the first comparison, when the clock becomes wrong, and when it is right again.
  public var onJudged: ((_ isRight: Bool) -> Void)?

  /// Makes a watch for the lane of this connection and health.
  public init(_ shards: Shards, metrics: RedisMetrics, logger: Logger, health: Health) {
    (self.shards, self.metrics, self.logger, self.health) = (shards, metrics, logger, health)
  }

  /// Whether expirations may be judged by the clock; false before the first comparison.
  public var isRight: Bool { trust.judgement.map { $0 < .wrong } ?? false }

  /// Why the lane must not work; nil if there is no objection.
  var objection: String? {
    trust.judgement == .wrong ? "the machine's clock and that of Redis differ too much: see the condition 'clock'" : nil
  }

  /// Compares the clocks now.
  ///
  /// - Throws: the error if Redis does not answer.
  func compare() async throws(StoreError) {
    guard let offset = try await shards.clockOffset() else { return }
    let former = trust.judgement
    let judgement = trust.judge(offset)
    metrics.clockOffset.set(Double(offset.milliseconds) / 1000)
    health.set("clock", ready: judgement < .wrong, Self.difference(offset) + ". The worker waits until then")
    if judgement != former { tell(judgement, former, offset) }
    if former == nil || (former == .wrong) != (judgement == .wrong) { onJudged?(judgement < .wrong) }
  }

  private func tell(_ judgement: ClockTrust.Judgement, _ former: ClockTrust.Judgement?, _ offset: ClockOffset) {
    let fields: KeyValuePairs<String, any JSONRepresentable> = [
      "clock": Timestamp.text(offset.machine), "redis": Timestamp.text(offset.server), "aheadMs": offset.milliseconds,
    ]
    switch judgement {
    case .wrong: logger.error("the machine's clock and that of Redis differ too much: the lane judges nothing by it", fields)
    case .differs: logger.warning("the machine's clock and that of Redis differ: notifications expire early or late", fields)
    case .agrees: if former != nil { logger.info("the machine's clock and that of Redis agree again", fields) }
    }
  }

  /// How far the two clocks differ and which one to set right.
  ///
  /// It fits into a worker's report, so `carillon status` shows all of it.
  public static func difference(_ offset: ClockOffset) -> String {
    let difference = "\(abs(offset.milliseconds) / 1000) s \(offset.milliseconds < 0 ? "behind" : "ahead of")"
    return "the machine's clock (\(Timestamp.text(offset.machine))) is \(difference) that of Redis (\(Timestamp.text(offset.server))): "
      + "set it right; if all workers say so, set Redis' clock right"
  }
}

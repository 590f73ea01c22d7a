import Cryptography
import EventLoop
import HTTP
import Notifications
import Store
package import Worker

/// The outcome of a record of the lane's partition, as a metric label. Each record has one.
enum DeliveryVerdict: Int, CaseIterable {
  /// It was sent to the device.
  case sent
  /// The session leaves it in the mailbox, for a page.
  case leftToMailbox
  /// It has expired. A page of the mailbox will end it.
  case expired
  /// It is for another person or application than the session's. A page of the mailbox will end it.
  case otherOwner
  /// Its application was stopped after it was published, or may be, or its device's settings let nothing of it be shown.
  case filtered
  /// The device was asked to go away. It finds the notification in its mailbox when it reconnects.
  case leaving
  /// Its session is closed, or belongs to another lane.
  case noSession
  /// It ends a session.
  case control
  /// A newer program has written it. The mailbox keeps it for a newer worker.
  case newer
  /// It is not a delivery record, or is damaged.
  case unreadable

  /// Its name in the metrics.
  var name: String { MetricLabel.snakeCase("\(self)") }
}

/// How a notification reached its device.
enum DeliveryPath: Int, CaseIterable {
  /// At once, by a record of the lane's partition.
  case live
  /// By a page of the mailbox, where it waited for the device or for a free slot in the window.
  case mailbox

  /// Its name in the metrics.
  var name: String { "\(self)" }
}

/// What the lane counts of its devices' frames, as metric labels.
enum CountedFrame: Int, CaseIterable {
  case notify, remove, acknowledged, dropped, response, refused, bad, takeover, unauthorized
}

/// The metrics of one fan-out lane. An object, since a copy of so many cells costs more than a delivery.
package final class FanOutMetrics: Sendable {
  let connections: Gauge
  let sessions: Counter
  let credentials: MetricSet<Counter>
  let waitingHellos: Gauge
  let acknowledgements: Gauge
  let unreadableEntries: Counter
  let damagedPayloads: Counter
  let newer: [Layout: Counter]
  let connectionsLimit: Gauge
  let mailboxEntries: Histogram
  let clients: ClientMetrics
  let lag = DeliveriesLag()
  private let sentAfter: [Histogram]
  private let acknowledgedAfter: [Histogram]
  let redis: RedisMetrics
  private let limits: [Limit: Counter]
  private let frames: [Counter]
  private let verdicts: [Counter]
  private let closes: [CloseCode: Counter]
  private let ends: [WebSocketEnd.Cause: Counter]
  private let (handshakes, resumedHandshakes): (Counter, Counter)
  private let failedTLS: [TLSError.Code: Counter]

  /// Makes the lane's cells.
  ///
  /// - Parameter lane: the lane's name in labels.
  package init(_ registry: MetricRegistry, lane: String = "fan-out-0") {
    // Labels follow the spelling of metric names.
    let label = MetricLabel.snakeCase(lane)
    registry.showSet(MetricNames.fanOutLagRecords) { [lag] in
      lag.standing(at: WallClock.milliseconds()).map { [([label, String($0.partition)], Double($0.records))] } ?? []
    }
    registry.showSet(MetricNames.fanOutLagSeconds) { [lag] in
      guard let standing = lag.standing(at: WallClock.milliseconds()), let milliseconds = standing.milliseconds else { return [] }
      return [([label, String(standing.partition)], Double(milliseconds) / 1000)]
    }
    connections = registry.make(MetricNames.connections)
    redis = RedisMetrics(registry)
    sessions = registry.make(MetricNames.sessions)
    credentials = registry.makeSet(MetricNames.credentials)
    waitingHellos = registry.make(MetricNames.waitingHellos)
    acknowledgements = registry.make(MetricNames.acknowledgements)
    unreadableEntries = registry.make(MetricNames.mailboxDamage, "entry")
    connectionsLimit = registry.make(MetricNames.connectionsLimit)
    mailboxEntries = registry.make(MetricNames.mailboxEntries)
    clients = ClientMetrics(registry, lane: lane)
    sentAfter = DeliveryPath.allCases.map { registry.make(MetricNames.sentAfter, $0.name) }
    acknowledgedAfter = DeliveryPath.allCases.map { registry.make(MetricNames.acknowledgedAfter, $0.name) }
    newer = registry.makeNewerLayouts()
    damagedPayloads = registry.make(MetricNames.mailboxDamage, "payload")
    limits = Dictionary(uniqueKeysWithValues: Limit.allCases.map { ($0, registry.make(MetricNames.limited, $0.rawValue)) })
    frames = CountedFrame.allCases.map { registry.make(MetricNames.frames, "\($0)") }
    verdicts = DeliveryVerdict.allCases.map { registry.make(MetricNames.records, $0.name) }
    closes = Dictionary(
      uniqueKeysWithValues: CloseCode.allCases.map { ($0, registry.make(MetricNames.closed, MetricLabel.snakeCase("\($0.name)"))) })
    ends = Dictionary(
      uniqueKeysWithValues: WebSocketEnd.Cause.allCases.map { ($0, registry.make(MetricNames.ended, MetricLabel.snakeCase($0.rawValue))) })
    handshakes = registry.make(MetricNames.tlsSessions, "full")
    resumedHandshakes = registry.make(MetricNames.tlsSessions, "resumed")
    failedTLS = Dictionary(uniqueKeysWithValues: TLSError.Code.ofSessions.map { ($0, registry.make(MetricNames.tlsSessions, $0.rawValue)) })
  }

  /// Counts the sessions of TLS since an earlier state of their counters.
  func count(_ now: TLSStatistics, since before: TLSStatistics) {
    handshakes.increment(by: now.full - before.full)
    resumedHandshakes.increment(by: now.resumed - before.resumed)
    for (code, number) in now.failed { failedTLS[code]?.increment(by: number - before.failed[code, default: 0]) }
  }

  /// Records the age of a notification when it was sent; both times in milliseconds since 1970.
  func sent(at now: Int64, _ revision: Revision, _ path: DeliveryPath) { observe(sentAfter, now, revision, path) }

  /// Records the age of a notification when its device acknowledged it.
  func acknowledged(at now: Int64, _ revision: Revision, _ path: DeliveryPath) { observe(acknowledgedAfter, now, revision, path) }

  private func observe(_ histograms: [Histogram], _ now: Int64, _ revision: Revision, _ path: DeliveryPath) {
    histograms[path.rawValue].observe(ageMilliseconds: now - Int64(clamping: revision.timestamp))
  }

  func limited(_ limit: Limit, by number: Int = 1) { limits[limit]?.increment(by: number) }

  func count(_ frame: CountedFrame) { frames[frame.rawValue].increment() }

  func count(_ verdict: DeliveryVerdict) { verdicts[verdict.rawValue].increment() }

  func closed(_ code: CloseCode) { closes[code]?.increment() }

  func ended(_ end: WebSocketEnd) { ends[end.cause]?.increment() }
}

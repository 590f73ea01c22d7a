/// The numbers of a run, while it runs or at its end.
package struct LoadResult: Sendable {
  /// The plan.
  package var plan: LoadPlan
  /// When the schedule began, in milliseconds since 1970.
  package var startedAt: Int64
  /// The time since then, in nanoseconds.
  package var elapsed: Int64
  /// Requests that were due so far.
  package var offered = 0
  /// Requests that were given to Kafka's client within a second of their due time.
  package var kept = 0
  /// Requests that were given to Kafka's client a second time.
  package var duplicates = 0
  /// What is decided of requests and devices.
  package var totals = LoadLedger.Totals()
  /// The latencies.
  package var measures: LoadMeasures
  /// Devices with a connection.
  package var connected = 0
  /// All connections that devices have made.
  package var connections = 0
  /// Responses that people have sent.
  package var responses = 0
  /// Responses that the cluster has accepted.
  package var acceptedResponses = 0
  /// What this process, the workers and Redis have taken since the start.
  package var servers: LoadServers
  /// Whether somebody has ended the run early.
  package var isStopped = false
  /// The shares of the run, if this is the sum of several.
  package var shares: [LoadShareResult] = []
  /// What this process waits for after its last request; nil before that.
  package var waiting: LoadLedger.Waiting?

  /// The share of the schedule that was kept; 1 if nothing was due.
  package var schedule: Double { Self.share(kept, of: offered) }

  /// The share of what should have arrived that has arrived; 1 if nothing is decided.
  package var reach: Double { Self.share(totals.reached, of: totals.expected) }

  /// A part of a whole; 1 if there is nothing.
  static func share(_ part: Int, of whole: Int) -> Double { whole == 0 ? 1 : Double(part) / Double(whole) }

  /// The processor time of this process since the start, in seconds.
  package var processorSeconds: Double { servers.groups[LoadServers.ownGroup]?.seconds ?? 0 }

  /// The processor time of all servers that were seen for a published request, without this process, in milliseconds; nil if none was seen.
  package var processorMilliseconds: Double? {
    guard totals.published > 0, servers.groups.keys.contains(where: { $0 != LoadServers.ownGroup }) else { return nil }
    return servers.seconds / Double(totals.published) * 1000
  }

  /// The number of all violations.
  package var violations: Int { totals.violations.values.reduce(0, +) }

  /// The share of the schedule that a valid run keeps.
  package static let leastSchedule = 0.99

  /// Whether the run says something on the cluster and no promise was broken.
  package var isGood: Bool {
    schedule >= Self.leastSchedule && violations == 0 && totals.unfinished == 0 && totals.failed == 0 && !isStopped
  }
}

import Notifications
import Store
package import Worker

/// The metrics of one transform lane. An object, since copying so many cells costs more than a request.
package final class TransformMetrics: Sendable {
  let requests: Counter
  let registrations: Counter
  let evicted: Counter
  let canceled: Counter
  let unreadableEntries: Counter
  let unreadableMarkers: Counter
  let unreadableOffsets: Counter
  let unknownHeaders: Counter
  let unknownMembers: Counter
  let retries: Counter
  let firings: Counter
  let redisFailures: Counter
  let deliveriesLost: Counter
  let journalRecords: Counter
  let journalBytes: Counter
  let markersRaised: Counter
  let rewinds: Counter
  let newer: [Layout: Counter]
  let latency: Histogram
  let lagSeconds: MetricSet<Gauge>
  let lagRecords: MetricSet<Gauge>
  let assignedPartitions: Gauge
  let inFlight: Gauge
  let inFlightLimit: Gauge
  let inFlightBytes: Gauge
  let inFlightBytesLimit: Gauge
  let unjournaledPartitions: Gauge
  let missed: Counter
  let partitions: Gauge
  let clients: ClientMetrics
  private let transformed: Histogram
  private let registry: MetricRegistry
  let redis: RedisMetrics
  // By the verdict's number; nil if such records do not get the verdict.
  private let requestVerdicts: [Counter?]
  private let registrationVerdicts: [Counter?]
  /// By the outcome's number; nil if the judge does not answer it.
  private let deviceVerdicts: [Counter?]
  private let extensions: [Counter]
  private let deadLetters: [String: Counter]
  private let rateLimited: [RateExcess.Scope: Counter]

  /// Makes the lane's cells.
  ///
  /// - Parameter lane: the lane's name in labels.
  package init(_ registry: MetricRegistry, lane: String = "transform-0") {
    requests = registry.make(MetricNames.requests)
    registrations = registry.make(MetricNames.registrations)
    evicted = registry.make(MetricNames.evicted)
    canceled = registry.make(MetricNames.canceled)
    unreadableEntries = registry.make(MetricNames.unreadable, "mailbox_entry")
    unreadableMarkers = registry.make(MetricNames.unreadable, "marker")
    unreadableOffsets = registry.make(MetricNames.unreadableOffsets)
    unknownHeaders = registry.make(MetricNames.unknownFields, "header")
    unknownMembers = registry.make(MetricNames.unknownFields, "payload")
    retries = registry.make(MetricNames.retries)
    firings = registry.make(MetricNames.firings)
    redisFailures = registry.make(MetricNames.redisFailures)
    deliveriesLost = registry.make(MetricNames.deliveriesLost)
    journalRecords = registry.make(MetricNames.journalRecords)
    journalBytes = registry.make(MetricNames.journalBytes)
    markersRaised = registry.make(MetricNames.markersRaised)
    rewinds = registry.make(MetricNames.rewinds)
    newer = registry.makeNewerLayouts()
    latency = registry.make(MetricNames.latency)
    lagSeconds = registry.makeSet(MetricNames.lagSeconds)
    lagRecords = registry.makeSet(MetricNames.lagRecords)
    assignedPartitions = registry.make(MetricNames.assignedPartitions)
    inFlight = registry.make(MetricNames.inFlight)
    inFlightLimit = registry.make(MetricNames.inFlightLimit)
    inFlightBytes = registry.make(MetricNames.inFlightBytes)
    inFlightBytesLimit = registry.make(MetricNames.inFlightBytesLimit)
    missed = registry.make(MetricNames.missed)
    // All lanes set the same values.
    partitions = registry.shared(MetricNames.partitions)
    unjournaledPartitions = registry.shared(MetricNames.unjournaledPartitions)
    self.registry = registry
    clients = ClientMetrics(registry, lane: lane)
    transformed = registry.make(MetricNames.transformed)
    let reasons = RejectionReason.allCases.map(\.rawValue) + [DeadLetter.poison, DeadLetter.unreadable]
    deadLetters = Dictionary(
      uniqueKeysWithValues: reasons.map { ($0, registry.make(MetricNames.deadLetters, MetricLabel.snakeCase($0))) })
    rateLimited = Dictionary(uniqueKeysWithValues: RateExcess.Scope.allCases.map { ($0, registry.make(MetricNames.rateLimited, "\($0)")) })
    redis = RedisMetrics(registry)
    requestVerdicts = Self.cells(RecordVerdict.all.map { $0.label(isRegistration: false) }) { registry.make(MetricNames.verdicts, $0) }
    registrationVerdicts = Self.cells(RecordVerdict.all.map { $0.label(isRegistration: true) }) {
      registry.make(MetricNames.registrationVerdicts, $0)
    }
    deviceVerdicts = Outcome.allCases.map { $0.deviceLabel.map { registry.make(MetricNames.deviceVerdicts, $0) } }
    // Labels use underscores, like the metrics' names.
    extensions = ExtensionState.allCases.map { registry.make(MetricNames.extensions, "\($0.word)".replacing("-", with: "_")) }
  }

  /// Counts how a service extension ended for a notification.
  func count(_ state: ExtensionState) { extensions[Int(state.rawValue) - 1].increment() }

  /// Shows how long a topic keeps its records; 0 means for ever, or unknown.
  func show(retentionMilliseconds milliseconds: Int, of topic: String) {
    registry.shared(MetricNames.retention, topic).set(Double(milliseconds) / 1000)
  }

  /// Counts a record that was dead-lettered.
  func deadLettered(_ reason: String) { deadLetters[reason]?.increment() }

  /// Counts a request that is beyond a rate limit.
  func rateLimited(_ scope: RateExcess.Scope) { rateLimited[scope]?.increment() }

  /// Observes the age of a request whose outcomes are durable.
  ///
  /// - Parameters:
  ///   - now: milliseconds since 1970.
  ///   - timestamp: of its record; negative if it has none.
  func transformed(at now: Int64, published timestamp: Int64) {
    if timestamp >= 0 { transformed.observe(ageMilliseconds: now - timestamp) }
  }

  /// Counts the fields of an accepted request that have no effect.
  func countUnknownFields(_ view: RequestView) {
    if view.unknownHeader != nil { unknownHeaders.increment() }
    if view.facts.unknown != nil { unknownMembers.increment() }
  }

  func took(isRegistration: Bool) { (isRegistration ? registrations : requests).increment() }

  func count(_ verdict: RecordVerdict, isRegistration: Bool) {
    (isRegistration ? registrationVerdicts : requestVerdicts)[verdict.number]?.increment()
  }

  /// Counts a verdict on a request at one device.
  func count(_ verdict: Outcome) { deviceVerdicts[verdict.rawValue]?.increment() }

  /// Makes a cell for each verdict that has a label; verdicts with the same label share one.
  private static func cells(_ labels: [String?], _ make: (String) -> Counter) -> [Counter?] {
    var cells: [String: Counter] = [:]
    return labels.map { label in
      guard let label else { return nil }
      let cell = cells[label] ?? make(label)
      cells[label] = cell
      return cell
    }
  }
}

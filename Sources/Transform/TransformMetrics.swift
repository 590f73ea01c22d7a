public import Worker

/// What one transform lane counts.
public struct TransformMetrics: Sendable {
  let requests: Counter
  let queued: Counter
  let expired: Counter
  let collapsed: Counter
  let duplicates: Counter
  let unregistered: Counter
  let rejected: Counter
  let evicted: Counter
  let retries: Counter
  let redisFailures: Counter
  let deliveriesLost: Counter
  let condemned: Counter
  let markersRaised: Counter
  let returns: Counter
  let latency: Histogram

  /// Makes the lane's cells.
  public init(_ registry: MetricRegistry) {
    requests = registry.make(MetricNames.requests)
    queued = registry.make(MetricNames.verdicts, "queued")
    expired = registry.make(MetricNames.verdicts, "expired")
    collapsed = registry.make(MetricNames.verdicts, "collapsed")
    duplicates = registry.make(MetricNames.verdicts, "duplicate")
    unregistered = registry.make(MetricNames.verdicts, "unregistered")
    rejected = registry.make(MetricNames.verdicts, "rejected")
    evicted = registry.make(MetricNames.verdicts, "evicted")
    retries = registry.make(MetricNames.retries)
    redisFailures = registry.make(MetricNames.redisFailures)
    deliveriesLost = registry.make(MetricNames.deliveriesLost)
    condemned = registry.make(MetricNames.verdicts, "poison")
    markersRaised = registry.make(MetricNames.markersRaised)
    returns = registry.make(MetricNames.returns)
    latency = registry.make(MetricNames.latency)
  }
}

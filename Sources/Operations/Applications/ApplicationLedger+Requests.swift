import EventLoop
import Kafka
public import Notifications
import Worker

/// Whether requests of an application came lately.
public struct ApplicationSighting: Sendable, Equatable {
  /// Whether one was found.
  public var isSeen = false
  /// Requests that were looked at, the newest first.
  public var requests = 0
  /// From when on all requests were looked at, in milliseconds since 1970; nil where they are too many for the time that there is.
  public var since: Int64?
  /// Other applications: those of the requests that were looked at, and those that were stopped before.
  public var others: Set<Name> = []
}

extension ApplicationLedger {
  /// How far back it looks, how long it may take, in milliseconds, and how many requests it reads of a partition at most.
  private static let (hour, maximumMilliseconds, maximumOfPartition): (Int64, Int64, Int64) = (3_600_000, 5_000, 100_000)
  /// Other applications that are remembered at most.
  private static let maximumOthers = 1_000

  /// Looks for requests of an application in the last hour, the newest first, until one is found.
  ///
  /// A cluster may have millions of requests in an hour. So no more are read than in five seconds, and what was looked at is told.
  public func lookForRequests(of application: Name, now: Int64) async throws -> ApplicationSighting {
    let found = Gathered(ApplicationSighting())
    found.value.others = Set(try await read().map(\.application).filter { $0 != application })
    let (rules, since, end) = (RequestRules(topics: topics), now - Self.hour, SteadyClock.milliseconds() + Self.maximumMilliseconds)
    let topic = topics.requests
    let all = try await Admin.with(kafka) { try await $0.stretches(of: topic, TimeRange(from: since)) }
    let stretches = all.map { stretch in
      let offsets = stretch.offsets
      return TopicStretch(
        stretch.partition, max(offsets.lowerBound, offsets.upperBound - Self.maximumOfPartition), offsets.upperBound)
    }
    var rounds = Backwards(stretches, first: 1_000)
    let isEnough = { found.value.isSeen || SteadyClock.milliseconds() >= end }
    while !isEnough(), let round = rounds.next() {
      try await TopicReader(on: loop, kafka).read(round, "requests", in: nil, until: isEnough) { record in
        // The embedded broker finds nothing by its time, so older ones are among them.
        guard record.timestamp >= since else { return }
        found.value.requests += 1
        guard let name = PublishedRequest(record, rules).application else { return }
        if name == application {
          found.value.isSeen = true
        } else if found.value.others.count < Self.maximumOthers {
          found.value.others.insert(name)
        }
      }
    }
    let isWhole = rounds.isEmpty && !isEnough() && zip(all, stretches).allSatisfy { $0.offsets.count == $1.offsets.count }
    found.value.since = isWhole ? since : nil
    return found.value
  }
}

import EventLoop
import Kafka
package import Notifications
import Worker

/// Whether an application has recent requests.
package struct ApplicationSighting: Sendable, Equatable {
  /// Whether one was found.
  package var isSeen = false
  /// The number of requests that were read, the newest first.
  package var requests = 0
  /// The time from which all requests were read, in milliseconds since 1970; nil if time ran out.
  package var since: Int64?
  /// Other applications: those of the requests that were read, and those that were stopped before.
  package var others: Set<Name> = []
}

extension ClusterTool {
  /// The limits: how far back and how long it searches, in milliseconds, and the most requests of a partition.
  private static let (hour, maximumMilliseconds, maximumOfPartition): (Int64, Int64, Int64) = (3_600_000, 5_000, 100_000)
  /// The most other applications that are remembered.
  private static let maximumOthers = 1_000

  /// Looks for a request of an application in the last hour, the newest first.
  ///
  /// A cluster may have millions of requests in an hour. So it reads for at most five seconds, and the answer says what was read.
  package func lookForRequests(of application: Name, now: Int64) async throws -> ApplicationSighting {
    let found = Gathered(ApplicationSighting())
    found.value.others = Set(try await applications().map(\.application).filter { $0 != application })
    let (rules, since, end) = (rules, now - Self.hour, SteadyClock.milliseconds() + Self.maximumMilliseconds)
    let topic = rules.topics.requests
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
        // The embedded broker does not find offsets by time, so there are older requests among these.
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

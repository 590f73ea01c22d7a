import Notifications

/// The newest requests, up to a limit. A value.
struct LatestRequests {
  private let limit: Int
  private var requests: [PublishedRequest] = []

  init(_ limit: Int) { self.limit = limit }

  /// Adds a request.
  mutating func add(_ request: PublishedRequest) {
    requests.append(request)
    if requests.count >= 4 * limit + 1_000 { requests = newest }
  }

  /// The newest ones, the last first. A request that was published again appears with its last record.
  var newest: [PublishedRequest] {
    var ids: Set<NotificationID> = []
    return requests.sorted { Self.time($0) > Self.time($1) }.filter { ids.count < limit && ids.insert($0.id).inserted }
  }

  /// The publication time of the oldest one, in milliseconds since 1970, if the limit is reached. Older ones need no search.
  var horizon: Int64? {
    let newest = newest
    return newest.count == limit ? newest.last.map(Self.time) : nil
  }

  private static func time(_ request: PublishedRequest) -> Int64 { request.source.position.timestamp }
}

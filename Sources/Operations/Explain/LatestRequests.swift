import Notifications

/// The newest of the requests that are found, as many as are wanted. A value.
struct LatestRequests {
  private let limit: Int
  private var requests: [PublishedRequest] = []

  init(_ limit: Int) { self.limit = limit }

  /// Takes one.
  mutating func add(_ request: PublishedRequest) {
    requests.append(request)
    if requests.count >= 4 * limit + 1_000 { requests = newest }
  }

  /// The newest, the last one first; of one that was published again the last record.
  var newest: [PublishedRequest] {
    var ids: Set<NotificationID> = []
    return requests.sorted { Self.time($0) > Self.time($1) }.filter { ids.count < limit && ids.insert($0.id).inserted }
  }

  /// When the oldest of them was published, in milliseconds since 1970, if there are as many as are wanted: older ones need not be searched.
  var horizon: Int64? {
    let newest = newest
    return newest.count == limit ? newest.last.map(Self.time) : nil
  }

  private static func time(_ request: PublishedRequest) -> Int64 { request.source.position.timestamp }
}

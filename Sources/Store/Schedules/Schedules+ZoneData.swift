public import Notifications
import Redis

/// The version of the time zone database by which due times were computed.
extension Schedules {
  /// A page of the pending schedules of a partition in a bucket.
  public struct Page: Sendable, Equatable {
    /// The schedules. One may be in several pages.
    public var keys: [ScheduleKey]
    /// The place of the next page; nil after the last one.
    public var next: String?
  }

  /// The place of the first page.
  public static var firstPage: String { "0" }

  /// Lists pending schedules of a partition in a bucket. Each that is pending all the time is in a page.
  ///
  /// - Parameters:
  ///   - place: the place of the page, which the page before it names.
  ///   - count: about how many schedules a page has.
  public func page(
    in bucket: Int, of partition: UInt32, at place: String, count: Int, _ then: @escaping (Result<Page, StoreError>) -> Void
  ) {
    let key = shards.keys.dueTimes(bucket, partition: partition)
    calls.command.begin("ZSCAN")
    for word in [key, place, "COUNT", "\(count)"] { calls.command.append(word) }
    calls.send(over: shards.shard(of: bucket)) { answer in
      then(
        answer.flatMap { reply in
          guard let next = reply[0]?.text, let found = reply[1] else {
            return .failure(StoreError(.faulty, "Redis answered ZSCAN with something else"))
          }
          let keys = stride(from: 0, to: found.count, by: 2).compactMap { found[$0]?.bytes.flatMap { ScheduleKey($0) } }
          return .success(Page(keys: keys, next: next == Self.firstPage ? nil : next))
        }.mapError { $0.about(key) })
    }
  }

  /// Notes that the due times of a partition in a bucket are those of this version of the time zone database.
  public func note(zoneData version: String, in bucket: Int, of partition: UInt32, _ then: @escaping (StoreError?) -> Void) {
    calls.command.begin("HSET")
    for word in [shards.keys.zoneData(bucket), "\(partition)", version] { calls.command.append(word) }
    calls.sendWrite(over: shards.shard(of: bucket), then)
  }
}

import Notifications
import Redis

extension Schedules {
  /// Writes the due times and follow-ups of a partition in a bucket again.
  ///
  /// It takes them from the schedules in Redis. It scans all keys of the server, which takes a while. It may stop at any moment: until it
  /// completes, `due` answers that due times are missing.
  ///
  /// - Parameter now: milliseconds since 1970.
  public func restoreDueTimes(in bucket: Int, of partition: UInt32, now: Int64, _ then: @escaping (StoreError?) -> Void) {
    DueTimesRestoration(self, bucket, partition, now, then).scan(from: "0")
  }
}

/// One restoration: pages of keys, then the schedules of each key.
private final class DueTimesRestoration {
  private let schedules: Schedules
  private let (bucket, partition): (Int, UInt32)
  private let now: Int64
  private let then: (StoreError?) -> Void
  /// The cursor of the next page; `0` after the last one.
  private var cursor = "0"
  /// The keys of the page that are not read yet.
  private var hashes: [String] = []
  /// The schedules of one key that are not restored yet.
  private var keys: [ScheduleKey] = []
  /// A state that only a newer program can restore.
  private var newer: StoreError?
  /// The number of keys that the server scans for one page.
  private static let page = 1_000

  init(_ schedules: Schedules, _ bucket: Int, _ partition: UInt32, _ now: Int64, _ then: @escaping (StoreError?) -> Void) {
    (self.schedules, self.bucket, self.partition, self.now, self.then) = (schedules, bucket, partition, now, then)
  }

  private var prefix: String { "\(Keys.ScheduleSet.all.rawValue){\(bucket)}" }

  func scan(from place: String) {
    schedules.calls.command.begin("SCAN")
    for word in [place, "MATCH", prefix + "*", "COUNT", "\(Self.page)"] { schedules.calls.command.append(word) }
    schedules.calls.send(over: schedules.shards.shard(of: bucket)) { [self] answer in
      switch answer {
      case .failure(let error): then(error)
      case .success(let reply):
        guard let next = reply[0]?.text, let names = reply[1] else {
          return then(StoreError(.faulty, "Redis answered SCAN with something else"))
        }
        cursor = next
        hashes = (0..<names.count).compactMap { names[$0]?.bytes.flatMap { String(validating: $0, as: UTF8.self) } }
        goOn()
      }
    }
  }

  private func goOn() {
    if let key = keys.popLast() { return restore(key) }
    if let hash = hashes.popLast() { return list(hash) }
    if cursor != "0" { return scan(from: cursor) }
    // The mark stays for the newer program.
    if let newer { return then(newer) }
    // The empty name marks the due times as missing. Now they are complete.
    schedules.remove(unreadable: [[]], in: bucket, of: partition, then)
  }

  /// Lists the schedules of one target and application. The application's name contains no slash.
  private func list(_ hash: String) {
    let names = hash.dropFirst(prefix.count).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map { Name(String($0)) }
    guard names.count == 2 else { return goOn() }
    schedules.calls.command.begin("HKEYS")
    schedules.calls.command.append(hash)
    schedules.calls.send(over: schedules.shards.shard(of: bucket)) { [self] answer in
      switch answer {
      case .failure(let error):
        // A key of another type has no schedules.
        if error.code == .faulty { goOn() } else { then(error) }
      case .success(let reply):
        keys = (0..<reply.count).compactMap { place in
          reply[place]?.bytes.flatMap { ScheduleKey(application: names[0], target: names[1], identifier: Name($0)) }
        }
        goOn()
      }
    }
  }

  /// Writes an unchanged state again, and with it the due time or the follow-up.
  private func restore(_ key: ScheduleKey) {
    schedules.read(key) { [self] found in
      switch found {
      case .failure(let error): then(error)
      case .success(let state):
        if state.newerPartition == partition { newer = schedules.newer(state, of: key) }
        guard let record = state.record, record.newest.revision.sourcePartition == partition else { return goOn() }
        schedules.write(record, of: key, replacing: state, now: now) { [self] written in
          switch written {
          // The worker that changed the schedule meanwhile has written its due time.
          case .success(.written), .success(.changed): goOn()
          case .success(.full): then(StoreError(.overloaded, "the partition has as many due times as it may have"))
          case .failure(let error): then(error)
          }
        }
      }
    }
  }
}

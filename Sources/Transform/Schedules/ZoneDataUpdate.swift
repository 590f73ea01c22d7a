import Calendars
import EventLoop
import Notifications
import Store
import Worker

/// Moves schedules to the due times that this worker's version of the time zone database gives.
///
/// A zone's clock may change by law, and the database is part of the program. So a new release may have another due time for 09:00. Redis
/// knows, for each place, by which version its due times were computed. If this worker has another version, it reads the pending schedules
/// of the place, and writes a firing of no occurrence for each whose due times it computes differently. Redis gets the version when Kafka has
/// these firings, so a worker that takes over in between begins again.
final class ZoneDataUpdate {
  private let loop: EventLoop
  private let schedules: Schedules
  private let writer: ScheduleWriter
  private let logger: Logger
  /// This worker's version of the database.
  let version: String
  private var rules = ScheduleRules()
  /// Places that wait for their turn. One place is updated at a time.
  private var waiting: [DueTable.Place] = []
  private var run: Run?
  private var runs: UInt64 = 0
  /// Returns the number for a firing's report.
  var number: () -> UInt32 = { 0 }
  /// Called with each error of Redis.
  var onError: (StoreError) -> Void = { _ in }

  /// The update of one place.
  private struct Run {
    let place: DueTable.Place
    let number: UInt64
    /// The place of the page after this one; nil if this is the last.
    var next: String?
    /// The number of answers of Redis that the page waits for.
    var reads = 0
    /// The firings that Kafka has not reported.
    var firings: Set<UInt32> = []
    var hasFailed = false
    /// The number of schedules that move.
    var moved = 0
  }

  init(
    on loop: EventLoop, _ schedules: Schedules, _ writer: ScheduleWriter, version: String, _ logger: Logger
  ) {
    (self.loop, self.schedules, self.writer, self.version, self.logger) = (loop, schedules, writer, version, logger)
  }

  /// Updates a place whose due times may be those of another version. It does nothing if the place already waits.
  func begin(_ place: DueTable.Place) {
    guard run?.place != place, !waiting.contains(place) else { return }
    waiting.append(place)
    beginNext()
  }

  /// Drops the places whose partitions the lane no longer owns.
  func keep(_ partitions: Set<Int32>) {
    waiting.removeAll { !partitions.contains($0.partition) }
    if let run, !partitions.contains(run.place.partition) { self.run = nil }
    beginNext()
  }

  /// Takes Kafka's report of a firing. Returns whether the firing was one of this update.
  func reported(_ number: UInt32, failed: Bool) -> Bool {
    guard run?.firings.remove(number) != nil else { return false }
    if failed { run?.hasFailed = true }
    goOn()
    return true
  }

  private func beginNext() {
    guard run == nil, !waiting.isEmpty else { return }
    runs += 1
    run = Run(place: waiting.removeFirst(), number: runs)
    read(from: Schedules.firstPage)
  }

  private func read(from page: String) {
    guard let run else { return }
    let place = run.place
    self.run?.reads = 1
    schedules.page(in: place.bucket, of: UInt32(place.partition), at: page, count: Self.page) { [self] answer in
      guard self.run?.number == run.number else { return }
      self.run?.reads -= 1
      switch answer {
      case .failure(let error): failed(error)
      case .success(let page):
        self.run?.next = page.next
        self.run?.reads += page.keys.count
        for key in page.keys {
          schedules.read(key) { [self] state in
            guard self.run?.number == run.number else { return }
            self.run?.reads -= 1
            take(key, state)
            goOn()
          }
        }
      }
      goOn()
    }
  }

  private func take(_ key: ScheduleKey, _ answer: Result<Schedules.State, StoreError>) {
    switch answer {
    // The firing of the schedule tells that its state cannot be read.
    case .failure(let error) where error.code == .faulty: break
    case .failure(let error): failed(error)
    case .success(let state):
      // A newer program moves its schedules itself.
      if let newer = schedules.newer(state, of: key) { return onError(newer) }
      guard let record = state.record, let moved = rules.recompute(record), let zone = moved.pending?.earliest?.zone else { return }
      let number = number()
      guard writer.adapt(key, record, to: zone, now: loop.wallMilliseconds(), OutcomePurpose(.firing, number)) else {
        run?.hasFailed = true
        return
      }
      run?.firings.insert(number)
      run?.moved += 1
    }
  }

  private func failed(_ error: StoreError) {
    onError(error)
    run?.hasFailed = true
  }

  /// Goes on with the next page when this one is complete. A place that fails is found outdated again when it is next asked what is due.
  private func goOn() {
    guard let run, run.reads == 0, run.firings.isEmpty else { return }
    if !run.hasFailed {
      if let next = run.next { return read(from: next) }
      if run.moved > 0 {
        logger.info(
          "schedules move, since the time zone database has another version",
          ["partition": run.place.partition, "bucket": run.place.bucket, "schedules": run.moved, "version": version])
      }
      schedules.note(zoneData: version, in: run.place.bucket, of: UInt32(run.place.partition)) { [self] in
        if let error = $0 { onError(error) }
      }
    }
    self.run = nil
    beginNext()
  }

  /// About how many schedules a page has. Their states are read at once.
  private static let page = 64
}

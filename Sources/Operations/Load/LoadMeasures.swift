/// How long requests took to each stage of their way, from the time when they were due. A value.
package struct LoadMeasures: Sendable {
  /// The stages of a request's way.
  package enum Stage: Int, Sendable, CaseIterable {
    /// Kafka has acknowledged the request.
    case published
    /// A device has received the notification.
    case arrived
    /// The cluster has the device's acknowledgement, by the time of the event that says so.
    case acknowledged
    /// The topic `events` says that the device has it.
    case told

    /// Its name.
    var name: String { "\(self)" }
  }

  /// A part of the run. Counts are of what happened in it, latencies are of requests that were due in it.
  package struct Interval: Sendable, Hashable {
    /// Events of each stage in this time, in the order of ``Stage``.
    package var counts = [Int](repeating: 0, count: Stage.allCases.count)
    /// The latencies until arrival, in microseconds.
    package var arrival = Histogram(LoadMeasures.coarse)

    /// The events of a stage in this time.
    package subscript(stage: Stage) -> Int { counts[stage.rawValue] }
  }

  /// A stretch of the schedule whose requests took long to arrive: a worker stood still, or the load was too high.
  package struct Delay: Sendable, Hashable {
    /// When the first and the last of these requests were due, in nanoseconds after the start.
    package var due: ClosedRange<Int64>
    /// The longest time until an arrival, in nanoseconds.
    package var longest: Int64
    /// The arrivals that took long.
    package var count: Int
  }

  /// Up to an hour in microseconds, with three digits.
  package static let fine = HistogramLayout(highest: 3_600_000_000, digits: 3)
  /// The same with two digits, for the many intervals.
  package static let coarse = HistogramLayout(highest: 3_600_000_000, digits: 2)
  /// The most intervals of a run.
  private static let maximumIntervals: Int64 = 300
  /// An arrival takes long from this time on. Due times that are this close belong to one delay.
  private static let long: Int64 = 1_000_000_000
  /// The most delays. Later ones are only in the histograms.
  static let maximumDelays = 50

  /// The latencies of each stage in microseconds, in the order of ``Stage``.
  package internal(set) var stages = Stage.allCases.map { _ in Histogram(LoadMeasures.fine) }
  /// The parts of the run, in order.
  package internal(set) var intervals: [Interval]
  /// The length of an interval, in nanoseconds.
  package let intervalLength: Int64
  /// The delays, in the order of their due times.
  package internal(set) var delays: [Delay] = []
  private let end: Int64

  /// Makes empty measures of a run with this duration.
  package init(durationMilliseconds: Int) {
    end = Int64(durationMilliseconds) * 1_000_000
    intervalLength = max(1_000_000_000, end / Self.maximumIntervals)
    intervals = Array(repeating: Interval(), count: Int((end + intervalLength - 1) / intervalLength))
  }

  /// How many requests of a schedule were due in an interval.
  func offered(_ interval: Int, by schedule: LoadSchedule) -> Int {
    func count(_ intervals: Int) -> Int { schedule.count(dueBy: min(Int64(intervals) * intervalLength, end) - 1) }
    return count(interval + 1) - count(interval)
  }

  /// The latencies of a stage.
  package subscript(stage: Stage) -> Histogram { stages[stage.rawValue] }

  /// A request that was due at one time came to a stage at another one, in nanoseconds after the start.
  package mutating func record(_ stage: Stage, due: Int64, at time: Int64) {
    let microseconds = max(0, time - due) / 1000
    stages[stage.rawValue].record(microseconds)
    if let interval = interval(of: time) { intervals[interval].counts[stage.rawValue] += 1 }
    guard stage == .arrived else { return }
    if let interval = interval(of: due) { intervals[interval].arrival.record(microseconds) }
    if time - due >= Self.long { note(Delay(due: due...due, longest: time - due, count: 1)) }
  }

  private func interval(of time: Int64) -> Int? {
    let interval = Int(max(0, time) / intervalLength)
    return intervals.indices.contains(interval) ? interval : nil
  }

  /// Notes a delay, as a part of those that are close.
  mutating func note(_ delay: Delay) {
    var delay = delay
    // A request that was due between two delays makes them one.
    delays.removeAll { other in
      guard other.due.lowerBound - Self.long <= delay.due.upperBound, delay.due.lowerBound <= other.due.upperBound + Self.long else {
        return false
      }
      delay.due = min(delay.due.lowerBound, other.due.lowerBound)...max(delay.due.upperBound, other.due.upperBound)
      delay.longest = max(delay.longest, other.longest)
      delay.count += other.count
      return true
    }
    guard delays.count < Self.maximumDelays else { return }
    delays.append(delay)
    delays.sort { $0.due.lowerBound < $1.due.lowerBound }
  }
}

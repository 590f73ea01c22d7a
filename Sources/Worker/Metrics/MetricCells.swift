import Synchronization

/// A number that only grows, until the process ends.
public final class Counter: MetricCell {
  /// Prometheus' word for it.
  public static var kind: String { "counter" }
  private let count = Atomic<Int>(0)

  /// Makes a counter at 0.
  public init(buckets: HistogramBuckets = .seconds) {}

  /// Adds one.
  public func increment() { count.wrappingAdd(1, ordering: .relaxed) }

  /// Adds a number, which must not be negative.
  public func increment(by number: Int) {
    precondition(number >= 0, "a counter only grows")
    count.wrappingAdd(number, ordering: .relaxed)
  }

  /// The number so far.
  public var value: Int { count.load(ordering: .relaxed) }
  /// The number so far.
  public var reading: MetricReading { MetricReading(Double(value)) }
}

/// A number that goes up and down, such as a size.
public final class Gauge: MetricCell {
  /// Prometheus' word for it.
  public static var kind: String { "gauge" }
  private let bits = Atomic<UInt64>(0)

  /// Makes a gauge at 0.
  public init(buckets: HistogramBuckets = .seconds) {}

  /// Sets it, in the unit of the metric's name.
  public func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

  /// Sets it.
  public func set(_ value: Int) { set(Double(value)) }

  /// The present number.
  var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
  /// The present number.
  public var reading: MetricReading { MetricReading(value) }
}

/// The upper bounds of a histogram's buckets, smallest first, each included in its bucket.
public struct HistogramBuckets: Sendable, Hashable {
  let bounds: [Double]

  private init(_ bounds: [Double]) { self.bounds = bounds }

  /// 100 µs to 60 s, two or three a decade.
  public static let seconds = HistogramBuckets([
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
  ])
  /// 1 ms to 30 days. It shows both immediate deliveries and those that waited for their device.
  public static let ages = HistogramBuckets([
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 28_800, 86_400, 604_800, 2_592_000,
  ])
  /// 1 to 65536, by twos and fours: sizes of batches and of persons' devices.
  public static let counts = HistogramBuckets([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16_384, 65_536])
}

/// A distribution of observed values.
public final class Histogram: MetricCell {
  /// Prometheus' word for it.
  public static var kind: String { "histogram" }
  private let bounds: [Double]
  private let counts: AtomicCounts
  private let sum = Atomic<UInt64>(0)

  /// Makes a histogram without observations.
  public init(buckets: HistogramBuckets = .seconds) {
    bounds = buckets.bounds
    counts = AtomicCounts(count: buckets.bounds.count + 1)
  }

  /// Counts a value, in the unit of the metric's name. NaN is ignored.
  public func observe(_ value: Double) {
    guard !value.isNaN else { return }
    var low = 0
    var high = bounds.count
    while low < high {
      let middle = (low + high) / 2
      if bounds[middle] < value { low = middle + 1 } else { high = middle }
    }
    counts.increment(low)
    var old = sum.load(ordering: .relaxed)
    while true {
      let (exchanged, original) = sum.compareExchange(
        expected: old, desired: (Double(bitPattern: old) + value).bitPattern, ordering: .relaxed)
      if exchanged { return }
      old = original
    }
  }

  /// Counts an age, for metrics in seconds. A negative age, which two machines' clocks can cause, counts as 0.
  public func observe(ageMilliseconds age: Int64) { observe(Double(max(0, age)) / 1000) }

  /// The observations so far.
  public var reading: MetricReading {
    MetricReading(Double(bitPattern: sum.load(ordering: .relaxed)), counts: (0...bounds.count).map { counts.value($0) })
  }
}

/// Counters side by side, as many as are known at run time.
///
/// - Note: `@unchecked Sendable` because the pointer is constant and points to atomics that live until `deinit`.
private final class AtomicCounts: @unchecked Sendable {
  private let cells: UnsafeMutablePointer<Atomic<Int>>
  private let count: Int

  init(count: Int) {
    self.count = count
    cells = .allocate(capacity: count)
    for index in 0..<count { (cells + index).initialize(to: Atomic<Int>(0)) }
  }

  deinit {
    cells.deinitialize(count: count)
    cells.deallocate()
  }

  func increment(_ index: Int) { cells[index].wrappingAdd(1, ordering: .relaxed) }
  func value(_ index: Int) -> Int { cells[index].load(ordering: .relaxed) }
}

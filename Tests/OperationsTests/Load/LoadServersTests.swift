import Notifications
import TestSupport
import Testing
import Worker

@testable import Operations

/// The numbers of workers and Redis in a load run: only what is spent for the run counts, whatever ends and begins meanwhile.
@Suite struct LoadServersTests {
  private static let startedAt: Int64 = 1_800_000_000_000
  private static let second: Int64 = 1_000_000_000

  private static func servers(seconds: Int = 10) -> LoadServers {
    LoadServers(startedAt: startedAt, LoadMeasures(durationMilliseconds: seconds * 1000))
  }

  private static func reading(_ seconds: Double, startedAt: Double = 1, _ role: String = "transform") -> WorkerReading {
    WorkerReading(startedAt: startedAt, processorSeconds: seconds, role: role)
  }

  private static func near(_ a: Double?, _ b: Double) -> Bool { a.map { abs($0 - b) < 1e-9 } ?? false }

  @Test func `what a worker did before the run does not count`() {
    var servers = Self.servers()
    servers.take(Self.reading(100), of: "a", at: 0)
    servers.take(Self.reading(100.5), of: "a", at: Self.second)
    servers.take(Self.reading(101.5), of: "a", at: 3 * Self.second)
    let group = servers.groups["transform"]
    #expect(Self.near(group?.seconds, 1.5) && group?.processes == 1)
    #expect(group?.intervals.prefix(4) == [0.5, 0.5, 0.5, 0])
  }

  @Test func `a worker that is killed and started again counts both times`() {
    var servers = Self.servers()
    let later = Double(Self.startedAt) / 1000 + 4
    // One takes the former one's place, and one has a name of its own.
    servers.take(Self.reading(100), of: "a", at: 0)
    servers.take(Self.reading(102), of: "a", at: 2 * Self.second)
    servers.take(Self.reading(0.25, startedAt: later), of: "a", at: 5 * Self.second)
    servers.take(Self.reading(0.5, startedAt: later), of: "b", at: 5 * Self.second)
    #expect(Self.near(servers.groups["transform"]?.seconds, 2.75) && servers.groups["transform"]?.processes == 3)
  }

  @Test func `a worker that is first seen in the middle of the run, and is older than it, counts from then on`() {
    var servers = Self.servers()
    servers.take(Self.reading(500), of: "a", at: 4 * Self.second)
    servers.take(Self.reading(501), of: "a", at: 5 * Self.second)
    #expect(Self.near(servers.groups["transform"]?.seconds, 1))
  }

  @Test func `a Redis that starts again counts from nothing`() {
    var servers = Self.servers()
    for (seconds, at) in [(50, 0), (51, 1), (0.5, 2), (0.75, 3)] as [(Double, Int64)] {
      servers.take(seconds, of: LoadServers.redisGroup, at: at * Self.second)
    }
    #expect(Self.near(servers.groups[LoadServers.redisGroup]?.seconds, 1.75))
    servers.take(10, of: LoadServers.ownGroup, at: 0)
    servers.take(13, of: LoadServers.ownGroup, at: Self.second)
    #expect(Self.near(servers.seconds, 1.75), "this process is no server")
    #expect(servers.names == [LoadServers.ownGroup, LoadServers.redisGroup])
  }

  @Test func `a server that does not answer is named until it does`() {
    var servers = Self.servers()
    for number in 0..<100 { servers.missed("worker \(number)", "refused") }
    #expect(servers.silent.count == 20 && servers.silent["worker 0"] == "refused")
    servers.take(Self.reading(1), of: "worker 0", at: 0)
    #expect(servers.silent["worker 0"] == nil)
  }

  @Test(arguments: 0..<(isComplete ? 50 : 10)) func `whatever ends and begins, the sums are those of a naive model`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var servers = Self.servers(seconds: 20)
    // Each process: its start, what it has used, and what of that was read.
    var processes = (0..<4).map { (name: Name("w\($0)"), startedAt: Double($0), used: Double.random(in: 0...9, using: &random)) }
    for process in processes { servers.take(Self.reading(process.used, startedAt: process.startedAt), of: process.name, at: 0) }
    var (expected, unread) = (0.0, [Double](repeating: 0, count: processes.count))
    var time: Int64 = 0
    for step in 1..<100 {
      time += Int64.random(in: 1...200_000_000, using: &random)
      let index = Int.random(in: processes.indices, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        // It is killed, and what was not read is lost.
        processes[index].startedAt = Double(Self.startedAt) / 1000 + Double(step)
        (processes[index].used, unread[index]) = (0, 0)
      case 1..<5:
        let spent = Double(Int.random(in: 0...100, using: &random)) / 64
        processes[index].used += spent
        unread[index] += spent
      default:
        servers.take(Self.reading(processes[index].used, startedAt: processes[index].startedAt), of: processes[index].name, at: time)
        expected += unread[index]
        unread[index] = 0
      }
    }
    let group = servers.groups["transform"]
    #expect(abs((group?.seconds ?? 0) - expected) < 1e-6)
    #expect(abs((group?.intervals.reduce(0, +) ?? 0) - expected) < 1e-6, "all of it lies in the run's 20 seconds")
  }

  // MARK: The workers' text

  @Test func `a worker's metrics are read as the registry writes them`() throws {
    let registry = MetricRegistry()
    registry.make(MetricNames.processStart).set(1234.5)
    registry.show(MetricNames.processCPU) { 17.25 }
    registry.make(MetricNames.build, "1.0", "fan_out").set(1)
    let cells = [registry.make(MetricNames.sentAfter, "live"), registry.make(MetricNames.sentAfter, "mailbox")]
    for age in [3, 3, 40, 700] as [Int64] { cells[0].observe(ageMilliseconds: age) }
    cells[1].observe(ageMilliseconds: 20_000)
    let reading = try #require(Self.read(registry.text))
    #expect(reading.role == "fan-out" && reading.startedAt == 1234.5 && reading.processorSeconds == 17.25)
    let sent = try #require(reading.ages[.sent])
    #expect(reading.ages[.transformed] == nil && sent.count == 5)
    #expect([0, 40, 60, 80, 100].map { sent.bound(atPercentile: $0) } == [5_000, 5_000, 50_000, 1_000_000, 30_000_000])
    #expect(sent.points.map(\.percentile) == [40, 60, 80, 100])
    cells[0].observe(ageMilliseconds: 1)
    let rest = try #require(Self.read(registry.text)?.ages[.sent]?.since(sent))
    #expect(rest.count == 1 && rest.bound(atPercentile: 100) == 1000)
    #expect(rest.since(sent) == nil, "a histogram does not shrink")
  }

  @Test(arguments: [
    "", "process_start_time_seconds 1", "process_start_time_seconds x\nprocess_cpu_seconds_total 1",
    "process_start_time_seconds 1\nprocess_cpu_seconds_total NaN", "process_start_time_seconds 1\nprocess_cpu_seconds_total -1",
    "process_cpu_seconds_total 1\nprocess_start_time_seconds", "<html>",
  ])
  func `a text that is not of a worker is no reading`(text: String) { #expect(Self.read(text) == nil) }

  @Test func `hostile numbers and words are left out`() throws {
    let text = """
      process_start_time_seconds 1
      process_cpu_seconds_total 2
      carillon_build_info{version="1",role="<b>x</b>"} 1
      carillon_published_to_sent_seconds_bucket{path="live",le="1"} 1e300
      carillon_published_to_sent_seconds_bucket{path="live",le="2"} 3
      carillon_published_to_sent_seconds_bucket{path="live",le="nan"} 3
      carillon_published_to_sent_seconds_bucket{path="live",le="1e300"} 9e18
      carillon_published_to_sent_seconds_sum 1e308
      carillon_published_to_sent_seconds_sum 1e308
      """
    let reading = try #require(Self.read(text))
    #expect(reading.role == "worker")
    var servers = Self.servers()
    servers.take(reading, of: "a", at: 0)
    servers.take(reading, of: "a", at: 1)
    #expect((servers.ages[.sent]?.count ?? 0) == 0)
    let sent = try #require(reading.ages[.sent])
    #expect(sent.bound(atPercentile: 100) != nil)
  }

  private static func read(_ text: String) -> WorkerReading? { Array(text.utf8).withUnsafeBytes { WorkerReading(metrics: $0) } }
}

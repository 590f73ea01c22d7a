import EventLoop
import Foundation
import Testing
import Worker

/// Reads Prometheus' text format strictly: each series by its name with labels.
private func read(_ text: String) throws -> [String: Double] {
  struct Malformed: Error { let line: String }
  var values: [String: Double] = [:]
  var types: [String: String] = [:]
  var helped: Set<String> = []
  #expect(text.hasSuffix("\n"))
  for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
    if let help = line.wholeMatch(of: #/# HELP ([a-z][a-z0-9_]*) (\S.*)/#) {
      guard helped.insert(String(help.1)).inserted else { throw Malformed(line: String(line)) }
    } else if let type = line.wholeMatch(of: #/# TYPE ([a-z][a-z0-9_]*) (counter|gauge|histogram)/#) {
      guard types.updateValue(String(type.2), forKey: String(type.1)) == nil else { throw Malformed(line: String(line)) }
    } else if let sample = line.wholeMatch(
      of: #/([a-z][a-z0-9_]*)(\{[a-z_]+="(?:[^"\\]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\]|\\["\\n])*")*\})? (\+Inf|-Inf|NaN|-?[0-9.e+-]+)/#)
    {
      let name = String(sample.1)
      let family = types[name] == nil ? name.replacing(#/_(bucket|sum|count)$/#, with: "") : name
      guard let type = types[family], helped.contains(family), type == "histogram" || family == name else {
        throw Malformed(line: String(line))
      }
      guard values.updateValue(Double(sample.3) ?? .nan, forKey: name + (sample.2 ?? "")) == nil else {
        throw Malformed(line: String(line))
      }
    } else {
      throw Malformed(line: String(line))
    }
  }
  return values
}

@Suite struct MetricTests {
  static let requests = Metric<Counter>("example_requests_total", "Requests\\ that\ncame.", labels: ["lane", "outcome"])
  static let open = Metric<Gauge>("example_connections", "Connections that are open.")
  static let latency = Metric<Histogram>("example_latency_seconds", "From here to there.")
  static let size = Metric<Histogram>("example_size_bytes", "Sizes.", labels: ["lane"], buckets: .counts)

  @Test func eachSeriesIsShownOnceWithItsLabels() throws {
    let registry = MetricRegistry()
    let first = registry.make(Self.requests, "a", "queued")
    registry.make(Self.requests, "b", #"quote" back\ line"# + "\n").increment(by: 5)
    first.increment()
    first.increment(by: 2)
    let values = try read(registry.text)
    #expect(values[#"example_requests_total{lane="a",outcome="queued"}"#] == 3)
    #expect(values[#"example_requests_total{lane="b",outcome="quote\" back\\ line\n"}"#] == 5)
    #expect(registry.text.hasPrefix("# HELP example_requests_total Requests\\\\ that\\ncame.\n# TYPE example_requests_total counter\n"))
  }

  @Test func gaugesOfASetComeAndGo() throws {
    let registry = MetricRegistry()
    let lag = Metric<Gauge>("example_lag_seconds", "How late it is.", labels: ["topic", "partition"])
    let (one, two) = (registry.makeSet(lag), registry.makeSet(lag))
    #expect(try read(registry.text).isEmpty)
    one.replace(with: [["requests", "0"]: 1.5, ["requests", "1"]: 0])
    two.replace(with: [["requests", "2"]: 7])
    var values = try read(registry.text)
    #expect(values[#"example_lag_seconds{topic="requests",partition="0"}"#] == 1.5)
    #expect(values[#"example_lag_seconds{topic="requests",partition="1"}"#] == 0)
    #expect(values[#"example_lag_seconds{topic="requests",partition="2"}"#] == 7)
    one.replace(with: [["requests", "1"]: 3])
    values = try read(registry.text)
    #expect(values[#"example_lag_seconds{topic="requests",partition="1"}"#] == 3 && values.count == 2, "one that is gone is absent")
  }

  @Test func cellsOfSeveralLanesWithTheSameLabelsAreAdded() throws {
    let registry = MetricRegistry()
    #expect(registry.values(of: Self.open).isEmpty)
    let (a, b) = (registry.make(Self.open), registry.make(Self.open))
    let (x, y) = (registry.make(Self.latency), registry.make(Self.latency))
    a.set(4)
    b.set(0.5)
    x.observe(0.001)
    y.observe(100)
    y.observe(0.002)
    let values = try read(registry.text)
    #expect(values["example_connections"] == 4.5)
    #expect(registry.sum(of: Self.open) == 4.5 && registry.sum(of: Self.size) == nil)
    #expect(registry.values(of: Self.open).map(\.value) == [4, 0.5])
    #expect(values["example_latency_seconds_count"] == 3)
    #expect(abs((values["example_latency_seconds_sum"] ?? 0) - 100.003) < 1e-9)
  }

  @Test func bucketsAreCumulativeAndIncludeTheirUpperBound() throws {
    let registry = MetricRegistry()
    let size = registry.make(Self.size, "a")
    for value in [0.0, 64, 65, 256, 1e9, .nan, -1] { size.observe(value) }
    let values = try read(registry.text)
    func bucket(_ bound: String) -> Double? { values[#"example_size_bytes_bucket{lane="a",le="\#(bound)"}"#] }
    #expect(bucket("64") == 3)
    #expect(bucket("256") == 5)
    #expect(bucket("65536") == 5)
    #expect(bucket("+Inf") == 6)
    #expect(values[#"example_size_bytes_count{lane="a"}"#] == 6)
  }

  @Test func countsOfSeveralThreadsAreNotLost() throws {
    let registry = MetricRegistry()
    let (counter, histogram) = (registry.make(Self.requests, "a", "b"), registry.make(Self.latency))
    // Threads of their own, so that they really overlap.
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      for _ in 0..<100_000 {
        counter.increment()
        histogram.observe(1)
      }
    }
    #expect(counter.value == 400_000)
    #expect(try read(registry.text)["example_latency_seconds_sum"] == 400_000)
  }

  @Test func shownNumberIsReadWhenAsked() throws {
    let began = Double(WallClock.milliseconds()) / 1000
    let registry = MetricRegistry()
    let log = LogWriter(descriptor: -1)
    registry.showProcess(version: "1.2", role: "fan-out", log: log)
    log.close()
    Logger(log, component: "x").info("after the end", [:])
    let values = try read(registry.text)
    #expect(values["carillon_log_lines_dropped_total"] == 1)
    #expect(values[#"carillon_build_info{version="1.2",role="fan_out"}"#] == 1)
    #expect((began...Double(WallClock.milliseconds()) / 1000).contains(values["process_start_time_seconds"] ?? 0))
  }

  @Test func countersAreToldApartByWhatIsKnownLateAndTheirNumberIsBounded() throws {
    let registry = MetricRegistry()
    let errors = Metric<Counter>("example_errors_total", "Errors.", labels: ["kind"])
    let set = registry.makeSet(errors)
    for number in 0..<1_000 { set.increment("kind_\(number)") }
    set.increment("kind_0")
    registry.makeSet(errors).increment("kind_0")
    let values = try read(registry.text)
    #expect(values[#"example_errors_total{kind="kind_0"}"#] == 3)
    #expect(values[#"example_errors_total{kind="other"}"#] == 900 && values.count == 101)
  }

  @Test func anAgeByAClockThatIsAheadCountsAsNothing() throws {
    let registry = MetricRegistry()
    let age = registry.make(Metric<Histogram>("example_age_seconds", "How old.", buckets: .ages))
    age.observe(ageMilliseconds: -5_000)
    age.observe(ageMilliseconds: 2_000)
    let values = try read(registry.text)
    #expect(values["example_age_seconds_sum"] == 2 && values[#"example_age_seconds_bucket{le="0.001"}"#] == 1)
  }

  @Test func readinessIsShownByLaneAndCondition() throws {
    let (registry, health) = (MetricRegistry(), Health())
    registry.show(health)
    #expect(try read(registry.text) == ["carillon_ready": 1])
    health.set("brokers", ready: true)
    health.forLane("fan-out-1").set("redis", ready: false, "away")
    #expect(
      try read(registry.text) == [
        "carillon_ready": 0, #"carillon_ready_condition{lane="process",condition="brokers"}"#: 1,
        #"carillon_ready_condition{lane="fan_out_1",condition="redis"}"#: 0,
      ])
    health.forLane("fan-out-1").removeLane()
    #expect(try read(registry.text).count == 2)
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool"), "promtool is missing: Deploy/install --tests"))
  func promtoolHasNoObjection() throws {
    let registry = MetricRegistry()
    let log = LogWriter(descriptor: -1)
    defer { log.close() }
    registry.showProcess(version: "1", role: "up", log: log)
    registry.make(Self.latency).observe(1)
    let tool = Process()
    tool.executableURL = URL(fileURLWithPath: "/usr/bin/promtool")
    tool.arguments = ["check", "metrics"]
    let (input, output) = (Pipe(), Pipe())
    (tool.standardInput, tool.standardOutput, tool.standardError) = (input, output, output)
    try tool.run()
    try input.fileHandleForWriting.write(contentsOf: Data(registry.text.utf8))
    try input.fileHandleForWriting.close()
    tool.waitUntilExit()
    #expect(tool.terminationStatus == 0, "\(String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self))")
  }
}

import Notifications
import TestSupport
import Testing
import Worker

@testable import Kafka
@testable import Operations
@testable import Store

/// Samples judged, against a model that counts each record.
@Suite struct ClusterHistoryTests {
  private static let topics = Topics(prefix: "t.")
  private static let partition = TopicPartition(topics.requests, 0)

  /// A history, and its newest report.
  private struct History {
    var history: ClusterHistory
    var report: ClusterReport?

    mutating func take(_ sample: ClusterSample) { report = history.report(sample) }
  }

  private func history(windowMilliseconds: Int = 30_000) -> History {
    let cluster = ReportedCluster(Self.topics, group: "g", laneLifetimeMilliseconds: 10_000, buckets: 4, name: "c")
    return History(history: ClusterHistory(cluster, windowMilliseconds: windowMilliseconds))
  }

  private func sample(
    at time: Int64, _ lags: [PartitionLag] = [], _ logs: [PartitionLag] = [], members: GroupMembers? = nil, lanes: [Lanes.Listing]? = nil,
    reported: [WorkerReport.Lag] = []
  ) -> ClusterSample {
    var topics = Dictionary(uniqueKeysWithValues: Self.topics.all.map { ($0, TopicDescription(name: $0, partitions: [])) })
    topics[Self.topics.journal]?.partitions = (0..<5).map { .init(id: $0, leader: 1, replicas: 1, inSync: 1) }
    let kafka = KafkaState(
      cluster: ClusterDescription(id: "k", brokers: [:], topics: topics), lag: .found(LagSample(partitions: lags + logs, members: members)))
    let redis = lanes.map { lanes -> Known<RedisState> in
      let workers = ["transform", "fan-out"].map { role in
        var report = WorkerReport(name: "w", roles: [role], version: "1", started: 0, written: 0)
        if role == "fan-out" { report.laneLags = reported }
        return Workers.Listing(name: "w", silentMilliseconds: 0, report: report)
      }
      return .found(
        RedisState(server: ServerState(address: "r"), identity: .found(nil), workers: .found(workers), lanes: .found(lanes)))
    }
    return ClusterSample(time: 1_000_000 + time, moment: time, kafka: .found(kafka), redis: redis)
  }

  private func lag(_ log: Range<Int64>, _ committed: Int64?, oldest: Int64? = nil, of partition: Int32 = 0) -> PartitionLag {
    PartitionLag(partition: TopicPartition(Self.topics.requests, partition), log: log, committed: committed, oldest: oldest)
  }

  /// One partition whose records are each known: when it was written, and what became of it.
  private struct Model {
    var written: [Int64] = []
    var finishedCounts: [Int] = []
    var (start, committed) = (0, 0)
    var finished = 0

    mutating func step(_ random: inout SeededRandom, at time: Int64) {
      for _ in 0..<Int.random(in: 0...20, using: &random) { written.append(1_000_000 + time - Int64.random(in: 0...99, using: &random)) }
      written.sort()
      if Int.random(in: 0..<4, using: &random) == 0 {
        start = Int.random(in: start...written.count, using: &random)
      } else {
        let from = max(start, committed)
        let to = Int.random(in: from...written.count, using: &random)
        finished += to - from
        committed = max(committed, to)
      }
    }

    var lag: PartitionLag {
      let next = max(start, committed)
      return PartitionLag(
        partition: ClusterHistoryTests.partition, log: Int64(start)..<Int64(written.count), committed: Int64(committed),
        oldest: next < written.count ? written[next] : nil)
    }
  }

  @Test(arguments: 0..<(isComplete ? 200 : 40)) func ratesAndLagAreThoseOfCountedRecords(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var (model, history) = (Model(), history(windowMilliseconds: .max))
    history.take(sample(at: 0, [model.lag]))
    var time: Int64 = 0
    for _ in 0..<30 {
      time += Int64.random(in: 100...5_000, using: &random)
      model.step(&random, at: time)
      history.take(sample(at: time, [model.lag]))
      let state = try #require(history.report?.topics.first?.partitions.first)
      let next = max(model.start, model.committed)
      #expect(state.state.records == Int64(model.written.count - next))
      #expect(state.state.behind == (next < model.written.count ? 1_000_000 + time - model.written[next] : 0))
      #expect(state.state.missed == Int64(max(0, model.start - model.committed)))
      let (rateIn, rateOut) = (Double(model.written.count) / Double(time) * 1000, Double(model.finished) / Double(time) * 1000)
      let rates = (in: try #require(state.state.in), out: try #require(state.state.out))
      #expect(abs(rates.in - rateIn) < 1e-9 && abs(rates.out - rateOut) < 1e-9, "in \(rateIn), out \(rateOut), told \(rates)")
      let (records, behind) = (try #require(state.state.records), try #require(state.state.behind))
      switch try #require(state.state.catchUp) {
      case .atEnd: #expect(records == 0)
      case .keepsUp: #expect(records > 0 && behind < 3_000)
      case .after(let milliseconds): #expect(abs(Double(milliseconds) - Double(records) / (rateOut - rateIn) * 1000) <= 1)
      case .never: #expect(rateOut <= rateIn)
      case .unknown: Issue.record("rates are known")
      }
    }
  }

  @Test func ratesForgetWhatIsOlderThanTheirWindow() throws {
    var history = history(windowMilliseconds: 10_000)
    for second in Int64(0)...20 { history.take(sample(at: second * 1000, [lag(0..<(second <= 10 ? second * 100 : 1000), 0, oldest: 1)])) }
    #expect(history.report?.topics.first?.state.in == 0 && history.report?.topics.first?.state.out == 0)
    history.take(sample(at: 21_000, [lag(0..<1_500, 0, oldest: 1)]))
    let rate = try #require(history.report?.topics.first?.state.in)
    #expect(abs(rate - 50) < 5)
  }

  @Test func aTopicThatWasMadeAgainHasNoRateFromBefore() {
    var history = history()
    history.take(sample(at: 0, [lag(0..<1000, 1000)]))
    history.take(sample(at: 1000, [lag(0..<10, 1000)]))
    let report = history.report
    #expect(report?.topics.first?.state.in == nil)
    #expect(report?.problems == [.beyondEnd(Self.partition, committed: 1000, end: 10)])
    history.take(sample(at: 2000, [lag(0..<20, 15, oldest: 1_001_500)]))
    #expect(history.report?.topics.first?.state.in == 10)
    #expect(history.report?.problems.isEmpty == true)
  }

  @Test func ofOneSampleNoRateIsKnown() {
    var history = history()
    #expect(history.report == nil)
    history.take(sample(at: 0, [lag(0..<10, 4, oldest: 990_000), lag(0..<10, 10, of: 1), lag(0..<10, 4, oldest: 999_999, of: 2)]))
    let partitions = history.report?.topics.first?.partitions ?? []
    #expect(partitions.map(\.state.in) == [nil, nil, nil] && partitions.map(\.state.catchUp) == [.unknown, .atEnd, .keepsUp])
    #expect(history.report?.topics.first?.worst?.lag.partition.partition == 0)
    #expect(history.report?.topics.first?.state.catchUp == .unknown)
  }

  @Test func offsetsThatNoRecordHasAreNoLag() {
    var history = history()
    history.take(sample(at: 0, [lag(0..<10, 9)]))
    let state = history.report?.topics.first?.state
    #expect(state?.records == 0 && state?.behind == 0 && state?.catchUp == .atEnd)
  }

  // MARK: Owners

  private func member(_ id: String, _ partitions: Int32...) -> GroupMembers.Member {
    .init(id: id, client: "c", host: "/h", partitions: partitions.map { TopicPartition(Self.topics.requests, $0) })
  }

  @Test func devicesGoWithTheRequestsOfTheSameNumber() {
    let requests = (Int32(0)..<2).map { lag(0..<0, nil, of: $0) }
    let devices = (Int32(0)..<5).map { PartitionLag(partition: TopicPartition(Self.topics.devices, $0), log: 0..<0) }
    var history = history()
    history.take(sample(at: 0, requests + devices, members: GroupMembers(state: "Stable", members: [member("a", 1), member("b")])))
    let report = history.report
    #expect(report?.topics.map(\.withoutReader) == [[0], [0, 2, 4]])
    #expect(
      report?.problems == [
        .ownerless(topic: Self.topics.requests, partitions: [0]), .ownerless(topic: Self.topics.devices, partitions: [0, 2, 4]),
      ])
    #expect(report?.topics.last?.partitions[3].readers == ["c h"])
  }

  @Test(arguments: [nil, GroupMembers(state: "PreparingRebalance", members: []), GroupMembers(state: "CompletingRebalance", members: [])])
  func whereOwnersCannotBeToldNothingIsWrong(members: GroupMembers?) {
    var history = history()
    history.take(sample(at: 0, [lag(0..<0, nil)], members: members))
    #expect(history.report?.topics.first?.partitions.first?.readers == nil && history.report?.problems.isEmpty == true)
  }

  @Test(arguments: ["Empty", "Dead"]) func aGroupWithoutMembersOwnsNothing(state: String) {
    var history = history()
    history.take(sample(at: 0, [lag(0..<0, nil)], members: GroupMembers(state: state, members: [])))
    #expect(history.report?.problems == [.ownerless(topic: Self.topics.requests, partitions: [0])])
  }

  // MARK: Lanes

  private func deliveries(_ ends: Int64...) -> [PartitionLag] {
    ends.enumerated().map { PartitionLag(partition: TopicPartition(Self.topics.deliveries, Int32($0)), log: 0..<$1) }
  }

  @Test func deliveriesThatNoLivingLaneReadsAreToldWhenTheyCome() {
    let lanes = [
      Lanes.Listing(partition: 0, name: "living", silentMilliseconds: 9_999),
      Lanes.Listing(partition: 1, name: "dead", silentMilliseconds: 10_000),
    ]
    var history = history()
    history.take(sample(at: 0, [], deliveries(5, 5, 5), lanes: lanes))
    #expect(history.report?.problems.isEmpty == true, "what lies there may be of a lane that is gone")
    #expect(history.report?.topics.first?.partitions.map(\.readers) == [["living"], [], []])
    history.take(sample(at: 1000, [], deliveries(9, 6, 5), lanes: lanes))
    #expect(history.report?.problems == [.unread(topic: Self.topics.deliveries, partitions: [1])])
    history.take(sample(at: 3000, [], deliveries(9, 6, 5), lanes: nil))
    #expect(history.report?.problems.isEmpty == true && history.report?.topics.first?.partitions.first?.readers == nil)
  }

  @Test func deliveriesAreToldByLaneAndALaneThatStandsStillIsWrong() {
    func lag(_ lane: String, _ partition: Int32, _ records: Int64, _ behind: Int64?) -> WorkerReport.Lag {
      WorkerReport.Lag(lane: lane, partition: partition, records: records, milliseconds: behind)
    }
    var (history, living) = (history(), [Lanes.Listing(partition: 0, name: "w/0", silentMilliseconds: 10)])
    history.take(sample(at: 0, [], deliveries(5, 5, 5), lanes: living))
    #expect(history.report?.topics.first?.state.records == nil && history.report?.topics.first?.worst == nil)
    var lags = [lag("a", 0, 0, 0), lag("b", 0, 4, 50_000), lag("c", 1, 80, 9_999)]
    history.take(sample(at: 1000, [], deliveries(9, 90, 5), lanes: living, reported: lags))
    let topic = history.report?.topics.first
    #expect(topic?.state.records == 84 && topic?.state.behind == 50_000 && topic?.worst?.lag.partition.partition == 0)
    #expect(topic?.partitions.map(\.state.records) == [4, 80, nil])
    #expect(history.report?.problems == [.unread(topic: Self.topics.deliveries, partitions: [1])], "its heart beat a moment ago")
    lags = [lag("b", 0, 4, 50_000), lag("c", 1, 85, 10_000), lag("d", 2, 0, 0)]
    history.take(sample(at: 2000, [], deliveries(9, 95, 5), lanes: living, reported: lags))
    let still = FanOutLag(worker: "w", lane: "c", partition: 1, records: 85, behind: 10_000)
    #expect(history.report?.problems == [.laneStands(topic: Self.topics.deliveries, still)])
    living.append(Lanes.Listing(partition: 1, name: "w/1", silentMilliseconds: 10))
    history.take(sample(at: 3000, [], deliveries(9, 95, 5), lanes: living, reported: lags))
    #expect(history.report?.problems.isEmpty == true)
  }

  @Test func whatASilentWorkerSaidOfItsLanesIsNotTold() {
    var report = WorkerReport(name: "w", roles: ["fan-out"], version: "1", started: 0, written: 0)
    report.laneLags = [.init(lane: "fan-out-0", partition: 2, records: 3, milliseconds: nil)]
    func lags(silent: Int64) -> [FanOutLag] { FanOutLag.of(Workers.Listing(name: "w", silentMilliseconds: silent, report: report)) }
    #expect(lags(silent: 16_999) == [FanOutLag(worker: "w", lane: "fan-out-0", partition: 2, records: 3, behind: nil)])
    #expect(lags(silent: 17_000).isEmpty)
  }
}

import EventLoop
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Ingress

/// When a lane reads, stops reading and refuses, with the clock handed in.
@Suite struct IngressFlowTests {
  @Test func `a lane without room first stops reading for a second, and then refuses until there is room`() {
    var flow = IngressFlow(answerMilliseconds: 2_800, pauseMilliseconds: 1_000)
    #expect(flow.becomeFull(at: 50, turn: 1) == .pause(milliseconds: 1_000) && flow.phase == .paused)
    #expect(flow.becomeFull(at: 60, turn: 2) == nil, "it has stopped")
    #expect(flow.endPause(turn: 9) && flow.phase == .shedding)
    #expect(flow.becomeFull(at: 1_060, turn: 10) == nil && !flow.endPause(turn: 11), "it refuses")
    flow.becomeOpen(turn: 12)
    #expect(flow.phase == .open && !flow.endPause(turn: 13))
    #expect(flow.deadline(ofRead: 70) == 2_870)
  }

  @Test func `a pause that follows before each connection was read continues the one before`() {
    var flow = IngressFlow(answerMilliseconds: 2_800, pauseMilliseconds: 1_000)
    #expect(flow.becomeFull(at: 0, turn: 1) == .pause(milliseconds: 1_000))
    flow.becomeOpen(turn: 5)
    #expect(flow.becomeFull(at: 400, turn: 6) == .pause(milliseconds: 600))
    flow.becomeOpen(turn: 7)
    #expect(flow.becomeFull(at: 1_000, turn: 8) == .refuse && flow.phase == .shedding)
    flow.becomeOpen(turn: 9)
    #expect(flow.becomeFull(at: 1_020, turn: 10) == .pause(milliseconds: 1_000), "turn 8 was whole, and each connection was read")
  }

  /// A lane with its connections, and a Kafka whose pace changes.
  private struct Lane {
    private struct Body {
      let arrived: UInt64
      let deadline: UInt64
      var records: Int
    }

    private static let (limit, tick) = (20_000, UInt64(100))
    private var flow: IngressFlow
    private var random: SeededRandom
    private var (now, turn, nextTick): (UInt64, UInt64, UInt64) = (0, 0, 0)
    private var pauseEnd: UInt64?
    /// When each connection has sent the request that is not read; nil for one that waits for its answer or sends nothing.
    private var unread: [UInt64?] = Array(repeating: nil, count: 300)
    private var busy: [Int: Body] = [:]
    /// The records that Kafka has not acknowledged, in their order, by connection.
    private var kafka: [(connection: Int, arrived: UInt64, records: Int)] = []
    private var inFlight = 0
    private(set) var (longest, accepted, refused, late): (UInt64, Int, Int, Int) = (0, 0, 0, 0)

    init(_ flow: IngressFlow, seed: UInt64) { (self.flow, random) = (flow, SeededRandom(seed: seed)) }

    private mutating func answer(_ arrived: UInt64) { longest = max(longest, now - arrived) }

    /// One turn: timers, what the connections have sent, and Kafka's acknowledgements before or after.
    mutating func advance(acknowledged: Int, senders: Double) {
      (now, turn) = (now + .random(in: 1...15, using: &random), turn + 1)
      if let end = pauseEnd, end <= now {
        pauseEnd = nil
        _ = flow.endPause(turn: turn)
      }
      // What was opened within a turn is read in the next.
      let reads = flow.phase != .paused
      for connection in unread.indices where unread[connection] == nil && busy[connection] == nil {
        if Double.random(in: 0..<1, using: &random) < senders { unread[connection] = now }
      }
      let isEarly = Bool.random(using: &random)
      if isEarly { acknowledge(acknowledged) }
      if reads { read() }
      if !isEarly { acknowledge(acknowledged) }
      guard now >= nextTick else { return }
      nextTick = now + Self.tick
      for (connection, body) in busy where body.deadline <= now {
        answer(body.arrived)
        late += 1
        busy[connection] = nil
      }
    }

    private mutating func read() {
      for connection in unread.indices.shuffled(using: &random) {
        guard let arrived = unread[connection] else { continue }
        guard flow.phase != .paused else { return }
        unread[connection] = nil
        guard flow.phase == .open else {
          refused += 1
          answer(arrived)
          continue
        }
        accepted += 1
        busy[connection] = Body(arrived: arrived, deadline: flow.deadline(ofRead: now), records: 1_000)
        kafka.append((connection, arrived, 1_000))
        inFlight += 1_000
        guard inFlight >= Self.limit else { continue }
        switch flow.becomeFull(at: now, turn: turn) {
        case .pause(let milliseconds): pauseEnd = now + UInt64(milliseconds)
        case .refuse, nil: break
        }
      }
    }

    private mutating func acknowledge(_ count: Int) {
      var count = min(count, inFlight)
      inFlight -= count
      while count > 0, let first = kafka.first {
        let part = min(count, first.records)
        count -= part
        kafka[0].records -= part
        guard kafka[0].records == 0 else { break }
        kafka.removeFirst()
        if let body = busy[first.connection], body.arrived == first.arrived {
          answer(body.arrived)
          busy[first.connection] = nil
        }
      }
      guard flow.phase != .open, inFlight <= Self.limit / 2 else { return }
      flow.becomeOpen(turn: turn)
      pauseEnd = nil
    }

    /// How long the request that has waited longest has had no answer.
    var oldest: UInt64 { (unread.compactMap { $0 } + busy.values.map(\.arrived)).map { now - $0 }.max() ?? 0 }
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func `every sender has its answer in four seconds, whatever Kafka's pace`(seed: UInt64) {
    let settings = IngressSettings(
      topics: Topics(), kafka: KafkaConfiguration(bootstrapServers: []), listen: SocketAddress(host: "127.0.0.1", port: 0),
      admission: .anyone)
    var random = SeededRandom(seed: seed &+ 1_000)
    let flow = IngressFlow(answerMilliseconds: settings.answerMilliseconds, pauseMilliseconds: settings.pauseMilliseconds)
    var lane = Lane(flow, seed: seed)
    for _ in 0..<20 {
      // From a Kafka that stands still, by one that trickles, to one that frees its half of the room several times in a second.
      let pace = Bool.random(using: &random) ? Int.random(in: 0...600, using: &random) : Int.random(in: 0...10, using: &random)
      let senders = Double.random(in: 0.001...1, using: &random)
      for _ in 0..<Int.random(in: 10...500, using: &random) {
        lane.advance(acknowledged: pace, senders: senders)
        #expect(max(lane.longest, lane.oldest) <= 4_000, "seed \(seed)")
        guard max(lane.longest, lane.oldest) <= 4_000 else { return }
      }
    }
    #expect(lane.accepted > 0 && lane.refused > 0 && lane.late > 0, "seed \(seed): each outcome has occurred")
  }
}

import TestSupport
import Testing

@testable import Transform

/// Which members of a group count as silent.
@Suite struct SilentMembersTests {
  /// Feeds answers of a heartbeat every half second; each names the time of the other's last heartbeat, nil for an interruption.
  private func silent(_ beats: [Int64?], every pauses: [Int64] = []) -> [Bool] {
    var members = SilentMembers()
    var now: Int64 = 1_000_000
    return beats.enumerated().map { place, beat in
      now += place < pauses.count ? pauses[place] : 500
      guard let beat else {
        members.interrupted()
        return false
      }
      return members.answered(["a": 1_000_000 + beat], at: now, by: now) == ["a": 1_000_000 + beat]
    }
  }

  @Test func aMemberIsSilentAfterTwoHeartbeatsWithoutOneOfItsOwn() {
    //      at    500  1000 1500  2000  2500
    #expect(silent([100, 600, 1100, 1100, 1100]) == [false, false, false, false, true])
    #expect(silent([100, 600, 1100, 1100, 2100, 2100, 2600]).allSatisfy { !$0 })
    // It beat less than a second ago.
    #expect(silent([499, 600, 600, 600], every: [500, 200, 300, 300]) == [false, false, false, false])
  }

  @Test func whoIsClaimedByNobodyIsNamedAgainAfterTwoFurtherHeartbeats() {
    #expect(silent([100, 600, 600, 600, 600, 600]) == [false, false, false, true, false, true])
  }

  @Test func aMemberThatWasNeverSeenToBeatIsSilentMuchLater() {
    let found = silent(Array(repeating: 100, count: 50))
    #expect(found.indices.filter { found[$0] } == [20, 40])
    // Died while the worker stood still.
    let late = silent([100, 600] + Array(repeating: 600, count: 30), every: [500, 500, 1_600])
    #expect(late.indices.filter { late[$0] } == [22])
  }

  @Test func aWorkerThatHasStoodStillKnowsNothing() {
    #expect(silent([100, 600, 600, 600, 600], every: [500, 500, 500, 1_600]) == [false, false, false, false, false])
    #expect(silent([100, 600, nil, 600, 600, 600, 600]).allSatisfy { !$0 })
    // Its own heartbeat is late, so that of the member may be, too.
    #expect(silent([100, 600, 600, 600, 600], every: [500, 500, 500, 900]) == [false, false, false, false, false])
    #expect(silent([100, 600, 600, 600, 600, 600], every: [500, 500, 500, 900]) == [false, false, false, false, false, true])
  }

  /// Workers beat, stand still, lose their connection, die and wake; Redis stands still and forgets. Nobody who has beaten within a second is
  /// removed, nobody is removed twice for one silence, and whoever dies while another beats in time is removed within two seconds.
  @Test func nobodyWhoBeatsIsRemovedWhateverStandsStill() {
    var (removals, deaths) = (0, 0)
    for seed in 0..<(isComplete ? 1_000 : 60) as Range<UInt64> {
      var world = World(seed: seed, workers: 4)
      for _ in 0..<4_000 { world.step() }
      removals += world.removals
      deaths += world.deaths
    }
    #expect(removals > 100 && deaths > 100)
  }

  /// Workers around one Redis, in steps of 10 ms.
  private struct World {
    private struct Worker {
      var watch = SilentMembers()
      var nextBeat: Int64
      /// It stands still until then; `.max` for a dead one.
      var sleepsUntil: Int64 = 0
      /// No connection until then.
      var awayUntil: Int64 = 0
      var died: Int64?
      /// The times of its answers since its last interruption.
      var answers: [Int64] = []
      /// The others' heartbeats in each of those answers.
      var seen: [[String: Int64]] = []
      var named: [String: Int] = [:]
    }

    private var random: SeededRandom
    private var workers: [Worker]
    private var now: Int64 = 1_000_000
    private var redis: [String: Int64] = [:]
    private var redisSleepsUntil: Int64 = 0
    private var removed: Set<String> = []
    private(set) var removals = 0
    private(set) var deaths = 0

    init(seed: UInt64, workers count: Int) {
      var random = SeededRandom(seed: seed)
      workers = (0..<count).map { _ in Worker(nextBeat: 1_000_000 + Int64.random(in: 0..<500, using: &random)) }
      self.random = random
    }

    private mutating func happens(oneIn number: Int) -> Bool { Int.random(in: 0..<number, using: &random) == 0 }

    mutating func step() {
      now += 10
      if happens(oneIn: 800) { redisSleepsUntil = now + Int64.random(in: 10...4_000, using: &random) }
      if happens(oneIn: 3_000) { redis = [:] }
      for place in workers.indices {
        if happens(oneIn: 600) {
          workers[place].sleepsUntil = max(workers[place].sleepsUntil, now + .random(in: 10...3_000, using: &random))
        }
        if happens(oneIn: 2_000) { workers[place].awayUntil = now + .random(in: 10...3_000, using: &random) }
        if workers[place].died == nil, happens(oneIn: 3_000) {
          workers[place].died = now
          workers[place].sleepsUntil = .max
          deaths += 1
        }
        if let died = workers[place].died, now > died + 8_000 {
          workers[place] = Worker(nextBeat: now)
          removed.remove("\(place)")
        }
        guard now >= workers[place].nextBeat, now >= workers[place].sleepsUntil, now >= redisSleepsUntil else { continue }
        workers[place].nextBeat = now + 500
        guard now >= workers[place].awayUntil else {
          workers[place].watch.interrupted()
          (workers[place].answers, workers[place].seen, workers[place].named) = ([], [], [:])
          continue
        }
        beat(place)
      }
    }

    private mutating func beat(_ place: Int) {
      let name = "\(place)"
      redis = redis.filter { now - $0.value <= 6_000 }
      redis[name] = now
      removed.remove(name)
      let others = redis.filter { $0.key != name }
      if let last = workers[place].answers.last, now - last > 1_500 {
        (workers[place].answers, workers[place].seen, workers[place].named) = ([], [], [:])
      }
      workers[place].answers.append(now)
      workers[place].seen.append(others)
      let silent = workers[place].watch.answered(others, at: now, by: now)
      #expect(Set(silent.keys) == naivelySilent(place, others))
      for (member, beat) in silent {
        workers[place].named[member] = workers[place].answers.count
        // The claim.
        guard redis[member] == beat else { continue }
        redis[member] = nil
        removals += 1
        #expect(now - beat >= 1_000, "a member that beats is not removed")
        #expect(removed.insert(member).inserted, "a member is removed once for each silence")
      }
      // Whoever is dead, was seen to beat, and missed three heartbeats of this worker in time, is not there any more.
      for (other, worker) in workers.enumerated() where redis["\(other)"] != nil {
        let times = workers[place].answers.suffix(4)
        let isRegular = zip(times, times.dropFirst()).allSatisfy { $1 - $0 <= 750 } && times.count == 4
        let seen = workers[place].seen.reversed().map { $0["\(other)"] }.prefix { $0 != nil }
        guard isRegular, Set(seen).count > 1, let died = worker.died, let first = times.first, first > died else { continue }
        Issue.record("worker \(other) died at \(died) and is there at \(now)")
      }
    }

    /// The same from all the answers since the last interruption.
    private func naivelySilent(_ place: Int, _ others: [String: Int64]) -> Set<String> {
      let (answers, seen) = (workers[place].answers, workers[place].seen)
      return Set(
        others.filter { member, beat in
          // The answers with this heartbeat: the first shows it, the others miss one.
          var first = answers.count - 1
          while first > 0, seen[first - 1][member] == beat { first -= 1 }
          let wasSeen = first > 0 && seen[first - 1][member] != nil
          let from = max(first, (workers[place].named[member] ?? 0) - 1)
          var misses = 0
          for number in from + 1..<max(answers.count, from + 1) {
            misses = answers[number] - answers[number - 1] <= 750 ? misses + 1 : 0
          }
          return wasSeen && misses >= 2 && now - beat >= 1_000
        }.keys)
    }
  }
}

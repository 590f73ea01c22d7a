import Synchronization
import TestSupport
import Testing

@testable import Transform

/// The lanes of a process share the permit to try groups of records that may end it.
@Suite struct CrashLoopPermitTests {
  @Test func theTurnGoesToTheLaneThatHasWaitedLongest() {
    let permit = CrashLoopPermit()
    let woken = Mutex<[Int]>([])
    let lanes = (0..<3).map { _ in permit.join() }
    func take(_ number: Int) -> Bool { permit.take(lanes[number]) { woken.withLock { $0.append(number) } } }
    #expect(take(0) && take(0), "nobody else wants it")
    #expect(!take(1) && !take(2) && !take(1), "one at a time")
    #expect(!take(0), "its next group comes after those of the others")
    #expect(woken.withLock { $0 } == [1])
    #expect(!take(2) && !take(0) && take(1), "it is the one's that was woken, before it comes as well")
    permit.giveUp(lanes[1])
    #expect(woken.withLock { $0 } == [1, 2])
    permit.giveUp(lanes[0])
    permit.giveUp(lanes[2])
    #expect(woken.withLock { $0 } == [1, 2], "nobody waits any more")
    #expect(take(1))
  }

  /// Against a naive model: who waits, in order, and who was woken.
  @Test(arguments: 0..<(isComplete ? 20 : 4) as Range<UInt64>) func atMostOneLaneWorksAndNobodyThatWaitsIsForgotten(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let permit = CrashLoopPermit()
    let woken = Mutex<[Int]>([])
    let lanes = (0..<4).map { _ in permit.join() }
    var (holder, queue): (Int?, [Int]) = (nil, [])
    var wakes: [Int] = []
    func passOn() {
      holder = queue.isEmpty ? nil : queue.removeFirst()
      if let holder { wakes.append(holder) }
    }
    var hasComeSinceWoken = Set<Int>()
    for _ in 0..<500 {
      let number = Int.random(in: 0..<lanes.count, using: &random)
      if Int.random(in: 0..<3, using: &random) > 0 {
        let isOwn = permit.take(lanes[number]) { woken.withLock { $0.append(number) } }
        if holder == nil || holder == number && (!hasComeSinceWoken.contains(number) || queue.isEmpty) {
          holder = number
          hasComeSinceWoken.insert(number)
          #expect(isOwn)
        } else {
          if !queue.contains(number) { queue.append(number) }
          if holder == number {
            hasComeSinceWoken.remove(number)
            passOn()
          }
          #expect(!isOwn)
        }
      } else {
        permit.giveUp(lanes[number])
        queue.removeAll { $0 == number }
        if holder == number {
          hasComeSinceWoken.remove(number)
          passOn()
        }
      }
      #expect(woken.withLock { $0 } == wakes)
    }
  }
}

import EventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

/// The asynchronous face of what a test does on a loop.
private actor Lane: LoopActor {
  nonisolated let loop: EventLoop
  private var count = 0

  init(_ loop: EventLoop) { self.loop = loop }

  func add() async -> Int {
    count += 1
    await Task.yield()
    return count
  }

  func many(_ rounds: Int) async -> Bool {
    for _ in 0..<rounds {
      _ = await withCheckedContinuation { (continuation: CheckedContinuation<Int, Never>) in
        let timer = Timer(on: loop) { continuation.resume(returning: 1) }
        timer.start(after: 0)
        closing.append(timer)
      }
      _ = await add()
    }
    for timer in closing { timer.close() }
    closing = []
    return loop.isOnLoop
  }
  private var closing: [Timer] = []

  private final class Counts { var (one, other) = (0, 0) }
  private let counts = Counts()
  private var turnEnd: TurnEnd?

  func countTurnEnds() {
    let counts = counts
    turnEnd = loop.onTurnEnd { counts.one += 1 }
    loop.onTurnEnd { counts.other += 1 }
  }

  var turnEnds: (one: Int, other: Int) { (counts.one, counts.other) }

  /// A timer that starts itself again until a turn has ended. Returns whether one did.
  func restartsUntilATurnEnds() async -> Bool {
    let counts = counts
    let timer = Timer(on: loop)
    let turnEnd = loop.onTurnEnd { if counts.one > 0 { counts.other += 1 } }
    defer {
      turnEnd.close()
      timer.close()
    }
    return await withCheckedContinuation { continuation in
      timer.handler = {
        counts.one += 1
        if counts.other == 0, counts.one < 10_000 { return timer.start(after: 0) }
        continuation.resume(returning: counts.other > 0)
      }
      timer.start(after: 0)
    }
  }

  func closeOneTurnEnd() -> (one: Int, other: Int) {
    turnEnd?.close()
    return turnEnds
  }
}

@Suite struct EventLoopTests {
  @Test func tasksOfALaneNeverLeaveItsThread() async {
    let loop = EventLoop(name: "test")
    let lane = Lane(loop)
    let before = loop.offLoopEnqueues
    let task = Task(executorPreference: loop) { await lane.many(1000) }
    #expect(await task.value)
    // One to start the task; a thousand timers, continuations and calls of the actor add nothing.
    #expect(loop.offLoopEnqueues - before <= 2)
    await loop.close()
  }

  @Test func aTimerThatItsOwnHandlerStartsLetsTheTurnEnd() async {
    let loop = EventLoop(name: "test")
    let lane = Lane(loop)
    #expect(await Task(executorPreference: loop) { await lane.restartsUntilATurnEnds() }.value)
    await loop.close()
  }

  @Test func aTaskWithoutThePreferenceIsCountedAsHopping() async {
    let loop = EventLoop(name: "test")
    let lane = Lane(loop)
    _ = await lane.many(100)
    #expect(loop.offLoopEnqueues > 50)
    await loop.close()
  }

  @Test func bodiesFromManyThreadsAllRunInTheirOrder() async throws {
    let loop = EventLoop(name: "test")
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for index in 0..<1000 { group.addTask { try await loop.run { index } } }
      return try await group.reduce(0, +)
    }
    #expect(sum == 499_500)
    await loop.close()
  }

  @Test func aJobOfATurnsEndDoesNotWaitForTheNextWakeUp() async throws {
    let loop = EventLoop(name: "test")
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(10))
    try await loop.run {
      var turns = 0
      loop.onTurnEnd {
        turns += 1
        let turn = turns
        if turn <= 3 { loop.execute { continuation.yield(turn) } }
      }
    }
    // Nothing else wakes the loop.
    let seen = try await endsByItself("the three jobs") {
      var seen: [Int] = []
      for await turn in stream {
        seen.append(turn)
        if turn == 3 { break }
      }
      return seen
    }
    #expect(seen == [1, 2, 3])
    await loop.close()
  }

  @Test func whatWasClosedRunsAtNoTurnsEndAnyMore() async throws {
    let loop = EventLoop(name: "test")
    let lane = Lane(loop)
    await lane.countTurnEnds()
    for _ in 0..<5 { try await loop.run {} }
    let before = await lane.closeOneTurnEnd()
    for _ in 0..<5 { try await loop.run {} }
    let after = await lane.turnEnds
    #expect(before.one > 0 && after.one == before.one && after.other > before.other)
    await loop.close()
  }

  @Test func closingTheLoopClosesWhatIsStillOpenOnIt() async throws {
    let loop = EventLoop(name: "test")
    let stopped = Atomic(false)
    try await loop.run {
      let timer = Timer(on: loop) {}
      timer.start(after: 1000, repeating: 1000)
      _ = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { $0.close() }
      _ = try Waker(on: loop, stop: { stopped.store(true, ordering: .relaxed) }) {}
    }
    await loop.close()
    await loop.close()
    let wasStopped = stopped.load(ordering: .relaxed)
    #expect(wasStopped)
  }

  @Test func aBusyAddressIsNamedAsSuch() async throws {
    let loop = EventLoop(name: "test")
    let error = try await loop.run { () -> EventLoopError? in
      let first = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { $0.close() }
      defer { first.close() }
      do {
        _ = try Listener(on: loop, at: first.localAddress) { $0.close() }
        return nil
      } catch let error as EventLoopError { return error }
    }
    #expect(error?.code == .addressInUse)
    await loop.close()
  }

  @Test func aWakerWakesTheLoopFromAnotherThread() async throws {
    let loop = EventLoop(name: "test")
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
    let address = try await loop.run { UInt(bitPattern: try Waker(on: loop, stop: {}) { continuation.yield() }.pointer) }
    Waker.wake(UnsafeMutableRawPointer(bitPattern: address))
    for await _ in stream { break }
    await loop.close()
  }

  @Test func aSignalReachesItsWatch() async throws {
    let loop = EventLoop(name: "test")
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
    try await loop.run { _ = try SignalWatch(on: loop, signal: SIGUSR2) { continuation.yield() } }
    kill(getpid(), SIGUSR2)
    for await _ in stream { break }
    await loop.close()
  }

  @Test func childrenTellHowTheyEnded() async throws {
    let loop = EventLoop(name: "test")
    let (stream, continuation) = AsyncStream.makeStream(of: ChildExit.self, bufferingPolicy: .bufferingOldest(2))
    try await loop.run {
      _ = try ChildProcess.spawn(on: loop, executable: "sh", arguments: ["-c", "exit 7"]) { continuation.yield($0) }
    }
    var exits = stream.makeAsyncIterator()
    #expect(await exits.next() == .exited(7))
    try await loop.run {
      let child = try ChildProcess.spawn(on: loop, executable: "sleep", arguments: ["60"]) { continuation.yield($0) }
      child.kill(SIGTERM)
    }
    #expect(await exits.next() == .killed(signal: SIGTERM))
    await #expect(throws: EventLoopError.self) {
      try await loop.run { _ = try ChildProcess.spawn(on: loop, executable: "/no/such/program", arguments: []) { _ in } }
    }
    await loop.close()
  }

  @Test(arguments: [
    ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:0", "::1", 0), ("localhost:65535", "localhost", 65535),
  ])
  func addressesAreRead(text: String, host: String, port: Int) {
    #expect(SocketAddress(text) == SocketAddress(host: host, port: port))
    #expect(SocketAddress(text)?.description == text)
  }

  @Test(arguments: ["", ":", "host", "host:", "host:65536", "host:-1", "host:+1", ":80", "::1:80", "a b:80", "host:8x"])
  func whatIsNoAddressIsRefused(text: String) { #expect(SocketAddress(text) == nil) }
}

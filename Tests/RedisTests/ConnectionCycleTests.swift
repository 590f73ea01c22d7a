import Testing

@testable import Redis

@Suite struct ConnectionCycleTests {
  private static let lost = RedisError(.connectionLost, "lost")

  /// The macro cannot call what changes its object.
  private func check<T: Equatable>(_ value: T, _ expected: T, _ location: SourceLocation = #_sourceLocation) {
    #expect(value == expected, sourceLocation: location)
  }

  /// The longest waits that the bounds allow, for so many failures in a row.
  private func waits(_ cycle: inout ConnectionCycle, _ error: RedisError, count: Int) -> [Int] {
    (0..<count).map { _ in
      guard case .retry(let wait, _) = cycle.failed(error, now: 0) else { return -1 }
      _ = cycle.waited()
      return wait
    }
  }

  @Test func waitsDoubleUpToTheLongest() {
    var cycle = ConnectionCycle(Backoff(firstMilliseconds: 50, longestMilliseconds: 1000), random: \.upperBound)
    check(cycle.start(), .connect)
    check(waits(&cycle, Self.lost, count: 8), [50, 100, 200, 400, 800, 1000, 1000, 1000])
  }

  @Test func jitterIsFullButForHopelessCauses() {
    var cycle = ConnectionCycle(Backoff(firstMilliseconds: 50, longestMilliseconds: 1000), random: \.lowerBound)
    _ = cycle.start()
    check(waits(&cycle, Self.lost, count: 3), [1, 1, 1])
    check(waits(&cycle, RedisError(.authenticationFailed, ""), count: 2), [500, 500])
  }

  @Test func onlyAConnectionThatLastedForgetsFailures() {
    for (lasted, expected) in [(ConnectionCycle.steadyMilliseconds - 1, 400), (ConnectionCycle.steadyMilliseconds, 50)] {
      var cycle = ConnectionCycle(Backoff(firstMilliseconds: 50, longestMilliseconds: 1000), random: \.upperBound)
      _ = cycle.start()
      _ = waits(&cycle, Self.lost, count: 3)
      check(cycle.connected(), .greet)
      check(cycle.greeted(now: 100), .announceUp)
      #expect(cycle.cause == nil)
      check(cycle.failed(Self.lost, now: 100 + lasted), .retry(afterMilliseconds: expected, wasUp: true))
      #expect(cycle.cause == Self.lost)
    }
  }

  @Test func whatComesOutOfTurnChangesNothing() {
    var cycle = ConnectionCycle(Backoff())
    check(cycle.connected(), .nothing)
    check(cycle.greeted(now: 0), .nothing)
    check(cycle.failed(Self.lost, now: 0), .nothing)
    check(cycle.start(), .connect)
    check(cycle.start(), .nothing)
    check(cycle.waited(), .nothing)
    check(cycle.greeted(now: 0), .nothing)
    let closes = [cycle.close(), cycle.close()]
    #expect(closes == [true, false])
    for action in [cycle.start(), cycle.connected(), cycle.greeted(now: 0), cycle.failed(Self.lost, now: 0), cycle.waited()] {
      #expect(action == .nothing)
    }
  }
}

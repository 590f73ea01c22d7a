import TestSupport
import Testing

@testable import Transform

@Suite struct ScheduleScopeTests {
  private struct Request: Equatable {
    let number: Int
    let cancelsAll: Bool
  }

  @Test func `a cancel of all runs after the earlier requests and before the later ones, and every request runs`() throws {
    for seed in 0..<(isComplete ? 100 : 20) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var scope = ScheduleScope<Request>()
      var (added, waiting, running): (Int, [Request], [Request]) = (0, [], [])
      func begin(_ begun: [Request]) {
        for request in begun {
          #expect(waiting.first == request, "requests begin in their order")
          waiting.removeAll { $0 == request }
          #expect(request.cancelsAll ? running.isEmpty : !running.contains { $0.cancelsAll })
          running.append(request)
        }
      }
      func end(_ place: Int) { let request = running.remove(at: place); begin(scope.ended(cancelsAll: request.cancelsAll)) }
      for _ in 0..<200 {
        switch Int.random(in: 0..<9, using: &random) {
        case 0..<4:
          let request = Request(number: added, cancelsAll: Int.random(in: 0..<4, using: &random) == 0)
          added += 1
          waiting.append(request)
          begin(scope.add(request, cancelsAll: request.cancelsAll))
        case 4..<8:
          if let place = running.indices.randomElement(using: &random) { end(place) }
        default:
          let dropped = waiting.filter { _ in Bool.random(using: &random) }
          waiting.removeAll { dropped.contains($0) }
          begin(scope.drop { dropped.contains($0) })
        }
        #expect(waiting.isEmpty || waiting[0].cancelsAll || running.contains { $0.cancelsAll }, "a request waits for nothing")
      }
      while let place = running.indices.last { end(place) }
      #expect(waiting.isEmpty && scope.isEmpty, "seed \(seed)")
    }
  }
}

@testable import DeviceClient
import Notifications
import Testing

@Suite struct OutboxTests {
  private func response(_ number: Int) -> ResponseFrame {
    ResponseFrame(response: "r\(number)", receipt: "receipt", identifier: "a", action: "open")
  }

  @Test func responsesAreBoundedAndGoOutAFewAtATime() {
    var outbox = ResponseOutbox(limit: 5, inFlightLimit: 2, resendMilliseconds: 100)
    let taken = (0..<6).map { outbox.add(response($0)) }
    #expect(taken == [true, true, true, true, true, false])
    #expect(outbox.next(now: 0).map(\.response) == ["r0", "r1"])
    #expect(outbox.next(now: 99).isEmpty)
    #expect(outbox.settle("r0")?.response == "r0")
    #expect(outbox.settle("r0") == nil)
    #expect(outbox.next(now: 99).map(\.response) == ["r2"])
    #expect(outbox.next(now: 100).map(\.response) == ["r1"], "unanswered for too long")
    outbox.sessionEnded()
    #expect(outbox.next(now: 101).map(\.response) == ["r1", "r2"])
    #expect(outbox.waiting.map(\.response) == ["r1", "r2", "r3", "r4"])
  }

  @Test func changesBeforeAHelloAreAnsweredByTheWelcome() {
    var changes = RegistrationChanges()
    #expect(changes.add(.categories([]), request: "before") == "before")
    #expect(changes.add(.unregister, request: "bye") == "bye")
    changes.helloSent()
    #expect(changes.add(.settings(Authorization(status: .denied)), request: "after") == "after")
    #expect(changes.welcomed() == ["before"])
    #expect(changes.next().map(\.request) == ["bye", "after"])
    #expect(changes.next().isEmpty)
    changes.sessionEnded()
    changes.helloSent()
    #expect(changes.welcomed() == ["after"])
    #expect(changes.next().map(\.request) == ["bye"])
    #expect(changes.settle("bye") == .unregister)
    #expect(changes.settle("bye") == nil)
  }

  @Test func waitsGrowUntilASessionHasStood() {
    var plan = ReconnectionPlan()
    #expect(plan.ended(code: 1006, sessionMilliseconds: nil, jitter: 1) == 500)
    #expect(plan.ended(code: 1006, sessionMilliseconds: 10, jitter: 1) == 2000)
    #expect(plan.failed(jitter: 1) == 4000)
    #expect(plan.failed(jitter: 0, atLeast: 60_000) == 60_000)
    #expect(plan.failed(jitter: 0.5, atLeast: 60_000) == 60_500, "the server says whole seconds to many")
    #expect(plan.ended(code: 1006, sessionMilliseconds: 60_000, jitter: 1) == 500)
    plan.goaway(1234)
    #expect(plan.ended(code: 4007, sessionMilliseconds: 10, jitter: 1) == 1734)
    #expect(plan.ended(code: 4007, sessionMilliseconds: 10, jitter: 0) == 0, "the word of an earlier goaway holds once")
    plan.goaway(1234)
    #expect(plan.ended(code: CloseCode.takenOver.rawValue, sessionMilliseconds: 10, jitter: 1) == nil)
  }

  @Test func anOrderlyEndIsNoFailure() {
    var plan = ReconnectionPlan()
    for _ in 0..<5 { _ = plan.failed(jitter: 1) }
    plan.goaway(0)
    #expect(plan.ended(code: 4007, sessionMilliseconds: 10, jitter: 0) == 0)
    #expect([plan.failed(jitter: 1), plan.failed(jitter: 1), plan.failed(jitter: 1)] == [500, 2000, 4000])
  }

  @Test func allAddressesAreTriedBeforeTheDeviceWaitsLonger() {
    var plan = ReconnectionPlan(addresses: 3)
    #expect(plan.address == 0)
    var tried: [Int] = []
    var waits: [Int] = []
    for _ in 0..<7 {
      waits.append(plan.failed(jitter: 1))
      tried.append(plan.address)
    }
    #expect(tried == [1, 2, 0, 1, 2, 0, 1])
    #expect(waits == [500, 500, 500, 500, 500, 2000, 500])
    plan.goaway(0)
    #expect(plan.ended(code: 4007, sessionMilliseconds: 10, jitter: 0) == 0)
    #expect(plan.address == 2)
  }

  @Test func aTakeoverByAHelloOfItsOwnIsNoReasonToStayAway() {
    let takenOver = CloseCode.takenOver.rawValue
    var plan = ReconnectionPlan()
    plan.helloAbandoned()
    #expect(plan.ended(code: takenOver, sessionMilliseconds: 10, jitter: 1) != nil)
    #expect(plan.ended(code: takenOver, sessionMilliseconds: 10, jitter: 1) == nil, "one hello takes over once")
    plan.helloAbandoned()
    #expect(plan.ended(code: 1006, sessionMilliseconds: 600_000, jitter: 1) != nil)
    #expect(plan.ended(code: takenOver, sessionMilliseconds: 10, jitter: 1) == nil, "a hello of long ago takes over no more")
  }
}

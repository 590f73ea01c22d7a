import TestSupport
import Testing
import Worker

/// Waiting for what may hang.
@Suite struct TaskDeadlineTests {
  @Test func whatIsFoundInTimeIsTheAnswer() async {
    #expect(await Task { 7 }.value(by: .now + hangDeadline) == 7)
  }

  @Test func whatHangsIsWaitedForNoLongerAndGoesOn() async {
    let (gate, opening) = AsyncStream<Never>.makeStream()
    let hanging = Task {
      for await _ in gate {}
      return Task.isCancelled ? "cancelled" : "found"
    }
    #expect(await hanging.value(by: .now + .milliseconds(20)) == nil)
    opening.finish()
    #expect(await hanging.value(by: .now + hangDeadline) == "found")
  }
}

import EventLoop
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import Extensions

/// Extensions that take their time: each ends as it is documented, and the lane never waits for one.
@Suite struct ExtensionCallsTests {
  /// An extension that does as it is told, and counts what of it is at work.
  final class Told: ServiceExtension {
    typealias Work = @Sendable (ExtensionRequest, BestAttempt) async throws -> MutableContent
    private let work: Work
    private let lastWord: String?
    private let counts = Mutex((running: 0, called: 0, isClosed: false))
    var running: Int { counts.withLock { $0.running } }
    var called: Int { counts.withLock { $0.called } }
    var isClosed: Bool { counts.withLock { $0.isClosed } }

    init(lastWord: String? = nil, _ work: @escaping Work) { (self.work, self.lastWord) = (work, lastWord) }

    func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
      counts.withLock { ($0.called, $0.running) = ($0.called + 1, $0.running + 1) }
      defer { counts.withLock { $0.running -= 1 } }
      return try await work(request, bestAttempt)
    }

    func serviceExtensionTimeWillExpire(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async -> MutableContent? {
      guard let lastWord else { return nil }
      bestAttempt.update { $0.title = lastWord }
      return bestAttempt.content
    }

    func close() async { counts.withLock { $0.isClosed = true } }
  }

  /// A lane that calls extensions.
  actor Lane: LoopActor {
    static let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    nonisolated let loop = EventLoop(name: "calls-test")
    private var calls: ExtensionCalls?

    @concurrent static func with(
      _ bounds: ExtensionCalls.Bounds = ExtensionCalls.Bounds(), _ body: @concurrent @Sendable (Lane) async throws -> Void
    ) async throws {
      let lane = Lane()
      await lane.open(bounds)
      let result: Result<Void, any Error>
      do { result = .success(try await body(lane)) } catch { result = .failure(error) }
      await lane.close()
      await lane.loop.close()
      try result.get()
    }

    private func open(_ bounds: ExtensionCalls.Bounds) { calls = ExtensionCalls(on: loop, bounds: bounds) }
    func close() async {
      let calls = calls
      self.calls = nil
      await calls?.close()
    }
    func retire() { calls?.retire() }
    var count: Int { calls?.count ?? 0 }

    /// Waits until a condition holds, and says so when it does not.
    nonisolated func eventually(
      _ what: String, _ location: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
    ) async {
      await TestSupport.eventually(what, location, condition)
    }

    /// What becomes of a notification that passes these.
    func pass(
      _ definitions: [ExtensionDefinition], of content: MutableContent = news, lifetime: Int64 = 3_600_000
    ) async -> ExtensionRun {
      await passage(definitions, of: content, lifetime).result()
    }

    static let news = MutableContent(payload: ["aps": ["alert": ["title": "News", "body": "Hello"]]])

    /// Begins one, and gives it up when so much is at work.
    func giveUp(_ definition: ExtensionDefinition, when isAtWork: @Sendable () -> Bool) async {
      let passage = passage([definition], of: Self.news, 3_600_000)
      #expect(passage.start { _ in Issue.record("nobody wants to know") } == nil)
      await eventually("it is at work") { isAtWork() }
      passage.cancel()
    }

    private func passage(_ definitions: [ExtensionDefinition], of content: MutableContent, _ lifetime: Int64) -> ExtensionPassage {
      guard let calls else { preconditionFailure("the lane is open") }
      let steps = definitions.enumerated().map { ExtensionChain.Step(name: "\($0.offset)", work: .called($0.element)) }
      let request = ExtensionRequest(
        id: NotificationID(high: 1, low: 2), identifier: "i", application: "com.example.shop", expiration: 0, traceparent: Self.trace)
      return ExtensionPassage(
        ExtensionRun(content), bytes: 100, of: request, through: steps[...], within: calls.budget(lifetime: lifetime), ContentRules(), calls
      )
    }
  }

  private static func definition(
    _ work: any ServiceExtension, budget: Int = 30_000, _ change: (inout ExtensionDefinition.Limits) -> Void = { _ in }
  ) -> ExtensionDefinition {
    var limits = ExtensionDefinition.Limits()
    limits.budgetMilliseconds = budget
    change(&limits)
    return ExtensionDefinition(limits) { _ in work }
  }

  @Test func whatItReturnsIsShown() async throws {
    try await Lane.with { lane in
      let work = Told { request, attempt in
        var content = attempt.content
        content.title = "\(request.extensionName) \(request.idempotencyKey.count)"
        return content
      }
      let run = await lane.pass([Self.definition(work)])
      #expect(run.outcomes.map(\.state) == [.modified])
      #expect(run.content.title == "0 38")
      #expect(run.written != nil)
      let same = Told { $1.content }
      #expect(await lane.pass([Self.definition(same)]).outcomes.map(\.state) == [.unchanged])
    }
  }

  @Test func whatItThrowsLeavesItsBestAttemptElseWhatItWasGiven() async throws {
    struct Trouble: Error {}
    try await Lane.with { lane in
      let nothing = Told { _, _ in throw Trouble() }
      let something = Told { _, attempt in
        attempt.update { $0.title = "half" }
        throw Trouble()
      }
      let run = await lane.pass([Self.definition(nothing), Self.definition(something)])
      #expect(run.outcomes.map(\.state) == [.failed, .bestAttempt])
      #expect(run.outcomes.map(\.failure?.said) == ["Trouble()", "Trouble()"])
      #expect((run.content.title, run.content.body) == ("half", "Hello"))
      let original = await lane.pass([Self.definition(something) { $0.unfinished = .original }])
      #expect(original.outcomes.map(\.state) == [.failed])
      #expect(original.content.title == "News")
    }
  }

  @Test func oneThatHangsIsStoppedAndItsBestAttemptIsShown() async throws {
    try await Lane.with { lane in
      let nothing = Told { _, _ in try await untilCancelled() }
      let something = Told { _, attempt in
        attempt.update { $0.title = "half" }
        try await untilCancelled()
      }
      let late = Told(lastWord: "last word") { _, attempt in
        attempt.update { $0.title = "half" }
        try await untilCancelled()
      }
      let definitions = [nothing, something, late].map { Self.definition($0, budget: 200) }
      // One may have no time for its attempt where the machine stands still.
      await lane.eventually("all have made their attempts in time") {
        let run = await lane.pass(definitions + [Self.definition(something, budget: 200) { $0.unfinished = .original }])
        #expect(run.outcomes.allSatisfy { [.timedOut, .bestAttempt, .original].contains($0.state) })
        return run.outcomes.map(\.state) == [.timedOut, .bestAttempt, .bestAttempt, .original] && run.content.title == "last word"
      }
      await lane.eventually("work stops") { [nothing, something, late].allSatisfy { $0.running == 0 } }
      await lane.eventually("nothing is under way") { await lane.count == 0 }
    }
  }

  /// It cannot be stopped, and so it goes on; but nobody waits for it.
  @Test func oneThatDoesNotListenHoldsUpNothingButItsOwnPlace() async throws {
    try await Lane.with { lane in
      let gate = Latch()
      let work = Told { _, attempt in
        await gate.wait()
        return attempt.content
      }
      let deaf = Self.definition(work, budget: 50) { $0.concurrency = 2 }
      for _ in 0..<2 { #expect(await lane.pass([deaf]).outcomes.map(\.state) == [.timedOut]) }
      #expect(await lane.count == 2)
      #expect(await lane.pass([deaf]).outcomes.map(\.state) == [.overloaded])
      let same = Told { $1.content }
      #expect(await lane.pass([Self.definition(same)]).outcomes.map(\.state) == [.unchanged])
      gate.open()
      await lane.eventually("work stops") { work.running == 0 }
      await lane.eventually("nothing is under way") { await lane.count == 0 }
    }
  }

  private final class Flag: Sendable {
    private let value = Atomic(false)
    var isOff: Bool { value.load(ordering: .relaxed) }
    func turnOff() { value.store(true, ordering: .relaxed) }
  }

  @Test func whatBreaksARuleIsNotShown() async throws {
    try await Lane.with { lane in
      let large = Told { _, attempt in
        var content = attempt.content
        content.body = String(repeating: "x", count: 20_000)
        return content
      }
      let silent = Told { _, _ in MutableContent(payload: ["aps": [:]]) }
      let run = await lane.pass([Self.definition(large), Self.definition(silent)])
      #expect(run.outcomes.map(\.state) == [.failed, .failed])
      #expect(run.outcomes[0].failure?.reason.contains("16384") == true)
      #expect(run.content.body == "Hello")
    }
  }

  @Test func thousandsAreUnderWayAtOnceAndTheNextIsShownAsItIs() async throws {
    var bounds = ExtensionCalls.Bounds()
    bounds.calls = 2_000
    try await Lane.with(bounds) { lane in
      let gate = Latch()
      let waiting = Told { _, attempt in
        await gate.wait()
        return attempt.content
      }
      let definition = Self.definition(waiting) { $0.concurrency = 10_000 }
      let states = await withTaskGroup(of: ExtensionState?.self) { group in
        for _ in 0..<2_500 { group.addTask { await lane.pass([definition]).outcomes.first?.state } }
        await lane.eventually("as many as may are called") { waiting.running == 2_000 }
        var states: [ExtensionState?] = []
        for _ in 0..<500 { states.append(await group.next() ?? nil) }
        #expect(states.allSatisfy { $0 == .overloaded })
        gate.open()
        for await state in group { states.append(state) }
        return states
      }
      #expect(states.count { $0 == .unchanged } == 2_000)
    }
  }

  @Test func oneThatFailsAgainAndAgainIsNotCalledForAWhile() async throws {
    struct Trouble: Error {}
    try await Lane.with { lane in
      let isBroken = Flag()
      let work = Told { _, attempt in
        if !isBroken.isOff { throw Trouble() }
        return attempt.content
      }
      let definition = Self.definition(work) { $0.breaker = 3 }
      for _ in 0..<3 { #expect(await lane.pass([definition]).outcomes.map(\.state) == [.failed]) }
      // It is left alone for a second, and twice as long after each trial, for which a machine that stands still may have had the time.
      await lane.eventually("it is left alone") {
        let called = work.called
        let isLeftAlone = await lane.pass([definition]).outcomes.map(\.state) == [.overloaded]
        if isLeftAlone { #expect(work.called == called) }
        return isLeftAlone
      }
      isBroken.turnOff()
      await lane.eventually("it is tried again") { await lane.pass([definition]).outcomes.first?.state == .unchanged }
    }
  }

  @Test func oneThatHadLessThanItsBudgetHasNotFailed() async throws {
    try await Lane.with { lane in
      let work = Told { _, _ in try await untilCancelled() }
      let definition = Self.definition(work) { $0.breaker = 1 }
      // Where the machine stands still for so long, it has no time at all.
      await lane.eventually("it is called again and again") {
        #expect(await lane.pass([definition], lifetime: 2_000).outcomes.map(\.state) == [.timedOut])
        return work.called == 2
      }
    }
  }

  @Test func whatARunHasLeftIsFoundAgainInItsBytesButNotByAnotherChain() async throws {
    try await Lane.with { lane in
      struct Trouble: Error {}
      let changing = Told { _, attempt in
        var content = attempt.content
        content.title = "Changed"
        return content
      }
      let failing = Told { _, _ in throw Trouble() }
      let run = await lane.pass([Self.definition(changing), Self.definition(failing)])
      let published = MutableContent(payload: ["aps": ["alert": ["title": "News", "body": "Hello"]]])
      let step = ExtensionChain.Step(name: "0", work: .called(Self.definition(changing)))
      let chain = ExtensionChain(application: "a", steps: [step], settings: "one")
      let bytes = run.bytes(of: chain)
      let found = try #require(ExtensionRun(bytes, of: chain, published: published, ContentRules()))
      #expect(found.content == run.content)
      #expect(found.written?.payload == run.written?.payload)
      #expect(found.outcomes.map(\.name) == ["0", "1"])
      #expect(found.outcomes.map(\.state) == [.modified, .failed])
      #expect(found.outcomes.map(\.microseconds) == run.outcomes.map(\.microseconds))
      let other = ExtensionChain(application: "a", steps: [step], settings: "two")
      #expect(ExtensionRun(bytes, of: other, published: published, ContentRules()) == nil)
      for count in 0..<bytes.count { _ = ExtensionRun(Array(bytes[..<count]), of: chain, published: published, ContentRules()) }
    }
  }

  @Test func workOnWhatNobodyWaitsForStops() async throws {
    try await Lane.with { lane in
      let work = Told { _, _ in try await untilCancelled() }
      await lane.giveUp(Self.definition(work)) { work.running == 1 }
      await lane.eventually("work stops") { work.running == 0 }
    }
  }

  @Test func noTimeIsLeftForWhatIsAboutToExpire() async throws {
    try await Lane.with { lane in
      let work = Told { $1.content }
      #expect(await lane.pass([Self.definition(work)], lifetime: 0).outcomes.map(\.state) == [.timedOut])
      #expect(work.called == 0)
    }
  }

  @Test func whatAnotherFileHasReplacedIsClosedWithItsLastCall() async throws {
    try await Lane.with { lane in
      let gate = Latch()
      let (idle, busy) = (
        Told { $1.content },
        Told { _, attempt in
          await gate.wait()
          return attempt.content
        }
      )
      _ = await lane.pass([Self.definition(idle)])
      async let run = lane.pass([Self.definition(busy)])
      await lane.eventually("it is called") { busy.running == 1 }
      await lane.retire()
      await lane.eventually("what nobody uses is closed") { idle.isClosed }
      #expect(!busy.isClosed)
      gate.open()
      #expect(await run.outcomes.map(\.state) == [.unchanged])
      await lane.eventually("it is closed with its last call") { busy.isClosed }
    }
  }
}

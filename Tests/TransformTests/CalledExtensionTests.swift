import Cryptography
import Extensions
import JSON
import Kafka
import Notifications
import Redis
import Synchronization
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Requests whose service extensions take their time, on a lane.
@Suite struct CalledExtensionTests {
  /// Puts a mark before the body, and waits where the body says so until it is let go.
  private actor Marking: ServiceExtension {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private(set) var calls: [String] = []
    private(set) var keys: Set<String> = []
    private(set) var cancelled = 0

    func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
      var content = bestAttempt.content
      let body = content.body ?? ""
      calls.append(body)
      keys.insert(request.idempotencyKey)
      if body.contains("wait") { await wait() }
      content.body = "seen: \(body)"
      if let locale = request.locale { content.subtitle = "\(locale)\(request.device.map { " \($0.suffix(2))" } ?? "")" }
      return content
    }

    private func wait() async {
      guard !isOpen else { return }
      await withTaskCancellationHandler {
        await withCheckedContinuation { waiting.append($0) }
      } onCancel: {
        Task { await self.cancel() }
      }
    }

    private func cancel() {
      cancelled += 1
      open()
    }

    func close() { isOpen = false }

    var waits: Int { waiting.count }

    func open() {
      isOpen = true
      for continuation in waiting { continuation.resume() }
      waiting = []
    }
  }

  private static func source(_ work: Marking, _ more: [ExtensionChain.Step] = []) -> InForce<ExtensionsFile> { source([step(work)] + more) }

  private static func source(_ steps: [ExtensionChain.Step]) -> InForce<ExtensionsFile> {
    InForce(ExtensionsFile([ExtensionChain(application: Name(TransformFixture.application), steps: steps)]))
  }

  private static func step(
    _ work: Marking, per scope: ExtensionDefinition.Scope = .request, concurrency: Int = 256
  ) -> ExtensionChain.Step {
    var limits = ExtensionDefinition.Limits()
    limits.budgetMilliseconds = CallBudget.longestMilliseconds
    (limits.scope, limits.concurrency) = (scope, concurrency)
    return ExtensionChain.Step(name: "ask-\(scope)", work: .called(ExtensionDefinition(limits) { _ in work }))
  }

  private static func payload(_ body: String) -> String { #"{"aps":{"alert":{"body":"\#(body)"},"mutable-content":1}}"# }

  /// The bodies that a lane has delivered to a device, in their order.
  private static func bodies(_ lane: TransformFixture, of token: String, count: Int) async throws -> [String] {
    try await lane.kafka.records(of: lane.topics.deliveries, count: count).compactMap { record in
      guard record.device == token else { return nil }
      return try (record.value ?? []).withUnsafeBytes { bytes in
        let payload = try #require(DeliveryRecord(bytes)?.entry?.payload)
        return try JSONValue(parsing: payload)["aps"]?["alert"]?["body"]?.stringValue
      }
    }
  }

  @Test func oneThatTakesItsTimeDelaysItsOwnTargetOnlyWhoseRequestsPassSideBySideAndAreShownInOrder() async throws {
    let work = Marking()
    let source = Self.source(work)
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      for token in tokens { try await lane.connect(token) }
      try await lane.request("device:" + tokens[0], payload: Self.payload("wait"))
      try await lane.request("device:" + tokens[0], payload: Self.payload("second"))
      try await lane.request("device:" + tokens[0], bytes: 1)
      try await lane.request("device:" + tokens[1], payload: Self.payload("other"))
      await lane.eventually("all that are mutable are called") { await work.calls.count == 3 }
      await lane.eventually("the other target is delivered to") { lane.count(.queued) == 1 }
      #expect(try await Self.bodies(lane, of: tokens[1], count: 1) == ["seen: other"])
      try await lane.settled { lane.count(.queued) }
      #expect(lane.count(.queued) == 1, "its own target waits, those too that pass no extension")
      await work.open()
      await lane.eventually("all are judged") { lane.count(.queued) == 4 }
      let payloads = try await lane.kafka.records(of: lane.topics.deliveries, count: 4)
      #expect(payloads.count == 4)
      #expect(try await Self.bodies(lane, of: tokens[0], count: 4).prefix(2) == ["seen: wait", "seen: second"])
      #expect(await work.calls.count == 3)
    }
  }

  @Test func whatIsStartedAgainIsNotCalledAgain() async throws {
    // Redis takes neither for a while.
    try await Self.isCalledOnce(
      breaking: { try await $0.probe.command("CONFIG", "SET", "maxmemory", "1") },
      mending: { try await $0.probe.command("CONFIG", "SET", "maxmemory", "0") })
  }

  @Test func whatIsReadAgainIsShownAsBeforeAndNotCalledAgain() async throws {
    // A bucket is lost while both are judged, so that the lane reads them again.
    try await Self.isCalledOnce(breaking: { try await $0.lose(0) }, mending: { try await $0.putBack(0) })
  }

  /// A person's request, and one for a device, while Redis is broken between their extension's answer and their verdicts.
  private static func isCalledOnce(
    breaking: @escaping @Sendable (TransformFixture) async throws -> Void,
    mending: @escaping @Sendable (TransformFixture) async throws -> Void
  ) async throws {
    let work = Marking()
    let source = source(work)
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 1), (1, 1)])
      try await lane.register(tokens, for: "ada")
      for token in tokens { try await lane.connect(token) }
      try await lane.request("user:ada", payload: payload("wait person"))
      try await lane.request("device:" + tokens[0], payload: payload("wait device"))
      await lane.eventually("both are called") { await work.calls.count == 2 }
      try await breaking(lane)
      await work.open()
      await lane.eventually("the lane knows that Redis is not as it should be") { !lane.health.isReady }
      try await mending(lane)
      await lane.eventually("both are judged") { lane.count(.queued) == 1 && lane.count(.addressed) == 1 }
      #expect(try await bodies(lane, of: tokens[1], count: 3) == ["seen: wait person"])
      #expect(await work.calls.count == 2)
    }
  }

  @Test func nobodyIsCalledForWhatNobodyIsShown() async throws {
    let work = Marking()
    let source = Self.source(work)
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register([tokens[0]], for: "ada")
      let id = "123e4567-e89b-12d3-a456-42665544000a"
      try await lane.request("device:" + tokens[0], payload: Self.payload("first"), id: id)
      await lane.eventually("it is judged") { lane.count(.queued) == 1 }
      try await lane.request("device:" + tokens[0], payload: Self.payload("its duplicate"), id: id)
      try await lane.request("device:" + tokens[1], payload: Self.payload("for nobody"))
      try await lane.request("user:grace", payload: Self.payload("for no devices"))
      await lane.eventually("all are judged") { lane.count(.duplicate) == 1 && lane.count(.unregistered) == 2 }
      #expect(await work.calls == ["first"])
      #expect(lane.metric(#"carillon_transform_extensions_total{state="overloaded"}"#) == 3)
    }
  }

  /// A script that fails over what one device has answers an error that nobody knows, as a Redis does that is out of order.
  @Test func `an unknown error over one record is poison only where every script works`() async throws {
    let work = Marking()
    let source = Self.source(work)
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      // Too short for a revision: the script that looks for results ends over it.
      try await lane.probe.command("HSET", .text(TransformFixture.keys.device(tokens[0])), "cone", "x")
      try await lane.probe.command("ACL", "SETUSER", "default", "-hexists")
      try await lane.request("device:" + tokens[0], payload: Self.payload("broken"), collapse: "one")
      await lane.eventually("the check fails") { lane.health.json.contains("hexists") }
      // It looks less often than it tries a record again.
      let looks = try await lane.looks()
      await lane.eventually("it has looked at Redis again") { try await lane.looks() > looks }
      #expect(lane.count(.deadLettered) == 0, "the error may lie in Redis")
      try await lane.probe.command("ACL", "SETUSER", "default", "+hexists")
      await lane.eventually("it is a dead letter") { lane.count(.deadLettered) == 1 }
      try await lane.request("device:" + tokens[1], payload: Self.payload("other"))
      await lane.eventually("the other device has its own") { try await lane.waiting(tokens[1]) == 1 }
      await lane.eventually("the lane is ready") { lane.health.isReady }
    }
  }

  /// A device that is not registered when its request is looked up, and is when the one before it has come to its end.
  @Test func whoComesMeanwhileIsShownWhatTheExtensionsLeave() async throws {
    let work = Marking()
    let source = Self.source(work)
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.connect(token)
      try await lane.request("device:" + token, payload: Self.payload("wait"))
      await lane.eventually("the first one is called") { await work.calls.count == 1 }
      let device = RedisArgument.text(TransformFixture.keys.device(token))
      try await lane.probe.command("RENAME", device, "gone")
      try await lane.request("device:" + token, payload: Self.payload("second"))
      await lane.eventually("both are taken") { lane.taken == 2 }
      func lag() -> Double { lane.metric("carillon_lag_seconds{topic=\"\(lane.topics.requests)\",partition=\"0\"}") }
      let taken = lag()
      await lane.eventually("they wait for longer than a guess counts, which is a second") { lag() > taken + 2.5 }
      try await lane.probe.command("RENAME", "gone", device)
      await work.open()
      #expect(try await Self.bodies(lane, of: token, count: 2) == ["seen: wait", "seen: second"])
    }
  }

  private struct Language: ImmediateExtension {
    func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure? {
      content.subtitle = request.locale ?? "none"
      return nil
    }
    var usesLocale: Bool { true }
    func variant(_ locale: String?) -> String { locale ?? "" }
  }

  @Test func aPersonsRequestIsCalledOnceHoweverManyDevicesAndLanguagesThereAre() async throws {
    let work = Marking()
    let source = Self.source(work, [ExtensionChain.Step(name: "texts", work: Language())])
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2), (1, 2)])
      try await lane.register(tokens, for: "ada", locales: [tokens[0]: "de_AT", tokens[1]: "fr_FR", tokens[2]: "de_AT"])
      for token in tokens { try await lane.connect(token) }
      try await lane.request("user:ada", payload: Self.payload("hello"))
      try await lane.request("device:" + tokens[1], payload: Self.payload("bonjour"))
      let shown = try await Self.shown(lane, count: 5)
      #expect(shown[tokens[0]] == ["seen: hello de_AT"] && shown[tokens[2]] == ["seen: hello de_AT"])
      #expect(shown[tokens[1]]?.sorted() == ["seen: bonjour fr_FR", "seen: hello fr_FR"], "two targets, whose order is anything")
      #expect(shown[tokens[3]] == ["seen: hello none"])
      #expect(await work.calls.count == 2)
    }
  }

  /// What a lane has delivered to each device: body and subtitle.
  private static func shown(_ lane: TransformFixture, count: Int) async throws -> [String: [String]] {
    var shown: [String: [String]] = [:]
    for record in try await lane.kafka.records(of: lane.topics.deliveries, count: count) {
      try (record.value ?? []).withUnsafeBytes { bytes in
        let alert = try JSONValue(parsing: try #require(DeliveryRecord(bytes)?.entry?.payload))["aps"]?["alert"]
        let said = "\(alert?["body"]?.stringValue ?? "") \(alert?["subtitle"]?.stringValue ?? "")"
        shown[record.device ?? "", default: []].append(said)
      }
    }
    return shown
  }

  /// A person with four devices, of which two have the same language.
  private static func withPerson(
    _ source: InForce<ExtensionsFile>, _ body: @escaping @Sendable (TransformFixture, [String]) async throws -> Void
  ) async throws {
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2), (1, 2)])
      try await lane.register(tokens, for: "ada", locales: [tokens[0]: "de", tokens[1]: "fr", tokens[2]: "de", tokens[3]: "it"])
      for token in tokens { try await lane.connect(token) }
      try await body(lane, tokens)
    }
  }

  @Test func oneThatAsksForItIsCalledOnceForEachLocaleBehindThoseThatAreCalledOnce() async throws {
    let (first, second) = (Marking(), Marking())
    try await Self.withPerson(Self.source([Self.step(first), Self.step(second, per: .locale)])) { lane, tokens in
      try await lane.request("user:ada", payload: Self.payload("hello"))
      try await lane.request("device:" + tokens[1], payload: Self.payload("bonjour"))
      let shown = try await Self.shown(lane, count: 5)
      #expect(shown[tokens[0]] == ["seen: seen: hello de"] && shown[tokens[2]] == ["seen: seen: hello de"])
      #expect(shown[tokens[1]]?.sorted() == ["seen: seen: bonjour fr", "seen: seen: hello fr"])
      #expect(shown[tokens[3]] == ["seen: seen: hello it"])
      #expect(await first.calls.count == 2)
      #expect(await second.calls.count == 4, "three languages of the person, and one of the device")
      #expect(await second.keys.count == 4, "each can tell whether it was asked before")
    }
  }

  @Test func oneThatAsksForItIsCalledForEachDevice() async throws {
    let work = Marking()
    try await Self.withPerson(Self.source([Self.step(work, per: .device), ExtensionChain.Step(name: "texts", work: Mark())])) {
      lane, tokens in
      try await lane.request("user:ada", payload: Self.payload("hello"))
      let shown = try await Self.shown(lane, count: 4)
      for (token, locale) in zip(tokens, ["de", "fr", "de", "it"]) {
        #expect(shown[token] == ["marked seen: hello \(locale) \(token.suffix(2))"])
      }
      #expect(await work.calls.count == 4)
      #expect(await work.keys.count == 4)
    }
  }

  @Test func allAreCalledForHoweverFewCallsItTakesAtATime() async throws {
    let work = Marking()
    try await Self.withPerson(Self.source([Self.step(work, per: .device, concurrency: 1)])) { lane, tokens in
      try await lane.request("user:ada", payload: Self.payload("hello"))
      let shown = try await Self.shown(lane, count: 4)
      #expect(shown.values.allSatisfy { $0.count == 1 && $0[0].hasPrefix("seen: hello ") }, "\(shown)")
      #expect(await work.calls.count == 4)
    }
  }

  /// Redis takes nothing that writes while the second one is at work: the request is started again.
  @Test func theFirstIsNotCalledAgainWhereTheRequestIsStartedAgainBeforeTheSecondHasAnswered() async throws {
    let (first, second) = (Marking(), Marking())
    try await Self.withPerson(Self.source([Self.step(first), Self.step(second, per: .locale)])) { lane, tokens in
      await first.open()
      try await lane.request("user:ada", payload: Self.payload("wait"))
      await lane.eventually("the second one is called") { await second.calls.count == 3 }
      try await lane.probe.command("CONFIG", "SET", "maxmemory", "1")
      await second.open()
      await lane.eventually("the lane knows that Redis is not as it should be") { !lane.health.isReady }
      try await lane.probe.command("CONFIG", "SET", "maxmemory", "0")
      await lane.eventually("it is judged") { lane.count(.addressed) == 1 }
      #expect(await first.calls.count == 1)
      #expect(await second.calls.count == 3)
    }
  }

  private struct Mark: ImmediateExtension {
    func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure? {
      content.body = "marked \(content.body ?? "")"
      return nil
    }
  }

  /// A bucket is lost while devices are called for, so that the lane reads the request again.
  @Test func whatWasAnsweredForADeviceIsNotAskedAgainWhereTheRequestIsReadAgain() async throws {
    let work = Marking()
    try await Self.withPerson(Self.source([Self.step(work, per: .device)])) { lane, tokens in
      try await lane.request("user:ada", payload: Self.payload("wait"))
      await lane.eventually("all are called") { await work.calls.count == 4 }
      try await lane.lose(0)
      await work.open()
      await lane.eventually("the lane knows that Redis is not as it should be") { !lane.health.isReady }
      try await lane.putBack(0)
      await lane.eventually("it is judged") { lane.count(.addressed) == 1 }
      #expect(await work.calls.count == 4)
      let shown = try await Self.shown(lane, count: 4)
      for (token, locale) in zip(tokens, ["de", "fr", "de", "it"]) {
        #expect(shown[token] == ["seen: wait \(locale) \(token.suffix(2))"])
      }
    }
  }

  @Test func aDeviceThatComesMeanwhileIsShownWhatTheOthersGotBefore() async throws {
    let (first, second) = (Marking(), Marking())
    try await Self.withPerson(Self.source([Self.step(first), Self.step(second, per: .locale)])) { lane, tokens in
      try await lane.request("user:ada", payload: Self.payload("wait"))
      await lane.eventually("the first one is called") { await first.calls.count == 1 }
      await first.open()
      await lane.eventually("and those for the locales") { await second.calls.count == 3 }
      let late = TransformFixture.tokens(in: [(2, 1)])
      try await lane.register(late, for: "ada", locales: [late[0]: "es"], after: 4)
      try await lane.connect(late[0])
      await second.open()
      let shown = try await Self.shown(lane, count: 5)
      #expect(shown[late[0]] == ["seen: wait "], "nobody has asked for its language")
      #expect(shown[tokens[3]] == ["seen: seen: wait it"])
      #expect(lane.metric(#"carillon_transform_extensions_total{state="overloaded"}"#) == 1)
    }
  }

  @Test func whatIsUnderWayWhenALaneEndsIsLeftToTheNextOwner() async throws {
    let work = Marking()
    let source = Self.source(work)
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.request("device:" + token, payload: Self.payload("wait"))
      await lane.eventually("it is called") { await work.calls.count == 1 }
      await lane.drain(withinMilliseconds: 0)
      await lane.eventually("work on it has stopped") { await work.cancelled == 1 }
      #expect(try await lane.committed(lane.topics.requests) == 0)
      #expect(lane.count(.queued) == 0)
    }
  }

  @Test func whatIsUnderWayWhenItsPartitionIsGivenUpIsLeftToTheNextOwner() async throws {
    let work = Marking()
    let source = Self.source(work)
    try await TransformFixture.with({ $0.extensions = source }, partitions: 2, sessionMilliseconds: 6_000) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      var published = 0
      func publish() async throws {
        for (partition, token) in tokens.enumerated() {
          try await lane.request("device:" + token, payload: Self.payload("wait \(partition)"), partition: Int32(partition))
        }
        published += tokens.count
      }
      try await publish()
      await lane.eventually("both are called") { await work.calls.count >= published }
      try await lane.beside(1) { _ in
        await lane.eventually("work on one of them has stopped") {
          guard lane.count(.revoked) == 0 else { return true }
          // On a machine that stands still the time for a call may end first. Then others are called.
          if await work.calls.count >= published, await work.waits == 0 {
            await work.close()
            try await publish()
          }
          return false
        }
        await lane.eventually("the next owner calls") { await work.calls.count > published }
      }
    }
  }
}

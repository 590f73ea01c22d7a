import EventLoop
import Extensions
import JSON
import Notifications
import Store

/// Where mutable notifications pass the service extensions of their application: first those that may take their time, once for a request;
/// then those that are done at once, for each locale where that matters. Loop-confined.
final class ExtensionStage: Stage {
  private let source: ExtensionsSource
  /// What `source` had last: a notification passes one file's extensions, never half of two.
  private var file: ExtensionsSource.Version
  private let rules: ContentRules
  private let locales: Locales
  private let calls: ExtensionCalls
  private let writer: ExtendedEntryWriter
  /// Requests whose extensions take their time.
  private var called: [Flow.Parked: Called] = [:]
  /// Those that have passed them in this turn: what follows is asked for together.
  private var ready: [(record: Flow.Parked, content: RequestContent)] = []
  /// Requests that wait for the locales of their devices, and those of them that are not asked for yet.
  private var waiting: [Flow.Parked: Waiting] = [:]
  private var unasked: [Flow.Parked] = []
  private var turnEnd: TurnEnd?
  weak var owner: (any StageOwner)?

  init(on loop: EventLoop, _ source: ExtensionsSource, _ rules: ContentRules, _ locales: Locales, _ metrics: TransformMetrics) {
    self.source = source
    self.rules = rules
    self.locales = locales
    writer = ExtendedEntryWriter(metrics)
    calls = ExtensionCalls(on: loop)
    file = source.current
    turnEnd = loop.onTurnEnd { [unowned self] in goOn() }
  }

  private struct Called {
    let passage: ExtensionPassage
    let content: RequestContent
  }

  private struct Waiting {
    let token: ArenaSpan
    let content: RequestContent
    let chain: ExtensionChain
  }

  var isActive: Bool { !source.isEmpty }

  func close() async {
    turnEnd?.close()
    await calls.close()
  }

  func take(_ record: Flow.Parked, _ content: RequestContent) -> StageAnswer {
    guard content.mutability != .fixed else { return .pass(content) }
    // What has passed them before goes on with the chain that it had then.
    if let called = content.called { return takeImmediate(record, content, called.chain) }
    if source.update(&file) { calls.retire() }
    guard let chain = file.extensions.chain(application: content.entry.application) else { return .pass(content) }
    guard !chain.called.isEmpty, content.mutability == .mutable else { return takeImmediate(record, content, chain) }
    return call(record, content, chain)
  }

  func drop(_ records: Set<Flow.Parked>) {
    for record in records {
      waiting[record] = nil
      called.removeValue(forKey: record)?.passage.cancel()
    }
    if !ready.isEmpty { ready.removeAll { records.contains($0.record) } }
  }

  // MARK: Extensions that take their time

  private func call(_ record: Flow.Parked, _ content: RequestContent, _ chain: ExtensionChain) -> StageAnswer {
    let passage = published(content) { entry, payload in
      ExtensionPassage(
        ExtensionRun(MutableContent(payload: payload)), bytes: entry.payload.count, of: ExtensionRequest(entry, locale: nil),
        through: chain.called, within: calls.budget(lifetime: content.entry.end * 1000 - WallClock.milliseconds()), rules, calls)
    }
    guard let passage else { return .pass(content) }
    var content = content
    let run = passage.start { [unowned self] run in
      guard let called = called.removeValue(forKey: record) else { return }
      var content = called.content
      content.called = CalledExtensions(chain, run)
      if case .pass(let content) = takeImmediate(record, content, chain) { ready.append((record, content)) }
    }
    guard let run else {
      called[record] = Called(passage: passage, content: content)
      return .later
    }
    content.called = CalledExtensions(chain, run)
    return takeImmediate(record, content, chain)
  }

  /// The turn ends: those whose extensions have come to their end go on together.
  private func goOn() {
    if !unasked.isEmpty { flush() }
    guard !ready.isEmpty else { return }
    let passed = ready
    ready.removeAll(keepingCapacity: true)
    owner?.passed(passed)
  }

  // MARK: Extensions that are done at once

  private func takeImmediate(_ record: Flow.Parked, _ content: RequestContent, _ chain: ExtensionChain) -> StageAnswer {
    guard chain.usesLocale, content.mutability == .mutable else { return .pass(pass(content, chain, locale: nil)) }
    switch content.receiver {
    case .person:
      // Its devices are not known yet, and each may have a locale of its own.
      var content = content
      let published = content
      content.variants = ContentVariants(key: chain.variant) { [self] in pass(published, chain, locale: $0) }
      return .pass(content)
    case .device(let token):
      waiting[record] = Waiting(token: token, content: content, chain: chain)
      unasked.append(record)
      return .later
    }
  }

  /// Asks for the locales of all devices that have come up together.
  func flush() {
    guard !unasked.isEmpty else { return }
    let records = unasked.filter { waiting[$0] != nil }
    unasked.removeAll(keepingCapacity: true)
    guard !records.isEmpty else { return }
    locales.read(records.compactMap { record in waiting[record].map { ($0.token, $0.content.arena) } }) { [weak self] answer in
      self?.came(answer, of: records)
    }
  }

  private func came(_ answer: Result<[String?], StoreError>, of records: [Flow.Parked]) {
    switch answer {
    case .success(let locales):
      var passed: [(record: Flow.Parked, content: RequestContent)] = []
      for (record, locale) in zip(records, locales) {
        guard let request = waiting.removeValue(forKey: record) else { continue }
        passed.append((record, pass(request.content, request.chain, locale: locale)))
      }
      if !passed.isEmpty { owner?.passed(passed) }
    case .failure(let error):
      for record in records {
        if let request = waiting.removeValue(forKey: record) { owner?.failed(record, request.content, error) }
      }
    }
  }

  private func pass(_ content: RequestContent, _ chain: ExtensionChain, locale: String?) -> RequestContent {
    let run = published(content) { entry, payload in
      var run = content.called?.run ?? ExtensionRun(MutableContent(payload: payload))
      guard content.mutability == .mutable else {
        for step in chain.steps { run.skip(step, Self.suspicion) }
        return run
      }
      run.pass(chain.immediate, of: ExtensionRequest(entry, locale: locale), rules)
      return run
    }
    return run.map { writer.write($0, content) } ?? content
  }

  private static let suspicion = ExtensionFailure("it was not called, since a process has ended over the request")

  /// Lends the entry of a request and its payload; both were checked when the request was read.
  private func published<Result>(_ content: RequestContent, _ body: (DeliveryEntryView, JSONValue) -> Result) -> Result? {
    content.arena.bytes.withUnsafeBytes { arena in
      guard let entry = DeliveryEntryView(arena[content.entry.span]), let payload = try? JSONValue(parsing: entry.payload) else {
        return nil
      }
      return body(entry, payload)
    }
  }
}

/// What the extensions that take their time have made of a request. It is kept as long as the request is in flight, so that they are not
/// called again where the request is started again.
final class CalledExtensions {
  /// The extensions of the file that was in force then.
  let chain: ExtensionChain
  let run: ExtensionRun

  init(_ chain: ExtensionChain, _ run: ExtensionRun) { (self.chain, self.run) = (chain, run) }
}

extension ExtensionRequest {
  init(_ entry: DeliveryEntryView, locale: String?) {
    self.init(
      id: entry.id, identifier: entry.withIdentifier { String(decoding: $0, as: UTF8.self) },
      application: String(decoding: entry.application, as: UTF8.self), expiration: entry.expiration, locale: locale)
  }
}

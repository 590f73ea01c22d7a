import Extensions
import JSON
import Notifications
import Store

/// Where mutable notifications pass the service extensions of their application. Loop-confined.
final class ExtensionStage: Stage {
  private let source: ExtensionsSource
  /// What `source` had last: a notification passes one file's extensions, never half of two.
  private var file: ExtensionsSource.Version
  private let rules: ContentRules
  private let locales: Locales
  private let metrics: TransformMetrics
  /// Requests that wait for the locales of their devices, and those of them that are not asked for yet.
  private var waiting: [Flow.Parked: Waiting] = [:]
  private var unasked: [Flow.Parked] = []
  private var states = ByteBuffer()
  private var entry = ByteBuffer(capacity: 8192)
  weak var owner: (any StageOwner)?

  init(_ source: ExtensionsSource, _ rules: ContentRules, _ locales: Locales, _ metrics: TransformMetrics) {
    (self.source, self.rules, self.locales, self.metrics) = (source, rules, locales, metrics)
    file = source.current
  }

  private struct Waiting {
    let token: ArenaSpan
    let content: RequestContent
    let chain: ExtensionChain
  }

  var isActive: Bool { !source.isEmpty }

  func take(_ record: Flow.Parked, _ content: RequestContent) -> StageAnswer {
    guard content.mutability != .fixed else { return .pass(content) }
    source.update(&file)
    guard let chain = file.extensions.chain(application: content.entry.application) else { return .pass(content) }
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
      for record in records where waiting.removeValue(forKey: record) != nil { owner?.failed(record, error) }
    }
  }

  func drop(_ records: Set<Flow.Parked>) { for record in records { waiting[record] = nil } }

  private func pass(_ content: RequestContent, _ chain: ExtensionChain, locale: String?) -> RequestContent {
    let run = content.arena.bytes.withUnsafeBytes { arena -> ExtensionRun? in
      // Both were checked when the request was read.
      guard let entry = DeliveryEntryView(arena[content.entry.span]), let payload = try? JSONValue(parsing: entry.payload) else {
        return nil
      }
      let request = ExtensionRequest(entry, locale: locale)
      var run = ExtensionRun(MutableContent(payload: payload))
      for step in chain.steps {
        if content.mutability == .mutable { run.pass(step, of: request, rules) } else { run.skip(step, Self.suspicion) }
      }
      return run
    }
    return run.map { write($0, content) } ?? content
  }

  private static let suspicion = ExtensionFailure("it was not called, since a process has ended over the request")

  /// Writes the entry with what the extensions have left, and what became of it at each.
  private func write(_ run: ExtensionRun, _ content: RequestContent) -> RequestContent {
    states.reset()
    for outcome in run.outcomes {
      metrics.count(outcome.state)
      ExtensionStates.append(outcome.state, name: outcome.name, to: &states)
    }
    let isWritten = content.arena.bytes.withUnsafeBytes { arena in
      guard let published = DeliveryEntryView(arena[content.entry.span]) else { return false }
      return write(published, run.written)
    }
    guard isWritten else { return content }
    var content = content
    content.entry.span = entry.withUnsafeBytes { content.arena.keep($0) }
    content.extensions.count = run.outcomes.count
    content.extensions.span = content.arena.keep { arena in
      for outcome in run.outcomes {
        JournalEntry.PassedExtension(name: outcome.name, state: outcome.state, milliseconds: outcome.microseconds / 1000)
          .append(to: &arena)
      }
    }
    return content
  }

  /// - Parameter written: nil: the payload stays that of the entry.
  private func write(_ published: DeliveryEntryView, _ written: WrittenContent?) -> Bool {
    entry.reset()
    if let written { return written.withPayload { append(published, $0, $1) } }
    guard let facts = try? PayloadFacts(checking: published.payload) else { return false }
    return append(published, published.payload, facts)
  }

  private func append(_ published: DeliveryEntryView, _ payload: UnsafeRawBufferPointer, _ facts: PayloadFacts) -> Bool {
    states.withUnsafeBytes { states in
      (try? DeliveryEntry(published, payload: payload, facts, extensions: states).append(to: &entry)) != nil
    }
  }
}

extension ExtensionRequest {
  init(_ entry: DeliveryEntryView, locale: String?) {
    self.init(
      id: entry.id, identifier: entry.withIdentifier { String(decoding: $0, as: UTF8.self) },
      application: String(decoding: entry.application, as: UTF8.self), expiration: entry.expiration, locale: locale)
  }
}

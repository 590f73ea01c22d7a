import Extensions
import JSON
import Notifications
import Store

/// Where mutable notifications pass the service extensions of their application. Loop-confined.
final class ExtensionStage: Stage {
  private let source: ExtensionsSource
  /// What `source` had when this turn began: a notification passes one file's extensions, never half of two.
  private var file: ExtensionsSource.Version
  private let rules: ContentRules
  private let metrics: TransformMetrics
  private var states = ByteBuffer()
  private var entry = ByteBuffer(capacity: 8192)
  weak var owner: (any StageOwner)?

  init(_ source: ExtensionsSource, _ rules: ContentRules, _ metrics: TransformMetrics) {
    (self.source, self.rules, self.metrics) = (source, rules, metrics)
    file = source.current
  }

  var isActive: Bool {
    source.update(&file)
    return !file.extensions.isEmpty
  }

  func take(_ record: Flow.Parked, _ content: RequestContent) -> StageAnswer {
    guard content.isMutable, let chain = file.extensions.chain(application: content.entry.application), let run = run(chain, content) else {
      return .pass(content)
    }
    return .pass(write(run, content))
  }

  func drop(_ records: Set<Flow.Parked>) {}

  private func run(_ chain: ExtensionChain, _ content: RequestContent) -> ExtensionRun? {
    content.arena.bytes.withUnsafeBytes { arena in
      // Both were checked when the request was read.
      guard let entry = DeliveryEntryView(arena[content.entry.span]), let payload = try? JSONValue(parsing: entry.payload) else {
        return nil
      }
      let request = ExtensionRequest(entry)
      var run = ExtensionRun(MutableContent(payload: payload))
      for step in chain.steps { run.pass(step, of: request, rules) }
      return run
    }
  }

  /// Writes the entry with what the extensions have left, and what became of it at each.
  private func write(_ run: ExtensionRun, _ content: RequestContent) -> RequestContent {
    states.reset()
    for outcome in run.outcomes {
      metrics.count(outcome.state)
      ExtensionStates.append(outcome.state, name: outcome.name, to: &states)
    }
    let isWritten = content.arena.bytes.withUnsafeBytes { arena in
      guard let published = DeliveryEntryView(arena[content.entry.span]) else { return false }
      return write(published, run.written?.payload)
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

  /// - Parameter payload: nil: that of the entry.
  private func write(_ published: DeliveryEntryView, _ payload: [UInt8]?) -> Bool {
    entry.reset()
    return states.withUnsafeBytes { states in
      guard let payload else { return append(published, published.payload, states) }
      return payload.withUnsafeBytes { append(published, $0, states) }
    }
  }

  private func append(_ published: DeliveryEntryView, _ payload: UnsafeRawBufferPointer, _ states: UnsafeRawBufferPointer) -> Bool {
    guard let facts = try? PayloadFacts(checking: payload) else { return false }
    return (try? DeliveryEntry(published, payload: payload, facts, extensions: states).append(to: &entry)) != nil
  }
}

extension ExtensionRequest {
  init(_ entry: DeliveryEntryView) {
    self.init(
      id: entry.id, identifier: entry.withIdentifier { String(decoding: $0, as: UTF8.self) },
      application: String(decoding: entry.application, as: UTF8.self), expiration: entry.expiration)
  }
}

import Extensions
import Notifications
import Store
import Worker

/// Writes a request's content after its service extensions, and how each ended.
final class ExtendedEntryWriter {
  private let metrics: TransformMetrics
  private let logger: Logger
  private var states = ByteBuffer()
  private var entry = ByteBuffer(capacity: 8192)

  init(_ metrics: TransformMetrics, _ logger: Logger) { (self.metrics, self.logger) = (metrics, logger) }

  /// The content after a run; unchanged if its entry cannot be written.
  func write(_ run: ExtensionRun, _ content: RequestContent) -> RequestContent {
    states.reset()
    for outcome in run.outcomes {
      metrics.count(outcome.state)
      ExtensionStates.append(outcome.state, name: outcome.name, to: &states)
    }
    if content.called?.isGuess != true { log(run, content) }
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

  /// The log's writer limits the log: an extension may fail for each request.
  private func log(_ run: ExtensionRun, _ content: RequestContent) {
    guard run.outcomes.contains(where: { $0.failure != nil }) else { return }
    content.withPublished { published in
      let logger = logger.with(trace: published.traceparent)
      for outcome in run.outcomes {
        guard let failure = outcome.failure else { continue }
        logger.warning(
          "a service extension has failed",
          [
            "extension": outcome.name, "application": String(decoding: published.application, as: UTF8.self), "id": "\(published.id)",
            "state": "\(outcome.state.word)", "reason": failure.reason,
          ])
      }
    }
  }

  /// - Parameter written: nil: the payload stays that of the entry.
  private func write(_ published: DeliveryEntryView, _ written: WrittenContent?) -> Bool {
    entry.reset()
    if let written {
      return written.attachments.withUnsafeBytes { attachments in
        written.withPayload { append(published, $0, $1, attachments) }
      }
    }
    guard let facts = try? PayloadFacts(checking: published.payload, of: published.pushType) else { return false }
    return append(published, published.payload, facts, .empty)
  }

  private func append(
    _ published: DeliveryEntryView, _ payload: UnsafeRawBufferPointer, _ facts: PayloadFacts, _ attachments: UnsafeRawBufferPointer
  ) -> Bool {
    states.withUnsafeBytes { states in
      (try? DeliveryEntry(published, payload: payload, facts, extensions: states, attachments: attachments).append(to: &entry)) != nil
    }
  }
}

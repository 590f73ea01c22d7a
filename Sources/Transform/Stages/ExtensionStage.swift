import Extensions
import JSON
import Notifications
import Store

/// Has mutable notifications pass the fast service extensions of their application, once for each locale if that matters.
final class ExtensionStage: Stage {
  private let extensions: LaneExtensions
  private let rules: ContentRules
  private let facts: DeviceFacts
  private let writer: ExtendedEntryWriter
  /// Requests that wait for the locales of their devices, and the ones whose locales are not asked for yet.
  private var waiting: [ParkedRecord: Waiting] = [:]
  private var unasked: [ParkedRecord] = []
  weak var owner: (any StageOwner)?

  init(_ extensions: LaneExtensions, _ rules: ContentRules, _ facts: DeviceFacts, _ writer: ExtendedEntryWriter) {
    (self.extensions, self.rules, self.facts, self.writer) = (extensions, rules, facts, writer)
  }

  private struct Waiting {
    let token: ArenaSpan
    let content: RequestContent
    let chain: ExtensionChain
  }

  var isActive: Bool { !extensions.isEmpty }

  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
    guard content.mutability != .fixed else { return .pass(content) }
    // A request that has passed the slow extensions continues with the chain that it had there.
    guard let chain = content.called?.chain ?? extensions.chain(application: content.entry.application) else {
      return .pass(content)
    }
    guard content.mutability == .mutable else { return .pass(pass(content, chain)) }
    switch content.receiver {
    case .device(let token) where !chain.usesLocale: return .pass(pass(content, chain, for: token, nil))
    case .set where !chain.usesLocale && chain.scope == .request: return .pass(pass(content, chain))
    case .set:
      // The devices are not known yet, and each may have its own locale.
      var content = content
      let published = content
      content.variants = ContentVariants(
        usesLocale: chain.usesLocale,
        key: { device in
          published.called?.variant(of: published.arena.text(device.token), device.locale) ?? Name(chain.texts(device.locale))
        }, make: { [self] in pass(published, chain, for: $0.token, $0.locale) })
      return .pass(content)
    case .device(let token):
      waiting[record] = Waiting(token: token, content: content, chain: chain)
      unasked.append(record)
      return .later
    }
  }

  func drop(_ records: Set<ParkedRecord>) { for record in records { waiting[record] = nil } }

  /// Asks for the locales of the devices of this turn's requests, in one go.
  func flush() {
    guard !unasked.isEmpty else { return }
    let records = unasked.filter { waiting[$0] != nil }
    unasked.removeAll(keepingCapacity: true)
    guard !records.isEmpty else { return }
    facts.read(records.compactMap { record in waiting[record].map { ($0.token, $0.content.arena) } }) { [weak self] answer in
      self?.came(answer, of: records)
    }
  }

  private func came(_ answer: Result<[DeviceFacts.Device], StoreError>, of records: [ParkedRecord]) {
    switch answer {
    case .success(let devices):
      var passed: [(record: ParkedRecord, content: RequestContent)] = []
      for (record, device) in zip(records, devices) {
        guard let request = waiting.removeValue(forKey: record) else { continue }
        passed.append((record, pass(request.content, request.chain, for: request.token, device.locale)))
      }
      if !passed.isEmpty { owner?.passed(passed) }
    case .failure(let error):
      for record in records where waiting.removeValue(forKey: record) != nil { owner?.failed(record, error) }
    }
  }

  /// - Parameter device: the token of the device that gets the content, if that matters.
  private func pass(
    _ content: RequestContent, _ chain: ExtensionChain, for device: ArenaSpan? = nil, _ locale: String? = nil
  ) -> RequestContent {
    let run = content.withPublished { entry -> ExtensionRun? in
      guard content.mutability == .mutable else {
        return entry.content.map { content in
          var run = ExtensionRun(content)
          for step in chain.steps { run.skip(step, Self.suspicion) }
          return run
        }
      }
      let request = ExtensionRequest(entry, locale: locale)
      let called = content.called?.run(for: device.map { content.arena.text($0) } ?? "", locale, of: request, rules)
      guard var run = called ?? entry.content.map(ExtensionRun.init) else { return nil }
      run.pass(chain.immediate, of: request, rules)
      return run
    }
    return run.map { writer.write($0, content) } ?? content
  }

  private static let suspicion = ExtensionFailure("it was not called, since a process has ended over the request")
}

extension RequestContent {
  /// Lends the delivery entry, which was checked when the request was read.
  func withPublished<Result>(_ body: (DeliveryEntryView) -> Result?) -> Result? {
    arena.bytes.withUnsafeBytes { DeliveryEntryView($0[entry.span]).flatMap(body) }
  }
}

extension DeliveryEntryView {
  /// The published payload, which was checked when the request was read.
  var content: MutableContent? { (try? JSONValue(parsing: payload)).map { MutableContent(payload: $0) } }
}

extension ExtensionRequest {
  init(_ entry: DeliveryEntryView, locale: String?) {
    self.init(
      id: entry.id, identifier: entry.withIdentifier { Name($0) }, application: Name(entry.application), expiration: entry.expiration,
      locale: locale,
      traceparent: entry.traceparent.isEmpty ? nil : String(decoding: entry.traceparent, as: UTF8.self))
  }
}

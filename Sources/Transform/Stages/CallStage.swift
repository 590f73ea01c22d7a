import EventLoop
import Extensions
import JSON
import Notifications
import Store

/// Has mutable notifications pass the slow service extensions of their application.
///
/// Some are called once for a request. Others are called for each locale, or each device, of its recipients. Redis is asked first: earlier
/// results are used again, and no extension is called for a notification that no device would show.
final class CallStage: Stage {
  private let loop: EventLoop
  private let extensions: LaneExtensions
  private let rules: ContentRules
  /// Nil if no results are looked up or remembered.
  private let results: Results?
  private let calls: ExtensionCalls
  private let tools: VariantPassages.Tools
  private var requests: [ParkedRecord: Request] = [:]
  /// Requests that are not looked up yet.
  private var unasked: [ParkedRecord] = []
  /// Requests that have passed in this turn. They go on together.
  private var ready: [(record: ParkedRecord, content: RequestContent)] = []
  /// Requests that wait for a place.
  private var held: ArraySlice<ParkedRecord> = []
  /// How many requests have a place that they have waited for.
  private var begun = 0
  private var turnEnd: TurnEnd?
  weak var owner: (any StageOwner)?

  private struct Request {
    let content: RequestContent
    let chain: ExtensionChain
    let place: Results.Place?
    /// The request has the place that it has waited for.
    var isBegun = false
    /// Cancels the calls of extensions.
    var cancel: () -> Void = {}
  }

  /// - Parameter results: nil during a rebuild. Then no results are looked up, and no call is refused: a rebuild has time.
  init(
    on loop: EventLoop, _ extensions: LaneExtensions, _ rules: ContentRules, _ results: Results?, _ facts: DeviceFacts
  ) {
    self.loop = loop
    self.extensions = extensions
    self.rules = rules
    self.results = results
    var bounds = ExtensionCalls.Bounds()
    bounds.hasBreakers = results != nil
    calls = ExtensionCalls(on: loop, bounds: bounds)
    tools = VariantPassages.Tools(
      facts: facts, results: results, calls: calls, rules: rules,
      turns: VariantPassages.Turns())
    turnEnd = loop.onTurnEnd { [unowned self] in goOn() }
  }

  var isActive: Bool { !extensions.isEmpty }

  func close() async {
    turnEnd?.close()
    for request in requests.values { request.cancel() }
    requests.removeAll()
    await calls.close()
  }

  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
    if extensions.update() { calls.retire() }
    guard content.mutability == .mutable, content.called?.isComplete != true else { return .pass(content) }
    guard let chain = content.called?.chain ?? extensions.chain(application: content.entry.application),
      !chain.called.isEmpty || !chain.varied.isEmpty
    else { return .pass(content) }
    let place = results.map { $0.place(of: Results.Request(content)) }
    requests[record] = Request(content: content, chain: chain, place: place)
    unasked.append(record)
    return .later
  }

  func drop(_ records: Set<ParkedRecord>) {
    for record in records { forget(record)?.cancel() }
    if !ready.isEmpty { ready.removeAll { records.contains($0.record) } }
  }

  // MARK: Earlier results

  func flush() {
    guard !unasked.isEmpty else { return }
    let records = unasked
    unasked.removeAll(keepingCapacity: true)
    for record in records { look(record) }
  }

  private func look(_ record: ParkedRecord) {
    guard let request = requests[record] else { return }
    guard let results, let place = request.place else { return hold(record) }
    results.look(Results.Request(request.content), at: place) { [weak self] answer in
      guard let self, let request = requests[record] else { return }
      switch answer {
      case .success(.remembered(let bytes)):
        let run = request.content.withPublished { entry in
          entry.content.flatMap { ExtensionRun(bytes, of: request.chain, published: $0, self.rules) }
        }
        if let run { vary(record, run, within: budget(request)) } else { begin(record, request) }
      case .success(.settled):
        let run = request.content.withPublished { entry -> ExtensionRun? in
          guard var run = entry.content.map(ExtensionRun.init) else { return nil }
          run.pass(request.chain.called, of: ExtensionRequest(entry, locale: nil), self.rules, callingNone: .settled)
          return run
        }
        if let run {
          passed(record, CalledExtensions(request.chain, run, at: loop.milliseconds(), isGuess: true))
        } else {
          begin(record, request)
        }
      case .success(.open): begin(record, request)
      case .failure(let error):
        _ = forget(record)
        owner?.failed(record, error)
      }
    }
  }

  // MARK: Calls

  private func budget(_ request: Request) -> CallBudget {
    calls.budget(lifetime: request.content.entry.end * 1000 - WallClock.milliseconds())
  }

  private func begin(_ record: ParkedRecord, _ request: Request) {
    let budget = budget(request)
    // The request was started again before all extensions were called.
    if let called = request.content.called { return vary(record, called.run, within: budget) }
    let passage = request.content.withPublished { entry in
      entry.content.map { content in
        ExtensionPassage(
          ExtensionRun(content), bytes: entry.payload.count, of: ExtensionRequest(entry, locale: nil), through: request.chain.called,
          within: budget, rules, calls)
      }
    }
    // There is a payload: it was checked when the request was read.
    guard let passage else { return vary(record, ExtensionRun(MutableContent(payload: .null)), within: budget) }
    requests[record]?.cancel = passage.cancel
    if let run = passage.start(whenDone: { [weak self] in self?.called(record, $0, within: budget) }) {
      called(record, run, within: budget)
    }
  }

  /// The extensions that are called once for a request have been called.
  private func called(_ record: ParkedRecord, _ run: ExtensionRun, within budget: CallBudget) {
    guard let request = requests[record] else { return }
    if let place = request.place, !request.chain.called.isEmpty { results?.remember(run.bytes(of: request.chain), at: place) }
    vary(record, run, within: budget)
  }

  /// Calls the extensions that are called for some of the recipients, if there are any.
  private func vary(_ record: ParkedRecord, _ run: ExtensionRun, within budget: CallBudget) {
    guard let request = requests[record] else { return }
    let chain = request.chain
    guard !chain.varied.isEmpty else { return passed(record, CalledExtensions(chain, run, at: loop.milliseconds())) }
    if request.content.called == nil {
      var content = request.content
      content.called = CalledExtensions(chain, run, nil, at: loop.milliseconds())
      owner?.keep(record, content)
    }
    let passages = VariantPassages(tools, request.content, chain, run, within: budget, at: request.place)
    requests[record]?.cancel = passages.cancel
    passages.start { [weak self] result in
      guard let self else { return }
      switch result {
      case .success(let runs): passed(record, CalledExtensions(chain, run, runs, at: loop.milliseconds()))
      case .failure(let error):
        _ = forget(record)
        owner?.failed(record, error)
      }
    }
  }

  private func passed(_ record: ParkedRecord, _ called: CalledExtensions) {
    guard let request = forget(record) else { return }
    var content = request.content
    content.called = called
    ready.append((record, content))
  }

  private func forget(_ record: ParkedRecord) -> Request? {
    guard let request = requests.removeValue(forKey: record) else { return nil }
    if request.isBegun { begun -= 1 }
    return request
  }

  // MARK: Rebuild

  /// Has a request wait for a place, while Redis is rebuilt.
  private func hold(_ record: ParkedRecord) {
    held.append(record)
    beginHeld()
  }

  private func beginHeld() {
    while let record = held.first {
      if let request = requests[record] {
        // Each request has at most one call in flight.
        guard max(begun, calls.count) < min(Self.heldMaximum, request.chain.concurrency) else { return }
        begun += 1
        requests[record]?.isBegun = true
        held.removeFirst()
        begin(record, request)
      } else {
        held.removeFirst()
      }
    }
  }

  private static let heldMaximum = 64

  /// The turn ends: the requests whose extensions are done go on together, and others take their places. Some of these may be done at once.
  private func goOn() {
    tools.turns.advance()
    beginHeld()
    while !ready.isEmpty {
      let passed = ready
      ready.removeAll(keepingCapacity: true)
      owner?.passed(passed)
      beginHeld()
    }
  }
}

extension Results.Request {
  fileprivate init(_ content: RequestContent) {
    self.init(in: content.arena, content.receiver, content.entry)
  }
}

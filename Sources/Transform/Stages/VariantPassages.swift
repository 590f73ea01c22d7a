import EventLoop
import Extensions
import Notifications
import Store

/// One request's passage through extensions that are called for each locale or each device.
///
/// It finds the recipients and their variants, looks up remembered results, and calls the extensions for the other variants.
final class VariantPassages {
  /// The tools that all requests of a lane share.
  struct Tools {
    let facts: DeviceFacts
    /// Nil: no results are looked up or remembered.
    let results: Results?
    let calls: ExtensionCalls
    let rules: ContentRules
    let turns: Turns
  }

  /// The turns that the requests of a lane take.
  final class Turns {
    /// How many requests find their devices at a time: each may ask Redis for very many.
    private static let maximumFinding = 32
    private var finding = 0
    /// Requests that wait to find their devices.
    private var waiting: ArraySlice<() -> Void> = []
    private var isBeginning = false
    /// Requests that wait for room for their calls.
    private var stuck: [VariantPassages] = []

    /// Calls `body` when the request may find its devices, perhaps at once. The request calls `found` afterwards.
    func find(_ body: @escaping () -> Void) {
      waiting.append(body)
      begin()
    }

    func found() {
      finding -= 1
      begin()
    }

    /// Without a connection each request fails as soon as it asks, and calls this function. The next one begins in the loop below, not
    /// inside that failure: thousands may wait.
    private func begin() {
      guard !isBeginning else { return }
      isBeginning = true
      while finding < Self.maximumFinding, let next = waiting.popFirst() {
        finding += 1
        next()
      }
      // A slice retains the elements that were taken from it.
      if waiting.startIndex > waiting.count { waiting = ArraySlice(Array(waiting)) }
      isBeginning = false
    }

    fileprivate func wait(_ passages: VariantPassages) { stuck.append(passages) }

    /// Lets waiting requests try again at the end of a turn, when there may be room.
    func advance() {
      guard !stuck.isEmpty else { return }
      let passages = stuck
      stuck = []
      for each in passages { each.goOn() }
    }
  }

  /// The result for each variant, by its name.
  typealias Runs = [Name: ExtensionRun]

  /// Maximum number of a person's devices, and of variants. Further ones pass without these extensions.
  private static let (maximumDevices, maximumVariants) = (1_024, 256)
  /// Maximum number of variants that are looked up or called at a time.
  private static let maximumOpen = 16

  private struct Variant {
    let name: Name
    let locale: String?
    /// The device's token, if the variant is for one device.
    let device: String?
  }

  private let tools: Tools
  private let content: RequestContent
  private let chain: ExtensionChain
  private let run: ExtensionRun
  private let budget: CallBudget
  private let place: Results.Place?
  private var waiting: [Variant] = []
  /// Variants without a remembered result.
  private var unknown: [Variant] = []
  /// The number of variants in progress.
  private var open = 0
  private var passages: [Name: ExtensionPassage] = [:]
  private var runs: Runs = [:]
  /// The recipients are found.
  private var isFound = false
  private var isAdvancing = false
  /// The request waits for room.
  private var isStuck = false
  private var whenDone: ((Result<Runs, StoreError>) -> Void)?

  /// - Parameters:
  ///   - run: the result of the extensions that are called once for the request.
  ///   - place: where results are remembered.
  init(
    _ tools: Tools, _ content: RequestContent, _ chain: ExtensionChain, _ run: ExtensionRun, within budget: CallBudget,
    at place: Results.Place?
  ) {
    (self.tools, self.content, self.chain, self.run) = (tools, content, chain, run)
    (self.budget, self.place) = (budget, place)
  }

  /// Starts the passage.
  ///
  /// - Parameter whenDone: called once, perhaps during this call, unless the passage is cancelled.
  func start(whenDone: @escaping (Result<Runs, StoreError>) -> Void) {
    self.whenDone = whenDone
    tools.turns.find { [self] in
      guard self.whenDone != nil else { return tools.turns.found() }
      tools.facts.read(of: content.receiver, in: content.arena, upTo: Self.maximumDevices) { [self] in found($0) }
    }
  }

  /// Cancels the passage. `whenDone` is not called any more.
  func cancel() {
    whenDone = nil
    for passage in passages.values { passage.cancel() }
    passages = [:]
  }

  private func end(_ result: Result<Runs, StoreError>) {
    guard let told = whenDone else { return }
    cancel()
    told(result)
  }

  private func found(_ answer: Result<[DeviceFacts.Named], StoreError>) {
    tools.turns.found()
    guard let devices = answer.value(orFail: end), whenDone != nil else { return }
    var names: Set<Name> = []
    for (token, facts) in devices where names.count < Self.maximumVariants {
      guard let name = chain.variant(of: token.text, facts.locale), names.insert(name).inserted else { continue }
      waiting.append(Variant(name: name, locale: facts.locale, device: chain.scope == .device ? token.text : nil))
    }
    waiting.reverse()
    isFound = true
    advance()
  }

  // MARK: Calls

  /// Looks up waiting variants, and makes calls, as far as there is room; one at a time during a rebuild.
  private func advance() {
    // A look-up without a connection fails at once, and a call may be refused at once: both call this function again.
    guard isFound, !isAdvancing else { return }
    isAdvancing = true
    let atOnce = tools.results == nil ? 1 : Self.maximumOpen
    while whenDone != nil {
      if !unknown.isEmpty, mayCall {
        call(unknown.removeLast())
      } else if open < atOnce, let variant = waiting.popLast() {
        open += 1
        look(variant)
      } else {
        break
      }
    }
    isAdvancing = false
    if !unknown.isEmpty, !isStuck {
      isStuck = true
      tools.turns.wait(self)
    }
    if open == 0, waiting.isEmpty { end(.success(runs)) }
  }

  /// Continues, since there may be room now.
  fileprivate func goOn() {
    isStuck = false
    if whenDone != nil { advance() }
  }

  /// Whether another call would be taken. One that is over budget ends at once.
  private var mayCall: Bool { tools.calls.hasRoom(for: chain.varied) || tools.calls.isOver(budget) }

  private func look(_ variant: Variant) {
    guard let results = tools.results, let place = place?.of(StableHash.hash(variant.name)) else { return isUnknown(variant) }
    results.recall(place) { [self] answer in
      guard whenDone != nil else { return }
      switch answer {
      case .success(let bytes?):
        let known = content.withPublished { entry in
          entry.content.flatMap { ExtensionRun(bytes, of: chain, published: $0, tools.rules) }
        }
        if let known { passed(variant, known) } else { isUnknown(variant) }
      case .success(nil): isUnknown(variant)
      case .failure(let error): end(.failure(error))
      }
    }
  }

  private func isUnknown(_ variant: Variant) {
    unknown.append(variant)
    advance()
  }

  private func call(_ variant: Variant) {
    let passage = content.withPublished { entry in
      ExtensionPassage(
        run, bytes: run.written?.payload.count ?? entry.payload.count,
        of: ExtensionRequest(entry, locale: variant.locale).varied(variant.name, device: variant.device),
        through: chain.varied, within: tools.results == nil ? tools.calls.budget(lifetime: lifetime) : budget, tools.rules, tools.calls)
    }
    // There is a payload: it was checked when the request was read.
    guard let passage else { return passed(variant, run) }
    passages[variant.name] = passage
    let whenPassed = { [self] (run: ExtensionRun) in
      passages[variant.name] = nil
      if let place { tools.results?.remember(run.bytes(of: chain), at: place.of(StableHash.hash(variant.name))) }
      passed(variant, run)
    }
    if let run = passage.start(whenDone: whenPassed) { whenPassed(run) }
  }

  private var lifetime: Int64 { content.entry.end * 1000 - WallClock.milliseconds() }

  private func passed(_ variant: Variant, _ run: ExtensionRun) {
    runs[variant.name] = run
    open -= 1
    advance()
  }
}

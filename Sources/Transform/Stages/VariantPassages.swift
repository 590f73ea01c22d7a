import EventLoop
import Extensions
import Notifications
import Store

/// One request on its way through the extensions that are called for each locale, or for each device, of those who get it: finds these, looks
/// up what is remembered, and calls for the rest. Loop-confined.
final class VariantPassages {
  /// What all requests of a lane find their variants with.
  struct Tools {
    let recipients: Recipients
    let locales: Locales
    /// Nil: nothing is looked up, and nothing remembered.
    let results: Results?
    let calls: ExtensionCalls
    let rules: ContentRules
    let turns: Turns
  }

  /// Whose turn it is, of all requests of a lane. Loop-confined.
  final class Turns {
    /// Each asks Redis for as many devices as there are, and others ask it, too.
    private static let maximumFinding = 32
    private var finding = 0
    /// Those that wait for that, from `next` on.
    private var waiting: [() -> Void] = []
    private var next = 0
    private var isBeginning = false
    /// Those that have calls to make, and had no room for them.
    private var stuck: [VariantPassages] = []

    /// Calls `body` when devices may be looked for, perhaps at once; `found` follows.
    func find(_ body: @escaping () -> Void) {
      waiting.append(body)
      begin()
    }

    func found() {
      finding -= 1
      begin()
    }

    /// A connection that is gone fails each as soon as it asks: the next one begins in the loop below, and not inside that failure, for
    /// thousands may wait.
    private func begin() {
      guard !isBeginning else { return }
      isBeginning = true
      while finding < Self.maximumFinding, next < waiting.count {
        finding += 1
        next += 1
        waiting[next - 1]()
      }
      if next > waiting.count / 2 {
        waiting.removeFirst(next)
        next = 0
      }
      isBeginning = false
    }

    fileprivate func wait(_ passages: VariantPassages) { stuck.append(passages) }

    /// A turn of the loop ends: there may be room now.
    func advance() {
      guard !stuck.isEmpty else { return }
      let passages = stuck
      stuck = []
      for each in passages { each.goOn() }
    }
  }

  /// What was made of each variant, by its name.
  typealias Runs = [Name: ExtensionRun]

  /// Devices of a person that are looked at, and variants that are made; what is beyond these passes without.
  private static let (maximumDevices, maximumVariants) = (1_024, 256)
  /// Variants that are looked up or called at the same time.
  private static let maximumOpen = 16

  private struct Variant {
    let name: Name
    let locale: String?
    /// The token, where it is a device's own.
    let device: String?
  }

  private let tools: Tools
  private let content: RequestContent
  private let chain: ExtensionChain
  private let run: ExtensionRun
  private let budget: CallBudget
  private let place: Results.Place?
  /// The tokens of those who get it.
  private var devices: [ArenaSpan] = []
  private let tokens = Arena(capacity: 256)
  private var waiting: [Variant] = []
  /// Those that are not remembered.
  private var unknown: [Variant] = []
  /// Those that are begun, and the calls of these.
  private var open = 0
  private var passages: [Name: ExtensionPassage] = [:]
  private var runs: Runs = [:]
  /// Who gets it is found.
  private var isFound = false
  private var isAdvancing = false
  /// It waits for room.
  private var isStuck = false
  private var whenDone: ((Result<Runs, StoreError>) -> Void)?

  /// - Parameters:
  ///   - run: what those have left of the request that are called once for it.
  ///   - place: where that is remembered.
  init(
    _ tools: Tools, _ content: RequestContent, _ chain: ExtensionChain, _ run: ExtensionRun, within budget: CallBudget,
    at place: Results.Place?
  ) {
    (self.tools, self.content, self.chain, self.run) = (tools, content, chain, run)
    (self.budget, self.place) = (budget, place)
  }

  /// Sets out.
  ///
  /// - Parameter whenDone: told once, perhaps during this call, unless it is cancelled.
  func start(whenDone: @escaping (Result<Runs, StoreError>) -> Void) {
    self.whenDone = whenDone
    tools.turns.find { [self] in
      if self.whenDone == nil { tools.turns.found() } else { find() }
    }
  }

  private func find() {
    switch content.receiver {
    case .device(let token):
      devices = content.arena.bytes.withUnsafeBytes { [tokens.keep($0[token])] }
      askLocales()
    case .set(let set): askPage(of: set, after: ArenaSpan())
    }
  }

  /// Nobody wants to know any more: work on it stops.
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

  // MARK: Who gets it

  private func askPage(of set: RecipientSet, after last: ArenaSpan) {
    content.arena.bytes.withUnsafeBytes { arena in
      tokens.bytes.withUnsafeBytes { tokens in
        tools.recipients.page(of: set, in: arena, after: tokens[last]) { [self] answer in
          switch answer {
          case .success(let page): came(page, of: set)
          case .failure(let error): found(.failure(error))
          }
        }
      }
    }
  }

  private func came(_ page: Recipients.Page, of set: RecipientSet) {
    guard whenDone != nil else { return tools.turns.found() }
    var last = ArenaSpan()
    page.forEach { member, isToken in
      last = tokens.keep(member)
      if isToken { devices.append(last) }
    }
    if page.isLast || devices.count >= Self.maximumDevices { askLocales() } else { askPage(of: set, after: last) }
  }

  private func askLocales() {
    guard !devices.isEmpty else { return found(.success([])) }
    tools.locales.read(devices.map { ($0, tokens) }) { [self] in found($0) }
  }

  private func found(_ answer: Result<[String?], StoreError>) {
    tools.turns.found()
    switch answer {
    case .success(let locales): found(locales)
    case .failure(let error): end(.failure(error))
    }
  }

  private func found(_ locales: [String?]) {
    guard whenDone != nil else { return }
    var names: Set<Name> = []
    for (device, locale) in zip(devices, locales) where names.count < Self.maximumVariants {
      guard let name = chain.variant(of: tokens.text(device), locale), names.insert(name).inserted else { continue }
      waiting.append(Variant(name: name, locale: locale, device: chain.scope == .device ? tokens.text(device) : nil))
    }
    waiting.reverse()
    isFound = true
    advance()
  }

  // MARK: Calls

  /// Begins those that wait, and calls for those that are looked up, as far as there is room; while Redis is rebuilt one at a time.
  private func advance() {
    // What is looked up may be answered at once, where the connection is gone, and a call may be refused at once.
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

  /// There may be room now.
  fileprivate func goOn() {
    isStuck = false
    if whenDone != nil { advance() }
  }

  /// Whether another call would be taken; when the time of all is up it says so.
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
    // It was checked when it was read, so it is there.
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

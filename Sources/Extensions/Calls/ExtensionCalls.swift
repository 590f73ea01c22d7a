public import EventLoop

/// The calls of slow extensions in one lane, with limits of their number and bytes.
///
/// An extension that another file has replaced is closed after its last call.
public final class ExtensionCalls {
  /// The most running calls of a lane; more are refused at once.
  public struct Bounds: Sendable {
    /// Calls.
    public var calls = 4_096
    /// The bytes of their given contents.
    public var bytes = 64 << 20
    /// Whether an extension that fails too often is not called for a while.
    public var hasBreakers = true
    /// The time for all extensions of one notification together, in milliseconds.
    public var milliseconds = CallBudget.longestMilliseconds

    /// The defaults.
    public init() {}
  }

  let loop: EventLoop
  private let bounds: Bounds
  private var instances: [ObjectIdentifier: Instance] = [:]
  /// Replaced extensions that still have calls.
  private var retired: [ObjectIdentifier: Instance] = [:]
  /// The end of all extensions that are being closed.
  private var closing: Task<Void, Never>?
  /// The running calls, with those that were given up and whose task has not ended.
  private var calls: [ObjectIdentifier: ExtensionCall] = [:]
  private var bytes = 0
  private var isClosed = false

  /// A lane's own copy of an extension.
  final class Instance {
    // Kept, so that no other definition gets its address.
    let definition: ExtensionDefinition
    let work: any ServiceExtension
    var breaker: CircuitBreaker
    var running = 0

    init(_ definition: ExtensionDefinition, on loop: EventLoop) {
      self.definition = definition
      work = definition.make(loop)
      breaker = CircuitBreaker(limit: definition.limits.breaker)
    }

    /// Takes whether a call was a success; nil if it was given up.
    func settled(_ success: Bool?, isTrial: Bool, at now: UInt64) {
      switch success {
      case true?: breaker.succeeded(isTrial: isTrial)
      case false?: breaker.failed(isTrial: isTrial, at: now)
      case nil: breaker.abandoned(isTrial: isTrial, at: now)
      }
    }
  }

  /// Makes it without extensions; call it on the loop.
  public init(on loop: EventLoop, bounds: Bounds = Bounds()) {
    loop.preconditionOnLoop()
    (self.loop, self.bounds) = (loop, bounds)
  }

  /// The budget for the extensions of a notification with this remaining lifetime in milliseconds.
  public func budget(lifetime: Int64) -> CallBudget { CallBudget(at: loop.milliseconds(), lifetime: lifetime, atMost: bounds.milliseconds) }

  /// Whether the limits at present allow calls of all these.
  public func hasRoom(for steps: ArraySlice<ExtensionChain.Step>) -> Bool {
    calls.count < bounds.calls
      && steps.allSatisfy { step in
        guard case .called(let definition) = step.work else { return true }
        return (instances[ObjectIdentifier(definition)]?.running ?? 0) < definition.limits.concurrency
      }
  }

  /// Whether the time of a notification's extensions has ended.
  public func isOver(_ budget: CallBudget) -> Bool { budget.share(at: loop.milliseconds(), atMost: 1) == nil }

  /// The number of running calls.
  public var count: Int { calls.count }

  /// Calls an extension.
  ///
  /// - Parameters:
  ///   - bytes: the approximate bytes of the content.
  ///   - whenEnded: called once and never inside this call, unless the call is cancelled.
  /// - Throws: the ending of a call that does not begin: too many calls or bytes, too many recent failures, or no time left.
  func call(
    _ definition: ExtensionDefinition, _ request: ExtensionRequest, _ content: MutableContent, bytes: Int, _ budget: CallBudget,
    whenEnded: @escaping (CallEnding) -> Void
  ) throws(CallEnding) -> ExtensionCall {
    let now = loop.milliseconds()
    func refused(_ reason: String) -> CallEnding { .refused(ExtensionFailure("it was not called: \(reason)")) }
    guard let share = budget.share(at: now, atMost: definition.limits.budgetMilliseconds) else { throw .expired(bestAttempt: content) }
    guard !isClosed, calls.count < bounds.calls, self.bytes + bytes <= bounds.bytes else {
      throw refused("too many calls are under way")
    }
    let instance = instance(of: definition)
    guard instance.running < definition.limits.concurrency else { throw refused("too many of its own calls are under way") }
    guard !bounds.hasBreakers || !instance.breaker.isOpen(at: now) else { throw refused("it has failed again and again of late") }
    let call = ExtensionCall(
      on: loop, instance, request, content, isExpiryFailure: share.milliseconds == definition.limits.budgetMilliseconds,
      whenEnded: whenEnded, whenReleased: { [self] in released($0, instance, bytes) })
    instance.running += 1
    self.bytes += bytes
    calls[ObjectIdentifier(call)] = call
    call.start(share)
    return call
  }

  private func instance(of definition: ExtensionDefinition) -> Instance {
    if let instance = instances[ObjectIdentifier(definition)] { return instance }
    let instance = Instance(definition, on: loop)
    instances[ObjectIdentifier(definition)] = instance
    return instance
  }

  private func released(_ call: ExtensionCall, _ instance: Instance, _ bytes: Int) {
    calls[ObjectIdentifier(call)] = nil
    instance.running -= 1
    self.bytes -= bytes
    if retired[ObjectIdentifier(instance)] != nil, instance.running == 0 { close(instance) }
  }

  /// Another file has replaced the present extensions. No more calls of them begin, except by holders of their chain.
  public func retire() {
    let retired = instances.values
    instances = [:]
    for instance in retired {
      self.retired[ObjectIdentifier(instance)] = instance
      if instance.running == 0 { close(instance) }
    }
  }

  private func close(_ instance: Instance) {
    retired[ObjectIdentifier(instance)] = nil
    let task = Task(executorPreference: loop) { [work = instance.work] in await work.close() }
    closing = Task { [closing] in
      await closing?.value
      await task.value
    }
  }

  /// Gives up all running calls without a report, and closes the extensions.
  public func close() async {
    guard !isClosed else { return }
    isClosed = true
    for call in calls.values { call.cancel() }
    for instance in Array(instances.values) + Array(retired.values) { close(instance) }
    instances = [:]
    await closing?.value
  }
}

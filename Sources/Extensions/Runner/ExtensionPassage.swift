import EventLoop

/// The passage of a notification through extensions that may take long.
public final class ExtensionPassage {
  private let calls: ExtensionCalls
  private let rules: ContentRules
  private let request: ExtensionRequest
  private let budget: CallBudget
  private let bytes: Int
  private var steps: ArraySlice<ExtensionChain.Step>
  private var run: ExtensionRun
  private var call: ExtensionCall?
  private var whenDone: ((ExtensionRun) -> Void)?

  /// Makes the passage of a notification.
  ///
  /// - Parameters:
  ///   - run: the extensions that have run already.
  ///   - bytes: the bytes of its payload.
  ///   - steps: the extensions to run.
  ///   - budget: the time for all of them.
  public init(
    _ run: ExtensionRun, bytes: Int, of request: ExtensionRequest, through steps: ArraySlice<ExtensionChain.Step>,
    within budget: CallBudget,
    _ rules: ContentRules, _ calls: ExtensionCalls
  ) {
    (self.run, self.bytes, self.request, self.steps) = (run, bytes, request, steps)
    (self.budget, self.rules, self.calls) = (budget, rules, calls)
  }

  /// Begins.
  ///
  /// - Parameter whenDone: called later, after all extensions have run.
  /// - Returns: the result if no extension had to be waited for; then `whenDone` is not called.
  public func start(whenDone: @escaping (ExtensionRun) -> Void) -> ExtensionRun? {
    guard !advance() else { return run }
    self.whenDone = whenDone
    return nil
  }

  /// Begins, and returns the result; from a task on the loop.
  public func result() async -> ExtensionRun {
    await withCheckedContinuation { continuation in
      if let run = start(whenDone: { continuation.resume(returning: $0) }) { continuation.resume(returning: run) }
    }
  }

  /// Stops it, because the result is not needed any more.
  public func cancel() {
    whenDone = nil
    call?.cancel()
    call = nil
  }

  /// Runs extensions up to one that takes long; true if there is none.
  private func advance() -> Bool {
    while let step = steps.popFirst() {
      switch step.work {
      case .immediate(let work): run.pass(work, named: step.name, of: request, rules)
      case .called(let definition): if begin(step, definition) { return false }
      }
    }
    return true
  }

  /// Calls an extension; false if the call is refused.
  private func begin(_ step: ExtensionChain.Step, _ definition: ExtensionDefinition) -> Bool {
    let began = SteadyClock.nanoseconds()
    let bytes = run.written?.payload.count ?? bytes
    let request = request.named(step.name)
    do throws(CallEnding) {
      call = try calls.call(definition, request, run.content, bytes: bytes, budget) { [self] ending in
        ended(step, definition, ending, microseconds: (SteadyClock.nanoseconds() - began) / 1000)
      }
      return true
    } catch {
      run.ended(step.name, error, definition.limits.unfinished, microseconds: 0, rules)
      return false
    }
  }

  private func ended(_ step: ExtensionChain.Step, _ definition: ExtensionDefinition, _ ending: CallEnding, microseconds: Int64) {
    call = nil
    run.ended(step.name, ending, definition.limits.unfinished, microseconds: microseconds, rules)
    guard advance(), let told = whenDone else { return }
    whenDone = nil
    told(run)
  }
}

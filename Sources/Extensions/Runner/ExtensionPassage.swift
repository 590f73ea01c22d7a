import EventLoop
import Notifications

/// A notification that passes extensions of which some may take their time. Loop-confined.
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

  /// A notification on its way.
  ///
  /// - Parameters:
  ///   - run: what it has passed already.
  ///   - bytes: of its payload.
  ///   - steps: what it is to pass.
  ///   - budget: how long all of that may take.
  public init(
    _ run: ExtensionRun, bytes: Int, of request: ExtensionRequest, through steps: ArraySlice<ExtensionChain.Step>,
    within budget: CallBudget,
    _ rules: ContentRules, _ calls: ExtensionCalls
  ) {
    (self.run, self.bytes, self.request, self.steps) = (run, bytes, request, steps)
    (self.budget, self.rules, self.calls) = (budget, rules, calls)
  }

  /// Sets out.
  ///
  /// - Parameter whenDone: told when it has passed them all, later.
  /// - Returns: what has become of it where nothing had to be waited for; then nobody is told.
  public func start(whenDone: @escaping (ExtensionRun) -> Void) -> ExtensionRun? {
    guard !advance() else { return run }
    self.whenDone = whenDone
    return nil
  }

  /// Sets out, and answers what has become of it; from a task on the loop.
  public func result() async -> ExtensionRun {
    await withCheckedContinuation { continuation in
      if let run = start(whenDone: { continuation.resume(returning: $0) }) { continuation.resume(returning: run) }
    }
  }

  /// Nobody wants to know any more: work on it stops.
  public func cancel() {
    whenDone = nil
    call?.cancel()
    call = nil
  }

  /// Passes extensions up to one that takes its time; true where there is none.
  private func advance() -> Bool {
    while let step = steps.popFirst() {
      switch step.work {
      case .immediate(let work): run.pass(work, named: step.name, of: request, rules)
      case .called(let definition): if begin(step, definition) { return false }
      }
    }
    return true
  }

  /// Calls an extension; false where it is refused.
  private func begin(_ step: ExtensionChain.Step, _ definition: ExtensionDefinition) -> Bool {
    let began = SteadyClock.nanoseconds()
    let bytes = run.written?.payload.count ?? bytes
    let request = request.named(step.name)
    do throws(ExtensionRefusal) {
      call = try calls.call(definition, request, run.content, bytes: bytes, budget) { [self] ending in
        ended(step, definition, ending, microseconds: (SteadyClock.nanoseconds() - began) / 1000)
      }
      return true
    } catch {
      run.ended(step.name, error.ending(run.content), definition.limits.unfinished, microseconds: 0, rules)
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

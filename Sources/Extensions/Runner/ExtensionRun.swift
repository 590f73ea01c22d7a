import EventLoop
public import Notifications

/// One notification's passage through the extensions of its application: their outcomes, and the content so far. A value.
public struct ExtensionRun: Sendable {
  /// The outcome of one extension.
  public struct Outcome: Sendable {
    /// The extension's name.
    public let name: String
    /// The kind of outcome.
    public let state: ExtensionState
    /// The duration in microseconds.
    public let microseconds: Int64
    /// Why it has failed; nil if it has not.
    public let failure: ExtensionFailure?
  }

  /// The content so far.
  public private(set) var content: MutableContent
  /// The content in the form for a device; nil while it is the published one.
  public private(set) var written: WrittenContent?
  /// The outcomes of the extensions, in order.
  public private(set) var outcomes: [Outcome] = []

  /// Begins with the published content.
  public init(_ content: MutableContent) { self.content = content }

  /// Notes why an extension is not called. It counts as failed.
  public mutating func skip(_ step: ExtensionChain.Step, _ failure: ExtensionFailure) { note(step.name, .failed, failure) }

  /// Lets an extension change the content, and checks the result.
  public mutating func pass(
    _ work: any ImmediateExtension, named name: String, of request: ExtensionRequest, _ rules: ContentRules
  ) {
    let began = SteadyClock.nanoseconds()
    let given = content
    var changed = content
    var failure = work.change(&changed, of: request)
    var state = ExtensionState.unchanged
    if changed != given {
      do throws(ExtensionFailure) {
        try take(changed, rules)
        state = .modified
      } catch {
        failure = failure ?? error
        _ = try? take(work.fallback(for: given), rules)
      }
    }
    note(name, failure == nil ? state : .failed, failure, microseconds: (SteadyClock.nanoseconds() - began) / 1000)
  }

  /// Runs extensions without calling a slow one.
  ///
  /// - Parameter reason: why none is called; nil if these have none that is called.
  public mutating func pass(
    _ steps: ArraySlice<ExtensionChain.Step>, of request: ExtensionRequest, _ rules: ContentRules,
    callingNone reason: ExtensionFailure? = nil
  ) {
    for step in steps {
      if case .immediate(let work) = step.work {
        pass(work, named: step.name, of: request, rules)
      } else if let reason {
        note(step.name, .overloaded, reason)
      }
    }
  }

  /// Notes how the call of an extension has ended, and takes its content if that is valid.
  public mutating func ended(
    _ name: String, _ ending: CallEnding, _ unfinished: ExtensionDefinition.Unfinished, microseconds: Int64, _ rules: ContentRules
  ) {
    switch ending {
    case .refused(let failure): note(name, .overloaded, failure, microseconds: microseconds)
    case .finished(let content):
      do throws(ExtensionFailure) {
        note(name, try take(content, rules) ? .modified : .unchanged, nil, microseconds: microseconds)
      } catch { note(name, .failed, error, microseconds: microseconds) }
    case .failed(let failure, let content):
      let isUsed = unfinished == .bestAttempt && (try? take(content, rules)) == true
      note(name, isUsed ? .bestAttempt : .failed, failure, microseconds: microseconds)
    case .expired(let content):
      let failure = ExtensionFailure("its time was up")
      if unfinished == .original { return note(name, .original, failure, microseconds: microseconds) }
      let isUsed = (try? take(content, rules)) == true
      note(name, isUsed ? .bestAttempt : .timedOut, failure, microseconds: microseconds)
    }
  }

  /// Takes a content, if it has changed.
  @discardableResult mutating func take(_ content: MutableContent, _ rules: ContentRules) throws(ExtensionFailure) -> Bool {
    guard content != self.content else { return false }
    written = try rules.write(content)
    self.content = content
    return true
  }

  mutating func note(_ name: String, _ state: ExtensionState, _ failure: ExtensionFailure?, microseconds: Int64 = 0) {
    outcomes.append(Outcome(name: name, state: state, microseconds: microseconds, failure: failure))
  }
}

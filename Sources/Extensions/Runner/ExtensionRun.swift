import EventLoop
public import Notifications

/// One notification on its way through the extensions of its application: what each made of it, and the content so far. A value.
public struct ExtensionRun: Sendable {
  /// What became of the notification at one extension.
  public struct Outcome: Sendable {
    /// The extension's name.
    public let name: String
    /// What became of it.
    public let state: ExtensionState
    /// How long it took, in microseconds.
    public let microseconds: Int64
    /// Why it has failed; nil when it has not.
    public let failure: ExtensionFailure?
  }

  /// The content so far.
  public private(set) var content: MutableContent
  /// The content so far as it goes to a device; nil as long as it is what was published.
  public private(set) var written: WrittenContent?
  /// What became of it, extension by extension.
  public private(set) var outcomes: [Outcome] = []

  /// A notification with the content that was published.
  public init(_ content: MutableContent) { self.content = content }

  /// Notes that an extension is not called, and why: it counts as one that has failed.
  public mutating func skip(_ step: ExtensionChain.Step, _ failure: ExtensionFailure) {
    outcomes.append(Outcome(name: step.name, state: .failed, microseconds: 0, failure: failure))
  }

  /// Has an extension change the content, and checks what it has left.
  public mutating func pass(_ step: ExtensionChain.Step, of request: ExtensionRequest, _ rules: ContentRules) {
    let began = SteadyClock.nanoseconds()
    let given = content
    var failure = step.work.change(&content, of: request)
    var state = ExtensionState.unchanged
    if content != given {
      do throws(ExtensionFailure) {
        written = try rules.write(content)
        state = .modified
      } catch {
        failure = failure ?? error
        fallBack(to: step.work.fallback(for: given), else: given, rules)
      }
    }
    if failure != nil { state = .failed }
    outcomes.append(
      Outcome(name: step.name, state: state, microseconds: (SteadyClock.nanoseconds() - began) / 1000, failure: failure))
  }

  /// What an extension has left breaks a rule.
  private mutating func fallBack(to fallback: MutableContent, else given: MutableContent, _ rules: ContentRules) {
    content = given
    guard fallback != given, let written = try? rules.write(fallback) else { return }
    (content, self.written) = (fallback, written)
  }
}

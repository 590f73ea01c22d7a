import EventLoop

/// One call of an extension, from its beginning to the end of its task.
///
/// - Note: `@unchecked Sendable` because only the loop changes it. Its tasks prefer the loop and return to it from every await, which the
///   loop's precondition checks.
final class ExtensionCall: @unchecked Sendable {
  private enum Phase {
    /// The extension works.
    case running
    /// It was warned that its time will expire.
    case expiring
    /// Its end was reported, or it was given up.
    case ended
  }

  /// Whether it is the trial of an extension that has failed too often.
  let isTrial: Bool
  /// Whether an expiry counts as the extension's failure. It does not if the notification had less time than the extension's own budget.
  private let isExpiryFailure: Bool
  private let loop: EventLoop
  private let work: any ServiceExtension
  private let request: ExtensionRequest
  private let bestAttempt: BestAttempt
  private let timer: Timer
  private var phase = Phase.running
  private var tasks: [Task<Void, Never>] = []
  private var open = 0
  private var whenEnded: ((CallEnding) -> Void)?
  /// Called with whether it was a success; nil if it was given up.
  private var whenSettled: ((ExtensionCall, Bool?) -> Void)?
  private var whenReleased: ((ExtensionCall) -> Void)?

  init(
    on loop: EventLoop, _ work: any ServiceExtension, _ request: ExtensionRequest, _ content: MutableContent, isTrial: Bool,
    isExpiryFailure: Bool,
    whenEnded: @escaping (CallEnding) -> Void, whenSettled: @escaping (ExtensionCall, Bool?) -> Void,
    whenReleased: @escaping (ExtensionCall) -> Void
  ) {
    (self.loop, self.work, self.request, self.isTrial, self.isExpiryFailure) = (loop, work, request, isTrial, isExpiryFailure)
    (self.whenEnded, self.whenSettled, self.whenReleased) = (whenEnded, whenSettled, whenReleased)
    bestAttempt = BestAttempt(content)
    timer = Timer(on: loop)
  }

  func start(_ share: CallBudget.Share) {
    timer.handler = { [unowned self] in warn(share.milliseconds - share.warningMilliseconds) }
    timer.start(after: share.warningMilliseconds)
    run { [self] in
      let result: Result<MutableContent, ExtensionFailure>
      do {
        result = .success(try await work.didReceive(request, bestAttempt))
      } catch {
        result = .failure(error as? ExtensionFailure ?? ExtensionFailure("it has failed", said: "\(error)"))
      }
      loop.preconditionOnLoop()
      switch result {
      case .success(let content): end(.finished(content), isSuccess: true)
      case .failure(let failure): end(.failed(failure, bestAttempt: bestAttempt.content), isSuccess: false)
      }
    }
  }

  /// Warns the extension before its time expires.
  private func warn(_ left: Int) {
    phase = .expiring
    timer.handler = { [unowned self] in expired(bestAttempt.content) }
    timer.start(after: left)
    run { [self] in
      let content = await work.serviceExtensionTimeWillExpire(request, bestAttempt)
      loop.preconditionOnLoop()
      if let content { expired(content) }
    }
  }

  private func expired(_ content: MutableContent) { end(.expired(bestAttempt: content), isSuccess: isExpiryFailure ? false : nil) }

  private func run(_ body: @escaping @Sendable () async -> Void) {
    open += 1
    tasks.append(
      Task(executorPreference: loop) { [self] in
        await body()
        loop.preconditionOnLoop()
        open -= 1
        guard open == 0, case .ended = phase else { return }
        whenReleased?(self)
        whenReleased = nil
      })
  }

  private func end(_ ending: CallEnding, isSuccess: Bool?) {
    if case .ended = phase { return }
    phase = .ended
    timer.close()
    // Every remaining task must stop.
    for task in tasks { task.cancel() }
    tasks = []
    whenSettled?(self, isSuccess)
    whenSettled = nil
    let told = whenEnded
    whenEnded = nil
    told?(ending)
  }

  /// Gives it up, without a report.
  func cancel() {
    whenEnded = nil
    end(.expired(bestAttempt: bestAttempt.content), isSuccess: nil)
  }
}

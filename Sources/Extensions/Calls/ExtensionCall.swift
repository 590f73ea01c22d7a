import EventLoop

/// One call of an extension, from its beginning to the end of its task.
///
/// - Note: `@unchecked Sendable` because only the loop changes it. Its tasks prefer the loop and return to it from every await, which the
///   loop's precondition checks.
final class ExtensionCall: @unchecked Sendable {
  /// Whether it is the trial of an extension that has failed too often.
  private let isTrial: Bool
  /// Whether an expiry counts as the extension's failure. It does not if the notification had less time than the extension's own budget.
  private let isExpiryFailure: Bool
  private let loop: EventLoop
  private let instance: ExtensionCalls.Instance
  private let request: ExtensionRequest
  private let bestAttempt: BestAttempt
  private let timer: Timer
  /// Whether its end was reported, or it was given up.
  private var isEnded = false
  private var tasks: [Task<Void, Never>] = []
  private var open = 0
  private var whenEnded: ((CallEnding) -> Void)?
  private var whenReleased: ((ExtensionCall) -> Void)?

  init(
    on loop: EventLoop, _ instance: ExtensionCalls.Instance, _ request: ExtensionRequest, _ content: MutableContent, isExpiryFailure: Bool,
    whenEnded: @escaping (CallEnding) -> Void, whenReleased: @escaping (ExtensionCall) -> Void
  ) {
    (self.loop, self.instance, self.request, self.isExpiryFailure) = (loop, instance, request, isExpiryFailure)
    (self.whenEnded, self.whenReleased) = (whenEnded, whenReleased)
    isTrial = instance.breaker.begin()
    bestAttempt = BestAttempt(content)
    timer = Timer(on: loop)
  }

  func start(_ share: CallBudget.Share) {
    timer.handler = { [unowned self] in warn(share.milliseconds - share.warningMilliseconds) }
    timer.start(after: share.warningMilliseconds)
    run { [self] in
      do {
        let content = try await instance.work.didReceive(request, bestAttempt)
        loop.preconditionOnLoop()
        end(.finished(content), isSuccess: true)
      } catch {
        loop.preconditionOnLoop()
        let failure = error as? ExtensionFailure ?? ExtensionFailure("it has failed", said: "\(error)")
        end(.failed(failure, bestAttempt: bestAttempt.content), isSuccess: false)
      }
    }
  }

  /// Warns the extension before its time expires.
  private func warn(_ left: Int) {
    timer.handler = { [unowned self] in expired(bestAttempt.content) }
    timer.start(after: left)
    run { [self] in
      let content = await instance.work.serviceExtensionTimeWillExpire(request, bestAttempt)
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
        guard open == 0, isEnded else { return }
        whenReleased?(self)
        whenReleased = nil
      })
  }

  private func end(_ ending: CallEnding, isSuccess: Bool?) {
    if isEnded { return }
    isEnded = true
    timer.close()
    // Every remaining task must stop.
    for task in tasks { task.cancel() }
    tasks = []
    instance.settled(isSuccess, isTrial: isTrial, at: loop.milliseconds())
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

internal import EventLoop
internal import Extensions
internal import Notifications

/// Passes notifications to the program's service extension, a few at the same time.
///
/// A notification is stored before, and what becomes of it after. If the process ends between, the extension may be the reason, so it does not
/// get that notification again.
final class ProgramExtension {
  /// What it asks of the device.
  struct Owner {
    /// Stores that the extension is given a notification, and then calls the closure. False if that is not needed any more.
    let begin: (DeliveredNotification, @escaping () -> Void) -> Bool
    /// Takes what the extension has made of a notification; nil if it was not called.
    let end: (DeliveredNotification, ExtensionRun?) -> Void
    /// The cluster's time, in milliseconds since 1970.
    let now: () -> Int64
  }

  /// How many calls may run, with those that do not end although their time is over. Beyond that none is called.
  private static let calls = 64
  /// The longest time that a program may give a call: an hour.
  private static let longestMilliseconds = 3_600_000

  private let loop: EventLoop
  private let calls: ExtensionCalls
  private let steps: ArraySlice<ExtensionChain.Step>
  private let application: Name
  private let extensions: ServiceExtensions
  private let owner: Owner
  private var turns = ExtensionTurns()
  private var passages: [Name: ExtensionPassage] = [:]
  private var timer: Timer?
  private var isClosed = false

  init(
    _ work: any ServiceExtension, milliseconds: Int, on loop: EventLoop, application: Name, _ extensions: ServiceExtensions, _ owner: Owner
  ) {
    (self.loop, self.application, self.extensions, self.owner) = (loop, application, extensions, owner)
    var bounds = ExtensionCalls.Bounds()
    // Each notification is called, whatever became of those before it.
    bounds.hasBreakers = false
    let milliseconds = min(max(milliseconds, 1), Self.longestMilliseconds)
    bounds.milliseconds = max(bounds.milliseconds, milliseconds)
    calls = ExtensionCalls(on: loop, bounds: bounds)
    var limits = ExtensionDefinition.Limits()
    limits.budgetMilliseconds = milliseconds
    limits.concurrency = Self.calls
    let definition = ExtensionDefinition(limits) { _ in OffLoopExtension(work: work) }
    steps = [ExtensionChain.Step(name: "program", work: .called(definition))][...]
    timer = Timer(on: loop) { [weak self] in self?.timeIsOver() }
  }

  /// Adds a stored notification, which is shown when its time has ended at the latest.
  func add(_ notification: DeliveredNotification) {
    let expiration = notification.frame.expiration
    let budget = calls.budget(lifetime: expiration > 0 ? min(expiration, 1 << 40) * 1000 &- owner.now() : .max)
    let left = budget.share(at: loop.milliseconds(), atMost: .max)?.milliseconds ?? 0
    turns.add(.init(notification: notification, budget: budget, deadline: loop.milliseconds() + UInt64(left)))
    advance()
  }

  /// Drops the notifications that are not needed any more.
  func keep(_ isNeeded: (DeliveredNotification) -> Bool) {
    for dropped in turns.keep(isNeeded) { passages.removeValue(forKey: dropped.identifier)?.cancel() }
    advance()
  }

  /// Gives up all calls, and closes the extension; returns the notifications that it had.
  ///
  /// What comes after that waits for the next start.
  func close() async -> [DeliveredNotification] {
    isClosed = true
    timer?.close()
    timer = nil
    let running = turns.running
    turns = ExtensionTurns()
    for passage in passages.values { passage.cancel() }
    passages = [:]
    await calls.close()
    return running
  }

  private func advance() {
    guard !isClosed else { return }
    while let turn = turns.begin() {
      let isNeeded = owner.begin(turn.notification) { [weak self] in self?.call(turn.notification, within: turn.budget) }
      if !isNeeded { _ = turns.end(turn.notification) }
    }
    guard let deadline = turns.deadline else { return timer?.stop() ?? () }
    timer?.start(after: Int(clamping: deadline - min(deadline, loop.milliseconds())))
  }

  private func call(_ notification: DeliveredNotification, within budget: CallBudget) {
    guard turns.running.contains(where: { $0.isSame(notification) }) else { return }
    let frame = notification.frame
    guard let request = extensions.request(of: frame, for: application) else { return ended(notification, nil) }
    let attachments = notification.attachments.map(\.attachment).map {
      ContentAttachment(identifier: $0.identifier, .stored($0.media), options: $0.options)
    }
    let content = MutableContent(payload: notification.content.payload, attachments: attachments)
    let passage = ExtensionPassage(
      ExtensionRun(content), bytes: frame.payload.count, of: request, through: steps, within: budget, ServiceExtensions.rules, calls)
    passages[notification.identifier] = passage
    if let run = passage.start(whenDone: { [weak self] run in self?.ended(notification, run) }) { ended(notification, run) }
  }

  private func ended(_ notification: DeliveredNotification, _ run: ExtensionRun?) {
    guard turns.end(notification) else { return }
    passages[notification.identifier] = nil
    owner.end(notification, run)
    advance()
  }

  private func timeIsOver() {
    for notification in turns.expire(now: loop.milliseconds()) { owner.end(notification, nil) }
    advance()
  }
}

/// Runs an extension on Swift's own threads, so that one that blocks does not stop the device.
private struct OffLoopExtension: ServiceExtension {
  let work: any ServiceExtension

  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    // An error that is thrown through the change of threads would leave the caller on the wrong one.
    let result: Result<MutableContent, any Error> = await withTaskExecutorPreference(globalConcurrentExecutor) {
      do { return .success(try await work.didReceive(request, bestAttempt)) } catch { return .failure(error) }
    }
    return try result.get()
  }

  func serviceExtensionTimeWillExpire(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async -> MutableContent? {
    await withTaskExecutorPreference(globalConcurrentExecutor) { await work.serviceExtensionTimeWillExpire(request, bestAttempt) }
  }

  func close() async { await withTaskExecutorPreference(globalConcurrentExecutor) { await work.close() } }
}

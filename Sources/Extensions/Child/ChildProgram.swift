import EventLoop
import JSON

/// A program that changes notifications. It starts with the first call and after it has ended, and is killed if it hangs.
///
/// The ``ChildCall`` reports the answer of each call.
final class ChildProgram {
  private enum Phase {
    /// It does not run; the next call starts it.
    case idle
    case running(ChildRun)
    /// It is not started for a while.
    case resting(until: UInt64)
    /// No more calls; it may still be ending.
    case closed(ChildRun?)
  }

  private let settings: ChildSettings
  private let loop: EventLoop
  private var phase = Phase.idle
  private var backoff = RestartBackoff()
  private let timer: Timer
  /// Runs while the program may be hanging, so that its messages are read first.
  private let doubt: Timer
  /// The time at which it fires, and whether a call's time has ended.
  private var doubting: (time: UInt64, hasExpired: Bool)?
  /// The unanswered calls, by number.
  private var calls: [Int64: ChildCall] = [:]
  /// Of the running program.
  private var hanging: HangDetector
  private var last: Int64 = 0
  private var whenClosed: CheckedContinuation<Void, Never>?

  /// The most unread bytes of the program. With more it is too slow.
  private static let longestBacklog = 8 << 20
  /// The longest rest for which calls wait. In a longer one they fail.
  private static let shortRest = 1_000
  /// The most best attempts of a call.
  static let maximumAttempts = 100

  init(_ settings: ChildSettings, on loop: EventLoop) {
    (self.settings, self.loop) = (settings, loop)
    hanging = HangDetector(at: loop.milliseconds())
    timer = Timer(on: loop)
    doubt = Timer(on: loop)
    timer.handler = { [unowned self] in restart() }
    doubt.handler = { [unowned self] in judge() }
  }

  // MARK: Calls

  /// Calls it, and returns its answer; from a task on the loop.
  func answer(
    _ request: ExtensionRequest, _ bestAttempt: BestAttempt, isolation: isolated (any Actor)? = #isolation
  ) async throws(ExtensionFailure) -> JSONValue {
    try await begin(request, bestAttempt).answer(on: loop)
  }

  /// Begins a call.
  ///
  /// - Throws: why it cannot be called now.
  private func begin(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) throws(ExtensionFailure) -> ChildCall {
    let now = loop.milliseconds()
    if hanging.reason(at: now, hasExpired: false) != nil { suspect(hasExpired: false) }
    switch phase {
    case .running(let run) where run.pendingBytes > Self.longestBacklog: throw ExtensionFailure("its program does not read what it is sent")
    case .resting(let end) where end > now + UInt64(Self.shortRest):
      throw Self.isResting(Int(end - now))
    case .closed: throw Self.isClosed
    case .idle, .running, .resting: break
    }
    last += 1
    let call = ChildCall(last, request, bestAttempt, of: self)
    calls[last] = call
    switch phase {
    case .running(let run): if run.isRunning, doubting == nil { ask(run, call) }
    case .idle: start()
    case .resting, .closed: break
    }
    return call
  }

  private static let isClosed = ExtensionFailure("its worker ends")

  private func ask(_ run: ChildRun, _ call: ChildCall) {
    call.isAsked = true
    hanging.asked(call.number, at: loop.milliseconds())
    run.write(ChildMessage.didReceive(call.request, call.bestAttempt.content, call: call.number))
  }

  /// Sends the waiting calls.
  private func askAll(_ run: ChildRun) {
    for call in calls.values.filter({ !$0.isAsked }).sorted(by: { $0.number < $1.number }) { ask(run, call) }
  }

  /// Warns that the time of the call with this best attempt will expire.
  func warn(_ bestAttempt: BestAttempt) {
    guard let call = calls.values.first(where: { $0.bestAttempt === bestAttempt }), case .running(let run) = phase else { return }
    call.isWarned = true
    run.write(ChildMessage.timeWillExpire(call: call.number))
  }

  /// Gives up a call.
  func abandon(_ call: ChildCall) {
    guard calls.removeValue(forKey: call.number) != nil else { return }
    call.finish(.failure(ExtensionFailure("its time was up")))
    guard call.isAsked, case .running(let run) = phase else { return }
    hanging.gaveUp(call.number, at: loop.milliseconds())
    run.write(ChildMessage.cancel(call: call.number))
    // A call that was not warned is given up for another reason.
    if hanging.reason(at: loop.milliseconds(), hasExpired: call.isWarned) != nil { suspect(hasExpired: call.isWarned) }
  }

  /// Judges later whether it hangs; new calls wait for that. If the loop itself stood still, the answers are read first.
  private func suspect(hasExpired: Bool) {
    guard doubting == nil else {
      if hasExpired { doubting?.hasExpired = true }
      return
    }
    doubting = (loop.milliseconds() + Self.doubtMilliseconds, hasExpired)
    doubt.start(after: Int(Self.doubtMilliseconds))
  }

  private static let doubtMilliseconds: UInt64 = 500

  private func judge() {
    guard let (time, hasExpired) = doubting else { return }
    doubting = nil
    let now = loop.milliseconds()
    guard case .running(let run) = phase, run.isRunning else { return }
    guard let reason = hanging.reason(at: now, hasExpired: hasExpired) else { return askAll(run) }
    // A late timer shows that the loop stood still again.
    if now > time + Self.doubtMilliseconds { suspect(hasExpired: hasExpired) } else { run.kill(reason) }
  }

  // MARK: Its life

  private func start() {
    do throws(EventLoopError) {
      let run = try ChildRun(settings, on: loop, owner: self)
      phase = .running(run)
      hanging = HangDetector(at: loop.milliseconds())
      doubting = nil
      askAll(run)
    } catch {
      fail(ExtensionFailure("its program cannot be started: \(error)")) { _ in true }
      rest(answers: 0, lived: 0)
    }
  }

  private func rest(answers: Int, lived: UInt64) {
    let wait = backoff.ended(answers: answers, lived: lived)
    phase = .resting(until: loop.milliseconds() + UInt64(wait))
    if wait > Self.shortRest { fail(Self.isResting(wait)) { _ in true } }
    timer.start(after: wait)
  }

  private static func isResting(_ milliseconds: Int) -> ExtensionFailure {
    ExtensionFailure("its program has ended, and is started again in \(ReadableText.duration(milliseconds: Int64(milliseconds)))")
  }

  private func restart() {
    phase = .idle
    if !calls.isEmpty { start() }
  }

  private func fail(_ reason: ExtensionFailure, where isMeant: (ChildCall) -> Bool) {
    for call in calls.values where isMeant(call) { calls.removeValue(forKey: call.number)?.finish(.failure(reason)) }
  }

  /// The child has ended, and no more messages follow; called once.
  func ended(_ run: ChildRun, _ reason: ExtensionFailure) {
    if case .closed = phase {
      phase = .closed(nil)
      whenClosed?.resume()
      whenClosed = nil
      return
    }
    // Calls from after its end began go to the next one.
    fail(reason) { $0.isAsked }
    rest(answers: run.answers, lived: loop.milliseconds() - run.began)
  }

  /// Ends it, and returns after its end.
  func close(isolation: isolated (any Actor)? = #isolation) async {
    if case .closed = phase { return }
    timer.close()
    doubt.close()
    let phase = self.phase
    self.phase = .closed(nil)
    fail(Self.isClosed) { _ in true }
    guard case .running(let run) = phase else { return }
    self.phase = .closed(run)
    run.finish()
    await withCheckedContinuation { continuation in
      // Checked here, since other tasks may run between a check and an await.
      if case .closed(nil) = self.phase { continuation.resume() } else { whenClosed = continuation }
    }
  }

  // MARK: What it says

  /// The child has sent a message.
  func said(_ answer: ChildMessage.Answer) {
    switch answer {
    case .result(let number, let result): end(number) { .success(result) }
    case .failure(let number, let text):
      end(number) { .failure(ExtensionFailure("its program says that it has failed", said: String(text.prefix(200)))) }
    case .bestAttempt(let number, let answer):
      guard hanging.owes(number) else { return refuse() }
      hanging.spoke(at: loop.milliseconds())
      // The call may have been given up.
      guard let call = calls[number] else { return }
      call.attempts += 1
      guard call.attempts <= Self.maximumAttempts else { return refuse() }
      guard let content = try? ExtensionMessage.content(answer, of: call.given) else {
        return refuse("its program has written a best attempt that breaks a rule")
      }
      call.bestAttempt.content = content
    }
  }

  private func end(_ number: Int64, _ result: () -> Result<JSONValue, ExtensionFailure>) {
    guard hanging.answered(number, at: loop.milliseconds()) else { return refuse() }
    calls.removeValue(forKey: number)?.finish(result())
  }

  private func refuse(_ reason: String = "its program has said something of a call that is not open") {
    guard case .running(let run) = phase else { return }
    run.kill(ExtensionFailure(reason))
  }
}

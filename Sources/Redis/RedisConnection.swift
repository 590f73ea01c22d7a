import CHiredis
import Cryptography
public import EventLoop

/// A connection to Redis that reconnects after a loss.
///
/// Calls are pipelined: all calls of a turn go out in one write at its end, and replies come in order. After `start` it keeps itself alive
/// until `close`.
public final class RedisConnection {
  let loop: EventLoop
  /// The settings.
  public let configuration: RedisConfiguration
  /// Called when calls are accepted: the first time, and again after each loss.
  public var onUp: (() -> Void)?
  /// Called when a connection is lost, after the calls in flight have failed.
  public var onDown: ((RedisError) -> Void)?
  /// Called when an attempt to connect has failed, with the milliseconds until the next.
  public var onAttemptFailed: ((RedisError, Int) -> Void)?
  /// Called for each sent call that fails, and for each failed attempt to connect, to count them.
  public var onError: ((RedisError) -> Void)?
  /// Counts the signs that the server may have lost something. They are lost connections, and replies of a failover (`READONLY`, `MOVED`).
  /// If it has risen, data that was written before may be gone.
  public private(set) var epoch: UInt64 = 0

  private var cycle: ConnectionCycle
  private var socket: RedisSocket?
  private var watch: DescriptorWatch?
  private var calls = CallQueue()
  private var outgoing = OutgoingBytes()
  /// The time of the server's last bytes, in the loop's milliseconds.
  private var heardAt: UInt64 = 0
  private var wantsWritable = false
  /// The number of the call that loads a script, by the script's digest. So a script is loaded once for many calls.
  private var loads: [String: UInt64] = [:]
  /// The connection is dropped when the received replies are handed out.
  private var pendingLoss: RedisError?
  private var attempt = 0
  private var isLookingUp = false
  private var greeting: Greeting?
  private var attemptTimer: Timer?
  private var sweepTimer: Timer?
  private var flushTimer: Timer?
  private var turnEnd: TurnEnd?
  private var isSweeping = false
  private var isFlushArmed = false
  private let upWaiters: LoopWaiters

  /// How much is shown of what the server says before it closes, in characters.
  private static let longestRefusal = 300

  /// Makes a connection that is not started; call it on the loop.
  public init(on loop: EventLoop, _ configuration: RedisConfiguration) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.configuration = configuration
    cycle = ConnectionCycle(configuration.backoff)
    upWaiters = LoopWaiters(on: loop)
  }

  /// Begins to connect. `onUp` and `onAttemptFailed` report the outcome.
  public func start() {
    loop.preconditionOnLoop()
    guard cycle.phase == .idle else { return }
    attemptTimer = Timer(on: loop) { self.attemptTimerFired() }
    sweepTimer = Timer(on: loop) { self.sweep() }
    flushTimer = Timer(on: loop) { self.flushTimerFired() }
    turnEnd = loop.onTurnEnd { [weak self] in self?.flush() }
    perform(cycle.start())
  }

  /// Whether calls are accepted.
  public var isUp: Bool { cycle.phase == .up }

  /// The number of calls without a reply.
  public var inFlight: Int { calls.count }

  /// Sends a command. Its outcome goes to `handler`, exactly once and never inside this call.
  ///
  /// If the server has forgotten a script, the call is repeated once after the script is loaded, with a deadline of its own. Then the order
  /// of calls is not kept.
  public func send(_ command: borrowing RedisCommand, to handler: any RedisReplyHandler, tag: UInt64 = 0) -> RedisAdmission {
    loop.preconditionOnLoop()
    precondition(command.isComplete, "a command is sent when its name and arguments are whole")
    guard cycle.phase == .up, pendingLoss == nil else { return .down }
    if calls.count >= configuration.maximumInFlight { return .full }
    if outgoing.count + command.byteCount > configuration.maximumBytesInFlight, !calls.isEmpty { return .full }
    put(command, to: handler, tag: tag)
    return .accepted
  }

  /// Fails every call in flight with `closed` and closes the connection for good. Later calls are refused.
  public func close() {
    loop.preconditionOnLoop()
    guard cycle.close() else { return }
    let error = RedisError(.closed, "the connection to Redis was closed")
    for timer in [attemptTimer, sweepTimer, flushTimer] { timer?.close() }
    (attemptTimer, sweepTimer, flushTimer) = (nil, nil, nil)
    turnEnd?.close()
    turnEnd = nil
    dropConnection(failingCallsWith: { _ in error })
    upWaiters.look()
    (onUp, onDown, onAttemptFailed, onError) = (nil, nil, nil, nil)
  }

  // MARK: Connecting

  private func perform(_ action: ConnectionCycle.Action) {
    switch action {
    case .nothing: break
    case .connect: connect()
    case .greet: greet()
    case .announceUp:
      attemptTimer?.stop()
      upWaiters.look()
      onUp?()
    case .retry(let milliseconds, let wasUp):
      attemptTimer?.start(after: milliseconds)
      guard let cause = cycle.cause else { return }
      upWaiters.look()
      onError?(cause)
      if wasUp { onDown?(cause) } else { onAttemptFailed?(cause, milliseconds) }
    }
  }

  /// One timer for the running attempt and for the wait before the next one, which never overlap.
  private func attemptTimerFired() {
    if cycle.phase == .waiting { return perform(cycle.waited()) }
    let patience = ReadableText.duration(milliseconds: Int64(configuration.connectDeadlineMilliseconds))
    let question =
      socket?.isShakingHands == true
      ? "does Redis answer, and does that port take TLS? Without TLS the address is redis://" : "is Redis running and reachable?"
    lose(RedisError(.timedOut, "no connection to \(configuration.address) within \(patience); \(question)"))
  }

  private func connect() {
    attempt += 1
    attemptTimer?.start(after: configuration.connectDeadlineMilliseconds)
    switch configuration.address.endpoint {
    case .unix: open(configuration.address.endpoint)
    case .tcp(let host, let port): lookUp(SocketAddress(host: host, port: port))
    }
  }

  private func lookUp(_ address: SocketAddress) {
    // A look-up cannot be cancelled. While one of an earlier attempt is running, no second one is started.
    guard !isLookingUp else { return lose(RedisError(.unresolved, "the name \(address.host) is still being looked up")) }
    isLookingUp = true
    let number = attempt
    Resolver.resolve(address, on: loop) { result in
      self.isLookingUp = false
      guard self.cycle.phase == .connecting, self.attempt == number else { return }
      switch result {
      case .success(let found):
        // Attempts use the addresses of the name in turn.
        let next = found[number % found.count]
        self.open(.tcp(host: next.host, port: next.port))
      case .failure(let error): self.lose(RedisError(.unresolved, "the host of \(self.configuration.address) has no address: \(error)"))
      }
    }
  }

  private func open(_ endpoint: RedisAddress.Endpoint) {
    do {
      let socket = try RedisSocket(connectingTo: endpoint, makeSecure())
      let watch = try DescriptorWatch(on: loop, descriptor: socket.descriptor) { [unowned socket] in self.ready($0, of: socket) }
      self.socket = socket
      self.watch = watch
      watch.watch(.writable)
    } catch let error as RedisError {
      lose(unreachable(error.message))
    } catch let error as TLSError {
      lose(RedisError(.tlsFailed, "no TLS with \(configuration.address): \(error)"))
    } catch {
      lose(unreachable("\(error)"))
    }
  }

  /// Begins a session of TLS with the server of the address; nil without TLS.
  ///
  /// Each attempt has a context of its own, which has no session to resume: a Redis that caches none (`tls-session-caching no`) refuses a
  /// client with a certificate that tries to.
  private func makeSecure() throws(TLSError) -> SecureBytes? {
    guard let files = configuration.address.tls, case .tcp(let host, let port) = configuration.address.endpoint else { return nil }
    let isNumeric = SocketAddress(host: host, port: port).isNumeric
    return SecureBytes(try files.makeContext().connect(host: host, isNumeric: isNumeric, port: port), files)
  }

  private func unreachable(_ reason: String) -> RedisError {
    RedisError(.unreachable, "cannot connect to \(configuration.address): \(reason); is Redis running there?")
  }

  private func ready(_ readiness: Readiness, of socket: RedisSocket) {
    guard socket === self.socket else { return }
    if cycle.phase == .connecting {
      if !socket.isShakingHands, let reason = socket.connectFailure() { return lose(unreachable(reason)) }
      do throws(RedisError) { try socket.shakeHands() } catch { return lose(error) }
      wantsWritable = socket.hasUnsent
      watch?.watch(wantsWritable ? [.readable, .writable] : .readable)
      guard !socket.isShakingHands else { return }
      perform(cycle.connected())
      // What the server has sent with the end of the handshake, no event announces.
      if socket === self.socket { _ = takeReplies(from: socket) }
      return
    }
    if readiness.contains(.readable) { _ = receive(from: socket) }
    if readiness.contains(.writable), socket === self.socket { flush() }
  }

  private func greet() {
    let greeting = Greeting(configuration) { [unowned self] result in
      self.greeting = nil
      switch result {
      case .success: self.perform(self.cycle.greeted(now: self.loop.milliseconds()))
      // The other replies of the greeting are not handed out yet.
      case .failure(let error): self.giveUp(error)
      }
    }
    self.greeting = greeting
    greeting.write { put($0, to: greeting, tag: $1) }
  }

  // MARK: Calls

  private func put(_ command: borrowing RedisCommand, to handler: any RedisReplyHandler, tag: UInt64) {
    let length = outgoing.append(command)
    enqueue(Call(handler: handler, tag: tag, deadline: newDeadline, length: length, script: command.script, isRepeat: false))
  }

  private var newDeadline: UInt64 { loop.milliseconds() + UInt64(max(1, configuration.callDeadlineMilliseconds)) }

  private func enqueue(_ call: Call) {
    calls.append(call)
    if !isSweeping {
      isSweeping = true
      let interval = max(5, configuration.callDeadlineMilliseconds / 20)
      sweepTimer?.start(after: interval, repeating: interval)
    }
    armFlush()
  }

  /// The end of the turn writes. The timer only keeps the loop from blocking if calls are made at the end of a turn after this one's.
  private func armFlush() {
    guard !isFlushArmed else { return }
    isFlushArmed = true
    flushTimer?.start(after: 0)
  }

  private func flushTimerFired() {
    guard let error = pendingLoss else { return flush() }
    isFlushArmed = false
    lose(error)
  }

  /// Never fails a call itself, because handlers are not called at a turn's end, when the loop may be about to block.
  private func flush() {
    guard let socket, cycle.phase != .connecting, pendingLoss == nil else { return }
    guard isFlushArmed || wantsWritable else { return }
    isFlushArmed = false
    flushTimer?.stop()
    do throws(RedisError) {
      while outgoing.unsentCount > 0 || socket.hasUnsent {
        let count = try socket.write(outgoing.unsent)
        if count == 0 { break }
        outgoing.wasSent(count)
      }
    } catch {
      return giveUp(error)
    }
    let wants = outgoing.unsentCount > 0 || socket.hasUnsent
    if wants != wantsWritable {
      wantsWritable = wants
      watch?.watch(wants ? [.readable, .writable] : .readable)
    }
  }

  /// Hands out received replies; answers whether there were any.
  private func receive(from socket: RedisSocket) -> Bool {
    var failure: RedisError?
    do throws(RedisError) { guard try socket.fill() else { return false } } catch { failure = error }
    // What came before the end of the connection counts.
    let goesOn = takeReplies(from: socket)
    guard let failure else { return goesOn }
    if socket === self.socket { lose(failure) }
    return false
  }

  private func takeReplies(from socket: RedisSocket) -> Bool {
    do throws(RedisError) {
      heardAt = loop.milliseconds()
      while socket === self.socket, let reply = try socket.nextReply() {
        defer { RedisSocket.free(reply) }
        try answer(RedisReplyView(reply))
      }
    } catch {
      if socket === self.socket { lose(pendingLoss ?? error) }
      return false
    }
    if socket === self.socket, let error = pendingLoss { lose(error) }
    return socket === self.socket
  }

  private func answer(_ reply: RedisReplyView) throws(RedisError) {
    guard let call = calls.first, outgoing.sentCount >= call.length else {
      throw reply.error ?? RedisError(.protocolViolation, "the peer answers what was not asked; is \(configuration.address) a Redis?")
    }
    guard let error = reply.error else {
      finish(call)
      call.handler.redisReplied(tag: call.tag, reply: reply)
      return
    }
    if error.code == .noScript, let script = call.script, !call.isRepeat {
      sendAgain(call, script)
      return
    }
    finish(call)
    switch error.code {
    case .readOnly:
      // The server has become a replica. The name may lead to the new primary.
      if pendingLoss == nil { giveUp(error) }
    case .moved: epoch += 1
    default: break
    }
    onError?(error)
    call.handler.redisFailed(tag: call.tag, error: error)
  }

  private func finish(_ call: Call) {
    _ = calls.removeFirst()
    outgoing.removeFirst(call.length)
  }

  /// Repeats the oldest call after one that loads its script. Many calls may share one load.
  private func sendAgain(_ call: Call, _ script: RedisScript) {
    if (loads[script.sha1] ?? 0) <= calls.firstNumber {
      loads[script.sha1] = calls.nextNumber
      var command = RedisCommand(reserving: script.source.utf8.count + 64)
      command.begin()
      command.append(all: script.load)
      put(command, to: Ignored(), tag: 0)
    }
    outgoing.repeatFirst(call.length)
    finish(call)
    enqueue(
      Call(handler: call.handler, tag: call.tag, deadline: newDeadline, length: call.length, script: script, isRepeat: true))
  }

  /// Fails calls that are too slow.
  ///
  /// Replies come in order, so after a missing one no other can be expected. But a server that sends replies is only busy. Only a silent
  /// one is lost. Otherwise callers that give it more than it can do within the deadline would start again for ever.
  private func sweep() {
    guard !calls.isEmpty else {
      isSweeping = false
      sweepTimer?.stop()
      return
    }
    // A loop that was delayed itself finds the replies first.
    let patience = UInt64(max(1, configuration.callDeadlineMilliseconds))
    while let call = calls.first, max(call.deadline, heardAt + patience) <= loop.milliseconds() {
      guard let socket else { return }
      if receive(from: socket) { continue }
      guard socket === self.socket else { return }
      let text =
        "no reply from \(configuration.address) within \(ReadableText.duration(milliseconds: Int64(configuration.callDeadlineMilliseconds))); the connection is made again"
      return lose(RedisError(.timedOut, text))
    }
  }

  // MARK: Loss

  /// Drops the connection as soon as none of its code is on the stack.
  private func giveUp(_ error: RedisError) {
    guard pendingLoss == nil else { return }
    pendingLoss = error
    armFlush()
  }

  private func lose(_ error: RedisError) {
    var error = error
    if error.code == .connectionLost, let refusal = greeting?.refusal {
      error.message = "\(configuration.address) closes the connection: \(refusal.message.prefix(Self.longestRefusal))"
    } else if error.code == .connectionLost, cycle.phase == .greeting {
      error.message = "\(configuration.address) gives no first answer (\(error.message))"
      if let files = configuration.address.tls {
        error.message += "; \(files.adviceForClients)"
      } else if case .tcp = configuration.address.endpoint {
        error.message += "; if that port takes TLS, the address is rediss://"
      }
    }
    let wasUp = cycle.phase == .up
    let now = loop.milliseconds()
    let action = cycle.failed(error, now: now)
    guard action != .nothing else { return }
    if wasUp { epoch += 1 }
    let lost = RedisError(.connectionLost, "the connection to Redis was lost: \(error.message)")
    let late = RedisError(.timedOut, error.message)
    dropConnection { error.code == .timedOut && $0.deadline <= now ? late : lost }
    // A handler may have closed the connection.
    if cycle.phase == .waiting { perform(action) }
  }

  private func dropConnection(failingCallsWith error: (Call) -> RedisError) {
    watch?.close()
    watch = nil
    socket = nil
    greeting = nil
    wantsWritable = false
    pendingLoss = nil
    outgoing.removeAll()
    loads = [:]
    if isFlushArmed {
      isFlushArmed = false
      flushTimer?.stop()
    }
    var failed = CallQueue()
    swap(&failed, &calls)
    while let call = failed.removeFirst() {
      let error = error(call)
      onError?(error)
      call.handler.redisFailed(tag: call.tag, error: error)
    }
  }

  // MARK: Waiting for the connection

  /// Waits until calls are accepted.
  ///
  /// - Throws: the cause of the last failure, or `timedOut`, if that takes too long; `closed`; at once an error that waiting cannot help,
  ///   such as `authenticationFailed`, though attempts continue.
  public func waitUntilUp(withinMilliseconds milliseconds: Int) async throws(RedisError) {
    loop.preconditionOnLoop()
    await upWaiters.wait(withinMilliseconds: milliseconds) {
      isUp || cycle.phase == .closed || cycle.phase == .waiting && cycle.cause?.isRetriable == false
    }
    if isUp { return }
    if cycle.phase == .closed { throw RedisError(.closed, "the connection to Redis was closed") }
    let patience = ReadableText.duration(milliseconds: Int64(milliseconds))
    throw cycle.cause ?? RedisError(.timedOut, "no connection to \(configuration.address) within \(patience)")
  }
}

/// Drops replies. If a script cannot be loaded, the repeated calls report it.
private final class Ignored: RedisReplyHandler {
  func redisReplied(tag: UInt64, reply: RedisReplyView) {}
  func redisFailed(tag: UInt64, error: RedisError) {}
}

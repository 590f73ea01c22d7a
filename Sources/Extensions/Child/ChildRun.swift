import EventLoop
import Glibc

/// One run of a child, from its start to its end.
final class ChildRun: StreamHandler {
  private enum Phase {
    case running
    /// It was asked to end, or its process or its stream has ended; the other one follows.
    case ending
    case over
  }

  /// Its start in the loop's milliseconds.
  let began: UInt64
  /// The number of its answers.
  private(set) var answers = 0
  private let stream: Stream
  private var process: ChildProcess?
  private var phase = Phase.running
  private var isStreamOver = false
  private var exit: ChildExit?
  private var reason: ExtensionFailure?
  /// Whether its process was killed because it took too long to end.
  private var isOverdue = false
  private var lines = LineSplitter(limit: ExtensionMessage.longestAnswer)
  private let timer: Timer
  private weak var owner: ChildProgram?

  /// How long a child may take to end after it was asked to, and its last answers to arrive.
  private static let graceMilliseconds = 1_000

  /// Starts the program.
  init(_ settings: ChildSettings, on loop: EventLoop, owner: ChildProgram) throws(EventLoopError) {
    let (stream, other) = try Stream.pair(on: loop)
    self.stream = stream
    self.owner = owner
    began = loop.milliseconds()
    timer = Timer(on: loop)
    defer { close(other) }
    do throws(EventLoopError) {
      process = try ChildProcess.spawn(
        on: loop, executable: settings.program, arguments: settings.arguments, environment: settings.environment, output: .socket(other),
        endsWithParent: true
      ) { [weak self] in self?.exited($0) }
    } catch {
      timer.close()
      stream.close()
      throw error
    }
    stream.handler = self
    if process?.limitMemory(bytes: settings.memoryBytes) == false {
      kill(ExtensionFailure("the memory of its program cannot be limited"))
    }
    stream.startReading()
    stream.write(ChildMessage.configure(settings.settings))
  }

  /// Whether it takes calls: no part of it has ended, and it was not asked to end.
  var isRunning: Bool { if case .running = phase { exit == nil } else { false } }

  /// The bytes that were sent and not read.
  var pendingBytes: Int { stream.pendingBytes }

  func write(_ bytes: SharedBytes) { stream.write(bytes) }

  /// Asks it to end by closing its input. It is killed if it does not.
  func finish() {
    guard case .running = phase else { return }
    phase = .ending
    stream.finish(withinMilliseconds: Self.graceMilliseconds)
    limit()
  }

  /// Ends it at once.
  func kill(_ reason: ExtensionFailure) {
    if self.reason == nil, exit == nil { self.reason = reason }
    kill()
  }

  private func kill() {
    if case .over = phase { return }
    phase = .ending
    stream.close()
    // A child that has ended reports that itself, and the processes that it had started were ended with it.
    guard exit == nil else { return }
    process?.killGroup(SIGKILL)
  }

  // MARK: Events of the child

  func streamReceived(_ bytes: UnsafeRawBufferPointer) {
    guard case .running = phase else { return }
    let isInBounds = lines.take(bytes) { line in
      guard let answer = ChildMessage.answer(line) else {
        kill(ExtensionFailure("its program has written a line that is no answer by JSON-RPC 2.0"))
        return false
      }
      if answer.isFinal { answers += 1 }
      owner?.said(answer)
      if case .running = phase { return true } else { return false }
    }
    if !isInBounds { kill(ExtensionFailure("its program has written a line of more than \(ExtensionMessage.longestAnswer) bytes")) }
  }

  func streamDrained() {}

  func streamEnded(_ end: StreamEnd) {
    isStreamOver = true
    settle()
  }

  private func exited(_ exit: ChildExit) {
    self.exit = exit
    // The processes that it has started must not outlive it.
    process?.killGroup(SIGKILL)
    settle()
  }

  private func settle() {
    guard let exit, isStreamOver else {
      // While its stream is open, its last answers may still arrive.
      if isStreamOver { phase = .ending }
      return limit()
    }
    phase = .over
    timer.close()
    process = nil
    let owner = self.owner
    self.owner = nil
    // A process that had already ended when it was killed has its own exit.
    let end = isOverdue && exit == .killed(signal: SIGKILL) ? "closed its output" : "ended \(exit.words)"
    owner?.ended(self, reason ?? ExtensionFailure("its program has \(end)"))
  }

  /// Ends everything that remains of it after a while.
  private func limit() {
    timer.handler = { [weak self] in
      guard let self else { return }
      isOverdue = exit == nil
      kill()
    }
    timer.start(after: Self.graceMilliseconds)
  }
}

extension ChildExit {
  fileprivate var words: String {
    switch self {
    case .exited(let code): "with the code \(code)"
    case .killed(let signal): "by the signal \(signal)"
    }
  }
}

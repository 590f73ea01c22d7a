import EventLoop
internal import Glibc
import Synchronization

/// The child's side of an extension beside the worker. It reads the worker's messages from standard input, and answers on standard output.
/// The extension's own output goes to standard error.
public final class ExtensionRunner: Sendable {
  private struct Call {
    let request: ExtensionRequest
    let bestAttempt: BestAttempt
    let task: Task<Void, Never>
  }

  private struct State {
    var work: Result<any ServiceExtension, ExtensionFailure> = .failure(ExtensionFailure("it was not told its settings"))
    var calls: [Int64: Call] = [:]
  }

  private let own: OwnExtension
  private let output: Output
  private let state = Mutex(State())

  /// The most changes of a best attempt that are sent at once. A later one is sent with the warning before the end.
  private static let maximumAttempts = ChildProgram.maximumAttempts / 2

  /// Takes over standard output; once in a process.
  public init(_ own: OwnExtension) {
    self.own = own
    output = Output()
  }

  /// Runs until the input has ended. Unfinished calls are given up then, and may still run, so the process must end.
  public func run() async {
    let thread = EventLoop(name: "input")
    try? await thread.run { [self] in read() }
    let work = state.withLock { state in
      for call in state.calls.values { call.task.cancel() }
      return try? state.work.get()
    }
    await work?.close()
    await thread.close()
  }

  /// Reads on a thread of its own, until the end.
  private func read() {
    var lines = LineSplitter(limit: Self.longestOrder)
    var buffer: [UInt8] = []
    while Descriptor.read(STDIN_FILENO, into: &buffer, limit: 1 << 16) > 0 {
      let isInBounds = buffer.withUnsafeBytes { bytes in
        lines.take(bytes) { line in
          // Unknown messages are for later programs.
          if let order = ChildMessage.order(line) { take(order) }
          return true
        }
      }
      guard isInBounds else { return }
      buffer.removeAll(keepingCapacity: true)
    }
  }

  /// A worker's line has one payload, with escaped characters.
  private static let longestOrder = 1 << 20

  private func take(_ order: ChildMessage.Order) {
    switch order {
    case .configure(let settings):
      let work: Result<any ServiceExtension, ExtensionFailure>
      do { work = .success(try own.make(settings)) } catch { work = .failure(ExtensionFailure("it refuses its settings: \(error)")) }
      state.withLock { $0.work = work }
    case .didReceive(let number, let request, let content): begin(number, request, content)
    case .timeWillExpire(let number): warn(number)
    case .cancel(let number): state.withLock { $0.calls[number]?.task.cancel() }
    }
  }

  private func begin(_ number: Int64, _ request: ExtensionRequest, _ content: MutableContent) {
    let told = Atomic(0)
    output.open(number)
    let attempt = BestAttempt(content) { [output, told] content in
      if told.add(1, ordering: .relaxed).newValue <= Self.maximumAttempts { output.attempt(content, of: number) }
    }
    // The task finds its call when it ends, so the call is stored before the task starts.
    state.withLock { state in
      let work = state.work
      state.calls[number] = Call(
        request: request, bestAttempt: attempt,
        task: Task {
          do {
            answer(number, .success(try await work.get().didReceive(request, attempt)))
          } catch {
            answer(number, .failure(error))
          }
        })
    }
  }

  private func warn(_ number: Int64) {
    let (call, work) = state.withLock { ($0.calls[number], try? $0.work.get()) }
    guard let call, let work else { return }
    Task {
      if let content = await work.serviceExtensionTimeWillExpire(call.request, call.bestAttempt) {
        answer(number, .success(content))
      } else {
        call.bestAttempt.update { output.attempt($0, of: number) }
      }
    }
  }

  private func answer(_ number: Int64, _ result: Result<MutableContent, any Error>) {
    guard let call = state.withLock({ $0.calls.removeValue(forKey: number) }) else { return }
    call.task.cancel()
    switch result {
    case .success(let content): output.end(number, ChildMessage.result(content, call: number))
    case .failure(let error): output.end(number, ChildMessage.failure(String("\(error)".prefix(1_000)), call: number))
    }
  }

  /// The destination of answers: a descriptor of its own, so that no other output is mixed with them. The messages of a call come before
  /// its end, and none after it.
  private final class Output: Sendable {
    private struct State {
      let descriptor: Int32
      var open: Set<Int64> = []
    }

    private let state: Mutex<State>

    init() {
      state = Mutex(State(descriptor: fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)))
      dup2(STDERR_FILENO, STDOUT_FILENO)
    }

    func open(_ number: Int64) { state.withLock { _ = $0.open.insert(number) } }

    /// The best attempt of a call. One that is too long is not sent.
    func attempt(_ content: MutableContent, of number: Int64) {
      let line = ChildMessage.bestAttempt(content, call: number)
      guard line.count <= ExtensionMessage.longestAnswer else { return }
      state.withLock { if $0.open.contains(number) { Self.write(line, to: $0.descriptor) } }
    }

    /// The end of a call; once.
    func end(_ number: Int64, _ line: SharedBytes) {
      let isInBounds = line.count <= ExtensionMessage.longestAnswer
      let line = isInBounds ? line : ChildMessage.failure("its result has more than \(ExtensionMessage.longestAnswer) bytes", call: number)
      state.withLock { if $0.open.remove(number) != nil { Self.write(line, to: $0.descriptor) } }
    }

    /// If nobody reads any more the input has ended, too.
    private static func write(_ line: SharedBytes, to descriptor: Int32) {
      _ = line.withUnsafeBytes { Descriptor.write($0, to: descriptor) }
    }
  }
}

import EventLoop
internal import Glibc
import JSON
import Synchronization

/// The child's side of an extension that runs beside the worker: it reads what the worker says from standard input, and answers on standard
/// output. What the extension itself prints goes to standard error.
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

  /// How many changes of a best attempt are told at once; a later one when the time is about to expire.
  private static let mostAttempts = ChildProgram.mostAttempts / 2

  /// Takes over standard output; once in a process.
  public init(_ own: OwnExtension) {
    self.own = own
    output = Output()
  }

  /// Runs until the input has ended. What has not come to its end then is given up, and may still run: the process is to end.
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
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return }
      let isInBounds = buffer.withUnsafeBytes { bytes in
        lines.take(UnsafeRawBufferPointer(rebasing: bytes[..<count])) { line in
          // What it does not know is for later programs.
          if let order = ChildMessage.order(line) { take(order) }
          return true
        }
      }
      guard isInBounds else { return }
    }
  }

  /// A worker's line has one payload, with whatever was escaped.
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
    let attempt = BestAttempt(content) { [output, told] content in
      if told.add(1, ordering: .relaxed).newValue <= Self.mostAttempts { output.write(ChildMessage.bestAttempt(content, call: number)) }
    }
    // The task finds its call when it ends: the call is there before the task is.
    state.withLock { state in
      let work = state.work
      state.calls[number] = Call(
        request: request, bestAttempt: attempt,
        task: Task {
          do {
            answer(number, ChildMessage.result(try await work.get().didReceive(request, attempt), call: number))
          } catch {
            answer(number, ChildMessage.failure("\(error)", call: number))
          }
        })
    }
  }

  private func warn(_ number: Int64) {
    let (call, work) = state.withLock { ($0.calls[number], try? $0.work.get()) }
    guard let call, let work else { return }
    Task {
      if let content = await work.serviceExtensionTimeWillExpire(call.request, call.bestAttempt) {
        answer(number, ChildMessage.result(content, call: number))
      } else {
        state.withLock { state in
          if state.calls[number] != nil { output.write(ChildMessage.bestAttempt(call.bestAttempt.content, call: number)) }
        }
      }
    }
  }

  /// Each call is answered once.
  private func answer(_ number: Int64, _ line: SharedBytes) {
    guard let call = state.withLock({ $0.calls.removeValue(forKey: number) }) else { return }
    call.task.cancel()
    output.write(line)
  }

  /// Where answers go: a descriptor of its own, so that nothing else that is printed stands among them.
  private final class Output: Sendable {
    private let descriptor: Mutex<Int32>

    init() {
      descriptor = Mutex(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3))
      dup2(STDERR_FILENO, STDOUT_FILENO)
    }

    /// Writes a whole line; when nobody reads any more the input has ended, too.
    func write(_ line: SharedBytes) {
      descriptor.withLock { descriptor in
        line.withUnsafeBytes { bytes in
          var rest = bytes[...]
          while !rest.isEmpty {
            let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
          }
        }
      }
    }
  }
}

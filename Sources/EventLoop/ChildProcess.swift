import CUV
import Glibc
import Synchronization

/// How a child process ended.
public enum ChildExit: Sendable, Hashable {
  /// It exited with this code.
  case exited(Int32)
  /// A signal ended it.
  case killed(signal: Int32)
}

/// The destination of a child's standard output and error.
public enum ChildOutput: Sendable {
  /// Those of the parent.
  case inherited
  /// Nowhere.
  case discarded
  /// Both go to a descriptor of the caller, such as a log file.
  case descriptor(Int32)
  /// Standard input and output are this connected socket, the other end of a ``Stream/pair(on:)``. The error output is the parent's.
  case socket(Int32)
}

/// A child process.
public final class ChildProcess: HandleOwner {
  private let loop: EventLoop
  private let handle: Handle<uv_process_t>
  private var onExit: ((ChildExit) -> Void)?

  /// The process id; it stays after the end.
  public private(set) var pid: Int32 = 0
  /// Whether it is running.
  public private(set) var isRunning = false

  private init(on loop: EventLoop, _ onExit: @escaping (ChildExit) -> Void) {
    self.loop = loop
    self.onExit = onExit
    // `uv_spawn` initializes the handle itself, even if it fails.
    handle = Handle(uv_process_t())
  }

  /// Starts a program. Its standard input is empty, unless the output is a socket.
  ///
  /// - Parameters:
  ///   - executable: a path, or a name in `PATH`.
  ///   - arguments: without the program's own name.
  ///   - environment: `NAME=value` each; nil for the parent's.
  ///   - endsWithParent: whether the kernel kills it when the thread of this loop ends, so that it does not outlive a killed parent. That
  ///     needs `setpriv` of util-linux, which Debian always has. Without it the child must notice by itself that it is alone. With it, a
  ///     program that cannot run ends with the code 126 or 127, where this call would throw.
  ///   - onExit: called once on the loop after its end.
  public static func spawn(
    on loop: EventLoop, executable: String, arguments: [String], environment: [String]? = nil, output: ChildOutput = .inherited,
    endsWithParent: Bool = false, _ onExit: @escaping (ChildExit) -> Void
  ) throws(EventLoopError) -> ChildProcess {
    loop.preconditionOnLoop()
    var words = [executable] + arguments
    if endsWithParent, let guardian { words = [guardian, "--pdeathsig", "KILL", "--"] + words }
    let child = ChildProcess(on: loop, onExit)
    let result = withoutSpawning {
      // C libraries open descriptors that a child would inherit. The ones that it is given are copied.
      carillon_close_others_on_exec()
      return child.start(words[0], words, environment, output)
    }
    child.handle.adopt(by: child)
    guard result == 0 else {
      child.handle.close()
      throw EventLoopError(result, "start \(executable)")
    }
    child.isRunning = true
    child.pid = child.handle.pointer.pointee.pid
    return child
  }

  private static let spawning = Mutex<Void>(())

  /// Runs `body` while no thread starts a child.
  ///
  /// A child inherits all open descriptors until it executes its program, and afterwards those that a C library has just made. An inherited
  /// listener keeps its port taken.
  public static func withoutSpawning<Value>(_ body: () throws -> Value) rethrows -> Value {
    try spawning.withLock { _ in try body() }
  }

  /// The program that asks the kernel to kill a process with its parent (`PR_SET_PDEATHSIG` of prctl(2)), and then executes another one.
  private static let guardian: String? = ["/usr/bin/setpriv", "/bin/setpriv"].first { (path: String) in access(path, X_OK) == 0 }

  private func start(_ executable: String, _ arguments: [String], _ environment: [String]?, _ output: ChildOutput) -> Int32 {
    var arguments: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    var environment: [UnsafeMutablePointer<CChar>?] = (environment ?? []).map { strdup($0) } + (environment == nil ? [] : [nil])
    defer { for text in arguments + environment { free(text) } }
    let descriptors: [Int32?] =
      switch output {
      case .inherited: [nil, 1, 2]
      case .discarded: [nil, nil, nil]
      case .descriptor(let descriptor): [nil, descriptor, descriptor]
      case .socket(let socket): [socket, socket, 2]
      }
    var channels = descriptors.map { descriptor in
      var channel = uv_stdio_container_t()
      channel.flags = descriptor == nil ? UV_IGNORE : UV_INHERIT_FD
      if let descriptor { channel.data.fd = descriptor }
      return channel
    }
    return executable.withCString { file in
      arguments.withUnsafeMutableBufferPointer { arguments in
        environment.withUnsafeMutableBufferPointer { environment in
          channels.withUnsafeMutableBufferPointer { channels in
            var options = uv_process_options_t()
            options.file = file
            options.args = arguments.baseAddress
            options.env = environment.isEmpty ? nil : environment.baseAddress
            options.stdio = channels.baseAddress
            options.stdio_count = 3
            // A process group of its own: Ctrl-C at the terminal reaches only the parent, which ends the child in order.
            options.flags = UInt32(UV_PROCESS_DETACHED.rawValue)
            options.exit_cb = { handle, status, signal in
              owner(handle, as: ChildProcess.self)?.ended(
                signal == 0 ? .exited(Int32(truncatingIfNeeded: status)) : .killed(signal: signal))
            }
            return uv_spawn(loop.uv, handle.pointer, &options)
          }
        }
      }
    }
  }

  private func ended(_ exit: ChildExit) {
    isRunning = false
    handle.close()
    let onExit = self.onExit
    self.onExit = nil
    onExit?(exit)
  }

  /// Sends a signal. It does nothing after the process has ended.
  public func kill(_ signal: Int32) {
    loop.preconditionOnLoop()
    if isRunning { uv_process_kill(handle.pointer, signal) }
  }

  /// Sends a signal to the process and its descendants that are in its group. After its end it reaches the remaining ones, until `onExit`
  /// returns.
  public func killGroup(_ signal: Int32) {
    loop.preconditionOnLoop()
    if pid > 0 { Glibc.kill(-pid, signal) }
  }

  /// Limits the memory that the process may allocate from now on, in bytes.
  ///
  /// It limits private writable pages (`RLIMIT_DATA` of prlimit(2)), including thread stacks. Beyond the limit an allocation fails, and
  /// most programs end.
  ///
  /// - Returns: false if the system refuses the limit.
  public func limitMemory(bytes: Int) -> Bool {
    loop.preconditionOnLoop()
    return isRunning && carillon_limit_data(pid, UInt64(bytes)) == 0
  }

  func handleClosed() {
    isRunning = false
    onExit = nil
  }
}

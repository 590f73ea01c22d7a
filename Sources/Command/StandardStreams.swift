import Glibc
import JSON
import Synchronization
import Worker

/// The descriptors 0 to 2 of this process.
enum StandardStreams {
  /// Opens those that are closed on `/dev/null`, and has a closed pipe be an error of the writing instead of a signal.
  ///
  /// It comes before everything else: the next file or socket would get the lowest free number, and then log lines would go into it, or
  /// libuv, which never closes the first three, would abort.
  static func prepare() {
    signal(SIGPIPE, SIG_IGN)
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest free number is this one, for those below it are open by now.
      guard open("/dev/null", O_RDWR) == descriptor else { _exit(ExitCode.dependencyMissing.rawValue) }
    }
  }
}

/// The process' standard output: what a command answers, buffered until `flush` or until the buffer is full. From any thread.
enum StandardOutput {
  /// What happens when it cannot be written.
  enum FailurePolicy {
    /// The process ends with exit code 3: nobody would see what it answers.
    case end
    /// Answers go to standard error from then on, for they tell what cannot be taken back; the command ends in order.
    case useStandardError
    /// The answer is lost: the process serves others, and goes on.
    case ignore
  }

  private struct State {
    var buffer: [UInt8] = []
    var policy = FailurePolicy.end
    /// What went wrong first, as `errno` says it.
    var failure: Int32?
  }

  private static let flushBytes = 1 << 16
  private static let state = Mutex(State())

  /// Says what happens when it cannot be written; `end` unless it is said.
  static func whenItFails(_ policy: FailurePolicy) { state.withLock { $0.policy = policy } }

  /// Why it could not be written, in words; nil as long as it could.
  static var failure: String? { state.withLock { $0.failure.map(words) } }

  /// Appends text as it is.
  static func write(_ text: String) {
    var text = text
    text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
  }

  /// Appends bytes as they are.
  static func write(_ bytes: UnsafeRawBufferPointer) {
    state.withLock { state in
      state.buffer.append(contentsOf: bytes)
      if state.buffer.count >= flushBytes { empty(&state) }
    }
  }

  /// Appends text and the end of a line.
  static func line(_ text: String) { write(text + "\n") }

  /// Appends an object of JSON and the end of a line, without what a terminal would obey.
  static func json(_ text: String) { line(PrintedJSON.text(text)) }

  /// Gives what is buffered to the reader.
  static func flush() { state.withLock { empty(&$0) } }

  private static func empty(_ state: inout State) {
    guard !state.buffer.isEmpty else { return }
    defer { state.buffer.removeAll(keepingCapacity: true) }
    state.buffer.withUnsafeBytes { bytes in
      var rest = bytes[...]
      if state.failure == nil {
        let endsLine = bytes.last == UInt8(ascii: "\n")
        rest = rest.dropFirst(TypedLine.above(endsLine: endsLine) { Descriptor.write(bytes, to: STDOUT_FILENO) })
        if rest.isEmpty { return }
        state.failure = errno
        report(errno, state.policy)
      }
      if state.policy == .useStandardError { _ = Descriptor.write(UnsafeRawBufferPointer(rebasing: rest), to: STDERR_FILENO) }
    }
  }

  private static func report(_ error: Int32, _ policy: FailurePolicy) {
    switch policy {
    case .end:
      // A reader that has seen enough, such as head, is no news to anybody.
      if error != EPIPE { StandardError.line(words(error)) }
      TerminalMode.leave()
      _exit(ExitCode.dependencyMissing.rawValue)
    case .useStandardError: StandardError.line("\(words(error)); its lines follow here")
    case .ignore: break
    }
  }

  private static func words(_ error: Int32) -> String { "standard output cannot be written: \(String(cString: strerror(error)))" }
}

/// The process' standard error: what is said beside the answer, unbuffered. From any thread.
enum StandardError {
  /// Whether a person reads it.
  static let isTerminal = isatty(STDERR_FILENO) == 1

  /// A line that names the program, as errors and warnings do. What is not visible in it is escaped: it may repeat what somebody typed.
  static func line(_ text: String) { plain("carillon: \(PrintedText.escaped(text))") }

  /// A line as it is.
  static func plain(_ text: String) {
    var text = text + "\n"
    text.withUTF8 { bytes in
      _ = TypedLine.above(endsLine: true) { Descriptor.write(UnsafeRawBufferPointer(bytes), to: STDERR_FILENO) }
    }
  }
}

/// Writing and reading whole texts where the thread may block.
enum Descriptor {
  /// Writes all of it.
  ///
  /// - Returns: how many bytes were written; fewer than all of them, with `errno`, when the rest cannot be.
  static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&wanted, 1, -1)
      } else if errno != EINTR {
        break
      }
    }
    return bytes.count - rest.count
  }

  /// Appends what can be read at once, `limit` bytes at most, waiting for the first of them.
  ///
  /// - Returns: how many were appended; 0 at the end, -1 with `errno` when it cannot be read.
  static func read(_ descriptor: Int32, into buffer: inout [UInt8], limit: Int) -> Int {
    withUnsafeTemporaryAllocation(byteCount: limit, alignment: 8) { chunk in
      while true {
        let count = Glibc.read(descriptor, chunk.baseAddress, limit)
        if count > 0 { buffer.append(contentsOf: chunk[..<count]) }
        if count >= 0 { return count }
        if errno == EAGAIN {
          var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
          poll(&wanted, 1, -1)
        } else if errno != EINTR {
          return -1
        }
      }
    }
  }

  /// The whole of a file, or of standard input for `-`.
  static func contents(of path: String, limit: Int) throws(Failure) -> [UInt8] {
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw unreadable(path) }
    defer { if path != "-" { close(descriptor) } }
    var bytes: [UInt8] = []
    while bytes.count <= limit {
      let count = read(descriptor, into: &bytes, limit: 1 << 16)
      if count < 0 { throw unreadable(path) }
      if count == 0 { return bytes }
    }
    throw Failure(.wrongUsage, "\(name(path)) has more than \(limit) bytes")
  }

  /// How a message calls a file.
  static func name(_ path: String) -> String { path == "-" ? "standard input" : path }

  static func unreadable(_ path: String) -> Failure {
    Failure(.wrongUsage, "\(name(path)) cannot be read: \(String(cString: strerror(errno)))")
  }
}

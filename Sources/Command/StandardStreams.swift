import EventLoop
import Glibc
import JSON
import Synchronization
import Worker

/// The descriptors 0 to 2 of this process.
enum StandardStreams {
  /// Opens closed descriptors on `/dev/null`, and makes a closed pipe an error instead of a signal.
  ///
  /// It must run first. Otherwise the next file or socket would get a free number of these. Log lines would go into it, or libuv, which
  /// never closes the first three, would abort.
  static func prepare() {
    signal(SIGPIPE, SIG_IGN)
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // `open` returns this number, because it is the lowest free one.
      guard open("/dev/null", O_RDWR) == descriptor else { _exit(ExitCode.dependencyMissing.rawValue) }
    }
  }
}

/// The process' standard output, buffered until `flush` or until the buffer is full. From any thread.
enum StandardOutput {
  /// The reaction to a failed write.
  enum FailurePolicy {
    /// The process ends with exit code 3, since nobody would see the answer.
    case end
    /// Later answers go to standard error, since they tell of work that cannot be undone. The command ends in order.
    case useStandardError
    /// The answer is lost, and the process continues to serve others.
    case ignore
  }

  private struct State {
    var buffer: [UInt8] = []
    var policy = FailurePolicy.end
    /// The first error, as `errno`.
    var failure: Int32?
  }

  private static let flushBytes = 1 << 16
  private static let state = Mutex(State())

  /// Sets the reaction to a failed write; `end` by default.
  static func whenItFails(_ policy: FailurePolicy) { state.withLock { $0.policy = policy } }

  /// Why writing failed, in words; nil if it has not.
  static var failure: String? { state.withLock { $0.failure.map(words) } }

  /// Appends text.
  static func write(_ text: String) {
    var text = text
    text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
  }

  /// Appends bytes.
  static func write(_ bytes: UnsafeRawBufferPointer) {
    state.withLock { state in
      state.buffer.append(contentsOf: bytes)
      if state.buffer.count >= flushBytes { empty(&state) }
    }
  }

  /// Appends text and the end of a line.
  static func line(_ text: String) { write(text + "\n") }

  /// Appends a JSON object and the end of a line, without control characters for a terminal.
  static func json(_ text: String) { line(PrintedJSON.text(text)) }

  /// Writes the buffer.
  static func flush() { state.withLock { empty(&$0) } }

  /// Writes bytes past the buffer, for a caller that has one; ends the process with exit code 3 if that fails.
  ///
  /// Where nobody reads it waits, and holds up nobody else.
  static func writeUnbuffered(_ bytes: ArraySlice<UInt8>) {
    bytes.withUnsafeBytes { bytes in
      if Descriptor.write(bytes, to: STDOUT_FILENO) < bytes.count { report(errno, .end) }
    }
  }

  private static func empty(_ state: inout State) {
    guard !state.buffer.isEmpty else { return }
    defer { state.buffer.removeAll(keepingCapacity: true) }
    state.buffer.withUnsafeBytes { bytes in
      var rest = bytes[...]
      if state.failure == nil {
        rest = rest.dropFirst(Descriptor.write(bytes, to: STDOUT_FILENO))
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
      // A reader that has closed the pipe, such as head, needs no error message.
      if error != EPIPE { StandardError.line(words(error)) }
      _exit(ExitCode.dependencyMissing.rawValue)
    case .useStandardError: StandardError.line("\(words(error)); its lines follow here")
    case .ignore: break
    }
  }

  private static func words(_ error: Int32) -> String { "standard output cannot be written: \(String(cString: strerror(error)))" }
}

/// The process' standard error, unbuffered. From any thread.
enum StandardError {
  /// Whether it is a terminal.
  static let isTerminal = isatty(STDERR_FILENO) == 1

  /// Writes a line with the program's name. Invisible characters are escaped, since it may repeat typed text.
  static func line(_ text: String) { plain("carillon: \(PrintedText.escaped(text))") }

  /// Writes a line with the program's name, unless the reader takes nothing at the moment.
  static func lineIfRead(_ text: String) {
    var reader = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    guard poll(&reader, 1, 0) == 1, reader.revents & Int16(POLLOUT) != 0 else { return }
    var text = "carillon: \(PrintedText.escaped(text))\n"
    text.withUTF8 { _ = Descriptor.write(UnsafeRawBufferPointer($0), to: STDERR_FILENO) }
  }

  /// Writes a line.
  static func plain(_ text: String) {
    var text = text + "\n"
    text.withUTF8 { _ = Descriptor.write(UnsafeRawBufferPointer($0), to: STDERR_FILENO) }
  }
}

extension Descriptor {
  /// Reads a whole file, or standard input for `-`.
  static func contents(of path: String, limit: Int) throws(Failure) -> [UInt8] {
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw unreadable(path) }
    defer { if path != "-" { close(descriptor) } }
    guard let bytes = readAll(descriptor, limit: limit) else { throw unreadable(path) }
    guard bytes.count <= limit else { throw Failure(.wrongUsage, "\(name(path)) has more than \(limit) bytes") }
    return bytes
  }

  /// The name of a file in messages.
  static func name(_ path: String) -> String { path == "-" ? "standard input" : path }

  static func unreadable(_ path: String) -> Failure {
    Failure(.wrongUsage, "\(name(path)) cannot be read: \(String(cString: strerror(errno)))")
  }
}

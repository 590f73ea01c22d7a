import Glibc
import Synchronization
import Worker

/// The process' standard output: what a command answers, buffered until `flush` or until the buffer is full. From any thread.
enum StandardOutput {
  private static let flushBytes = 1 << 16
  private static let buffer = Mutex<[UInt8]>([])

  /// Appends text as it is.
  static func write(_ text: String) {
    var text = text
    text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
  }

  /// Appends bytes as they are.
  static func write(_ bytes: UnsafeRawBufferPointer) {
    buffer.withLock { buffer in
      buffer.append(contentsOf: bytes)
      if buffer.count >= flushBytes { give(&buffer, isWanted: true) }
    }
  }

  /// Appends text and the end of a line.
  static func line(_ text: String) { write(text + "\n") }

  /// Gives what is buffered to the reader.
  ///
  /// - Parameter isWanted: whether the process is of no use without its reader; it then ends as `SIGPIPE` would have ended it.
  static func flush(isWanted: Bool = true) { buffer.withLock { give(&$0, isWanted: isWanted) } }

  private static func give(_ buffer: inout [UInt8], isWanted: Bool) {
    defer { buffer.removeAll(keepingCapacity: true) }
    let isWhole = buffer.withUnsafeBytes { Descriptor.write($0, to: STDOUT_FILENO) }
    guard !isWhole, isWanted else { return }
    guard errno == EPIPE else {
      StandardError.line("standard output cannot be written: \(String(cString: strerror(errno)))")
      exit(3)
    }
    // The loop ignores the signal so that sockets can break; for a tool in a pipeline it is the usual end.
    signal(SIGPIPE, SIG_DFL)
    raise(SIGPIPE)
  }
}

/// The process' standard error: what is said beside the answer, unbuffered. From any thread.
enum StandardError {
  /// Whether a person reads it.
  static let isTerminal = isatty(STDERR_FILENO) == 1

  /// A line that names the program, as errors and warnings do.
  static func line(_ text: String) { plain("carillon: \(text)") }

  /// A line as it is.
  static func plain(_ text: String) {
    var text = text + "\n"
    text.withUTF8 { _ = Descriptor.write(UnsafeRawBufferPointer($0), to: STDERR_FILENO) }
  }
}

/// Writing and reading whole texts where the thread may block.
enum Descriptor {
  /// Writes all of it; false with `errno` when that is impossible.
  static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&wanted, 1, -1)
      } else if errno != EINTR {
        return false
      }
    }
    return true
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

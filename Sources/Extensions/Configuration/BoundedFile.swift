internal import Glibc
import Notifications

/// Reads the files that the extensions' file names. The calls block, so they are made at the start, or on a thread of their own.
enum BoundedFile {
  /// The content of a regular file; nil if it is missing. From a file larger than `limit` it reads one byte more than that.
  static func read(_ path: String, limit: Int) throws(FieldError) -> [UInt8]? {
    // Without blocking, since opening a FIFO waits for a writer.
    let file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw unreadable(path)
    }
    defer { close(file) }
    var facts = stat()
    guard fstat(file, &facts) == 0 else { throw unreadable(path) }
    guard facts.st_mode & S_IFMT == S_IFREG else { throw FieldError(field: path, rule: "only a regular file is read") }
    // It may have grown since its size was read.
    var bytes = [UInt8](repeating: 0, count: min(limit, max(0, Int(facts.st_size))) + 1)
    var count = 0
    while true {
      if count == bytes.count {
        guard count <= limit else { return bytes }
        bytes.append(contentsOf: repeatElement(0, count: min(limit + 1 - count, 1 << 16)))
      }
      let read = bytes.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress.map { $0 + count }, $0.count - count) }
      if read == 0 { return Array(bytes[..<count]) }
      if read > 0 { count += read } else if errno != EINTR { throw unreadable(path) }
    }
  }

  /// An error from `errno`.
  private static func unreadable(_ path: String) -> FieldError {
    FieldError(field: path, rule: "cannot be read: \(String(cString: strerror(errno)))")
  }
}

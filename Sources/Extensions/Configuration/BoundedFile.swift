internal import EventLoop
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
    guard let bytes = Descriptor.readAll(file, limit: limit) else { throw unreadable(path) }
    return bytes
  }

  /// An error from `errno`.
  private static func unreadable(_ path: String) -> FieldError {
    FieldError(field: path, rule: "cannot be read: \(String(cString: strerror(errno)))")
  }
}

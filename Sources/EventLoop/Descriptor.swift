import Glibc

/// Blocking reads and writes of a descriptor, which go on after an interruption.
public enum Descriptor {
  /// Writes all bytes.
  ///
  /// - Returns: how many bytes were written; fewer than all, with `errno`, after an error.
  public static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      if count >= 0 { rest = rest.dropFirst(count) } else if !mayGoOn(descriptor, POLLOUT) { break }
    }
    return bytes.count - rest.count
  }

  /// Appends the bytes that are available, at most `limit`, and waits for the first of them.
  ///
  /// - Returns: how many bytes were appended; 0 at the end, -1 with `errno` after an error.
  public static func read(_ descriptor: Int32, into buffer: inout [UInt8], limit: Int) -> Int {
    withUnsafeTemporaryAllocation(byteCount: limit, alignment: 8) { chunk in
      while true {
        let count = Glibc.read(descriptor, chunk.baseAddress, limit)
        if count > 0 { buffer.append(contentsOf: chunk[..<count]) }
        if count >= 0 || !mayGoOn(descriptor, POLLIN) { return count }
      }
    }
  }

  /// Reads to the end, or until there are more than `limit` bytes; nil with `errno` after an error.
  public static func readAll(_ descriptor: Int32, limit: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count <= limit {
      let count = read(descriptor, into: &bytes, limit: min(limit + 1, 1 << 16))
      if count < 0 { return nil }
      if count == 0 { break }
    }
    return bytes
  }

  /// Writes what a folder lists to the disk; false with `errno` after an error.
  public static func sync(folder: String) -> Bool {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return fsync(descriptor) == 0
  }

  /// Whether the last call was only interrupted, or would have blocked. Then it waits until the next may do something.
  private static func mayGoOn(_ descriptor: Int32, _ event: Int32) -> Bool {
    guard errno == EAGAIN else { return errno == EINTR }
    var wanted = pollfd(fd: descriptor, events: Int16(event), revents: 0)
    poll(&wanted, 1, -1)
    return true
  }
}

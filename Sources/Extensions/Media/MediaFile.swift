public import EventLoop
internal import Glibc
public import Notifications

/// A file of the media store that is being read. All calls block.
public final class MediaFile {
  /// The number of its descriptor.
  public let descriptor: Int32
  /// Its bytes.
  public let size: Int
  /// Its type.
  public let type: MediaType
  private var isClosed = false

  /// Takes over an open file; nil if it has none of the types.
  init?(_ descriptor: Int32, size: Int) {
    var beginning = [UInt8](repeating: 0, count: MediaType.tellingBytes)
    let count = pread(descriptor, &beginning, beginning.count, 0)
    guard count > 0, let type = MediaType(beginning: beginning.prefix(count)) else { return nil }
    (self.descriptor, self.size, self.type) = (descriptor, size, type)
  }

  /// Reads up to `count` bytes from a place; none at the end, and on an error.
  public func read(at place: Int, atMost count: Int) -> SharedBytes {
    SharedBytes.make(capacity: count) { buffer in
      while true {
        let count = pread(descriptor, buffer.baseAddress, count, off_t(place))
        if count < 0, errno == EINTR { continue }
        return max(0, count)
      }
    }
  }

  /// Closes the file.
  public func close() {
    guard !isClosed else { return }
    isClosed = true
    Glibc.close(descriptor)
  }

  deinit { close() }
}

import EventLoop
import Glibc

/// Reads the lines of a file, a pipe or standard input in bounded memory. It blocks, so never use it on a loop.
struct LineReader: ~Copyable {
  /// The longest line: more than a payload of the largest size with every byte escaped.
  static let longestLine = 1 << 20

  private let path: String
  private let place: String?
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private var lines = 0
  private var isSkipping = false
  private var isAtEnd = false

  /// Opens a file; `-` is standard input.
  ///
  /// - Parameter place: where the path was given, for the beginning of errors: `--lines`; nil if it was not.
  init(path: String, givenAt place: String? = nil) throws(Failure) {
    (self.path, self.place) = (path, place)
    descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 { throw unreadable() }
  }

  private func unreadable() -> Failure {
    let failure = Descriptor.unreadable(path)
    return place.map(failure.named) ?? failure
  }

  deinit { if descriptor > STDIN_FILENO { close(descriptor) } }

  /// Reads what is available, at least a part, and hands out complete lines with their numbers; false at the end.
  ///
  /// A line that is too long is nil, as soon as that is known: its end may never come. Empty lines are skipped.
  mutating func next(_ body: (Int, UnsafeRawBufferPointer?) -> Void) throws(Failure) -> Bool {
    guard !isAtEnd else { return false }
    var bytes: [UInt8] = []
    swap(&bytes, &buffer)
    let count = Descriptor.read(descriptor, into: &bytes, limit: 1 << 16)
    if count < 0 { throw unreadable() }
    isAtEnd = count == 0
    var taken = 0
    bytes.withUnsafeBytes { bytes in
      while let end = bytes[taken...].firstIndex(of: UInt8(ascii: "\n")) {
        give(bytes[taken..<end], body)
        taken = end + 1
      }
      if isAtEnd, taken < bytes.count {
        give(bytes[taken...], body)
        taken = bytes.count
      }
    }
    bytes.removeFirst(taken)
    if bytes.count > Self.longestLine || isSkipping {
      bytes.removeAll()
      if !isSkipping { body(lines + 1, nil) }
      isSkipping = true
    }
    buffer = bytes
    return true
  }

  private mutating func give(_ line: Slice<UnsafeRawBufferPointer>, _ body: (Int, UnsafeRawBufferPointer?) -> Void) {
    lines += 1
    let wasSkipping = isSkipping
    isSkipping = false
    if wasSkipping { return }
    let isBlank = line.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
    if !isBlank { body(lines, UnsafeRawBufferPointer(rebasing: line)) }
  }
}

public import Foundation
import Glibc

/// A terminal for one process: what a test runs under it believes that a person sits there.
public final class PseudoTerminal {
  /// The process' end: for its standard output, or its standard error.
  public let terminal: FileHandle
  private let controller: FileHandle
  /// `TIOCSPTLCK` and `TIOCGPTN` of Linux, which Swift does not import: unlock the other end, and ask for its number.
  private static let (unlock, number): (UInt, UInt) = (0x4004_5431, 0x8004_5430)

  /// Makes a terminal with lines of so many characters.
  public init(width: UInt16, height: UInt16 = 24) throws {
    let descriptor = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (number, lock): (UInt32, Int32) = (0, 0)
    guard descriptor >= 0, ioctl(descriptor, Self.unlock, &lock) == 0, ioctl(descriptor, Self.number, &number) == 0 else {
      throw CommandFailure(description: "there is no pseudo terminal: \(String(cString: strerror(errno)))")
    }
    controller = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    let other = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard other >= 0 else { throw CommandFailure(description: "the pseudo terminal cannot be opened: \(String(cString: strerror(errno)))") }
    terminal = FileHandle(fileDescriptor: other, closeOnDealloc: true)
    guard fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else { throw Self.noSize }
    try resize(width: width, height: height)
  }

  /// Gives it another size; the process is told by SIGWINCH, which the test sends.
  public func resize(width: UInt16, height: UInt16) throws {
    var size = winsize(ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0)
    guard ioctl(terminal.fileDescriptor, UInt(TIOCSWINSZ), &size) == 0 else { throw Self.noSize }
  }

  private static var noSize: CommandFailure {
    CommandFailure(description: "the pseudo terminal takes no size: \(String(cString: strerror(errno)))")
  }

  /// Types a text.
  public func type(_ text: String) throws { try controller.write(contentsOf: Data(text.utf8)) }

  /// What the process has written since it was asked last. A terminal holds a few kilobytes until they are read.
  public func read() -> String {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    var text: [UInt8] = []
    while case let count = Glibc.read(controller.fileDescriptor, &bytes, bytes.count), count > 0 { text += bytes[..<count] }
    return String(decoding: text, as: UTF8.self).replacingOccurrences(of: "\r\n", with: "\n")
  }

  /// Reads until a text has come, and answers all that came.
  ///
  /// - Parameter process: the process under it; when that ends before, the error says what it wrote to standard error.
  public func read(until wanted: String, of process: RunningCommand? = nil) async throws -> String {
    var text = ""
    try await requireEventually("'\(wanted)' comes: \(text)\(process?.errorsSoFar ?? "")") {
      let hasEnded = process?.hasEnded == true
      text += read()
      if text.contains(wanted) { return true }
      if hasEnded {
        throw CommandFailure(description: "'\(wanted)' did not come before its process ended: \(text)\(process?.errorsSoFar ?? "")")
      }
      return false
    }
    return text
  }
}

import EventLoop
import Glibc
import JSON

/// A file that a setting names, read at once: a regular file of limited size.
///
/// Other kinds are refused, because a FIFO or a device could block the start for ever.
public struct InputFile: Sendable {
  /// Its path, as it was given.
  public let path: String
  /// Its content.
  public let bytes: [UInt8]
  /// Whether others may read or change it, which a secret must not allow. Of a file of another owner, such as one of a mounted Secret, the
  /// group may be how this process reads it.
  public let isExposed: Bool

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - place: where its path was given, for the beginning of errors: `--key-file`.
  ///   - limit: the most bytes.
  public init(path: String, givenAt place: String, limit: Int) throws(UsageError) {
    func unreadable(_ reason: String) -> UsageError { UsageError(.unreadableFile, "\(place): \(PrintedText.echo(path)) \(reason)") }
    func failed() -> UsageError { unreadable("cannot be read: \(String(cString: strerror(errno)))") }

    // Without blocking: opening a FIFO would wait for a writer.
    let file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    guard file >= 0 else { throw failed() }
    defer { close(file) }
    var facts = stat()
    guard fstat(file, &facts) == 0 else { throw failed() }
    guard facts.st_mode & S_IFMT == S_IFREG else { throw unreadable("is \(Self.kind(facts.st_mode)): it must be a regular file") }
    guard let bytes = Descriptor.readAll(file, limit: limit) else { throw failed() }
    guard bytes.count <= limit else { throw unreadable("is too large: it may have \(ByteSize.text(limit))") }
    self.path = path
    self.bytes = bytes
    isExposed = facts.st_mode & (facts.st_uid == geteuid() ? 0o077 : 0o027) != 0
  }

  private static func kind(_ mode: mode_t) -> String {
    switch mode & S_IFMT {
    case S_IFDIR: "a directory"
    case S_IFIFO: "a FIFO"
    case S_IFCHR, S_IFBLK: "a device"
    default: "no file"
    }
  }
}

extension SettingValues {
  /// Reads the file that a setting names.
  ///
  /// - Parameter limit: the most bytes.
  public func file(_ setting: Setting<String>, limit: Int) throws(UsageError) -> InputFile {
    try InputFile(path: self[setting], givenAt: name(of: setting), limit: limit)
  }

  /// Reads the file that a setting names; nil if it names none.
  public func file(_ setting: Setting<String?>, limit: Int) throws(UsageError) -> InputFile? {
    guard let path = self[setting] else { return nil }
    return try InputFile(path: path, givenAt: name(of: setting), limit: limit)
  }

  /// Reads the files that a setting names.
  ///
  /// - Parameter limit: the most bytes of each.
  public func files(_ setting: Setting<[String]>, limit: Int) throws(UsageError) -> [InputFile] {
    var files: [InputFile] = []
    for path in self[setting] { files.append(try InputFile(path: path, givenAt: name(of: setting), limit: limit)) }
    return files
  }
}

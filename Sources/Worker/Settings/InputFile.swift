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
  /// Whether others may read or change it, which a secret must not allow. A mounted Secret's file is root's, and this process reads it as a
  /// member of its group.
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
    let isOfGroup = facts.st_uid == 0 && geteuid() != 0 && Self.isMember(of: facts.st_gid)
    isExposed = facts.st_mode & (isOfGroup ? 0o027 : 0o077) != 0
  }

  private static func isMember(of group: gid_t) -> Bool {
    guard group != getegid() else { return true }
    var groups = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
    let count = getgroups(Int32(groups.count), &groups)
    return groups.prefix(max(0, Int(count))).contains(group)
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

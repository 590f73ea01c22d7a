import EventLoop
import Glibc
import Worker

/// The folder for the file of a running `carillon up`, which only its user can enter.
///
/// It is checked and kept open by a descriptor, and its files are opened in it, since a path could lead elsewhere later.
final class RuntimeFolder: Sendable {
  /// Its path, for messages.
  let path: String
  private let descriptor: Int32

  /// Opens the folder of this user for `carillon up` and the tools. It is the first place that no other user has taken.
  ///
  /// - Parameters:
  ///   - places: the possible places, the best one first.
  ///   - creating: whether to create it if it is missing.
  /// - Returns: nil if it is missing and not created.
  /// - Throws: why each place is refused.
  static func open(in places: [String] = places(), creating: Bool) throws(Failure) -> RuntimeFolder? {
    var refusals: [String] = []
    var missing: [String] = []
    // An existing folder comes before a better place: another user may have held that place when `up` began.
    for path in places {
      let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      if descriptor < 0, errno == ENOENT {
        missing.append(path)
      } else if descriptor >= 0, let folder = .some(RuntimeFolder(path, descriptor)), folder.isPrivate {
        return folder
      } else {
        refusals.append("\(path) is not a folder of your own with mode 0700: remove it")
      }
    }
    if !creating, !missing.isEmpty { return nil }
    for path in missing {
      if mkdir(path, 0o700) != 0, errno != EEXIST {
        refusals.append("\(path) cannot be made: \(String(cString: strerror(errno)))")
      } else if let folder = try open(in: [path], creating: false) {
        return folder
      }
    }
    let none = "neither XDG_RUNTIME_DIR nor /tmp nor HOME is a folder to write to"
    throw Failure(.wrongUsage, refusals.isEmpty ? none : refusals.joined(separator: "; "))
  }

  /// `$XDG_RUNTIME_DIR/carillon`, `/tmp/carillon-UID` (or in `$TMPDIR` if set), and `~/.carillon`, which no other user can take.
  static func places(_ variable: (String) -> String? = { try? CommandLineProgram.processEnvironment($0) }) -> [String] {
    func folder(_ name: String, isOwn: Bool) -> String? {
      var facts = stat()
      guard let path = variable(name), path.hasPrefix("/"), stat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFDIR else { return nil }
      return (!isOwn || facts.st_uid == getuid()) && access(path, W_OK | X_OK) == 0 ? path : nil
    }
    let temporary = folder("TMPDIR", isOwn: false) ?? (access("/tmp", W_OK | X_OK) == 0 ? "/tmp" : nil)
    return [
      folder("XDG_RUNTIME_DIR", isOwn: true).map { $0 + "/carillon" }, temporary.map { $0 + "/carillon-\(getuid())" },
      folder("HOME", isOwn: true).map { $0 + "/.carillon" },
    ].compactMap(\.self)
  }

  private init(_ path: String, _ descriptor: Int32) { (self.path, self.descriptor) = (path, descriptor) }

  deinit { close(descriptor) }

  /// Whether no other user can write here, and so none has.
  private var isPrivate: Bool {
    var facts = stat()
    return fstat(descriptor, &facts) == 0 && facts.st_uid == getuid() && facts.st_mode & 0o077 == 0
  }

  /// Opens a file in it; -1 with `errno` on failure.
  func open(_ name: String, _ flags: Int32) -> Int32 { openat(descriptor, name, flags | O_NOFOLLOW | O_CLOEXEC, 0o600 as mode_t) }

  /// The bytes of a file in it, at most `limit`; nil if it is missing, or another user has written it.
  func contents(of name: String, limit: Int) -> [UInt8]? {
    let file = open(name, O_RDONLY | O_NONBLOCK)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var facts = stat()
    guard fstat(file, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG, facts.st_uid == getuid(), facts.st_mode & 0o022 == 0 else {
      return nil
    }
    return Descriptor.readAll(file, limit: limit).flatMap { $0.count <= limit ? $0 : nil }
  }

  /// Renames a file in it; false with `errno` on failure.
  func rename(_ name: String, to other: String) -> Bool { renameat(descriptor, name, descriptor, other) == 0 }

  /// Removes a file in it.
  func remove(_ name: String) { unlinkat(descriptor, name, 0) }
}

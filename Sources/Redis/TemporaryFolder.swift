import EventLoop
import Glibc

/// The folder of a private server, removed with it.
///
/// It is locked while its process lives. An unlocked one belongs to a killed process, and the next process that makes a folder removes it.
struct TemporaryFolder: Sendable {
  let path: String
  private let lock: Int32

  private static let prefix = "carillon-redis-"
  /// Between making a folder and locking it there is a moment.
  private static let minimumAgeSeconds = 60

  init() throws(RedisError) {
    let wanted = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    // A socket's path has at most 107 bytes.
    let parent = wanted.utf8.count < 80 ? wanted : "/tmp"
    Self.removeLeft(in: parent)
    var bytes = Array("\(parent)/\(Self.prefix)XXXXXX".utf8CString)
    guard mkdtemp(&bytes) != nil else {
      throw RedisError(.serverFailed, "cannot make a folder \(parent)/\(Self.prefix)…: \(String(cString: strerror(errno)))")
    }
    path = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    lock = Self.lock(path) ?? -1
  }

  /// Removes the folder and its contents.
  func remove() {
    Self.remove(path)
    if lock >= 0 { close(lock) }
  }

  /// The descriptor that holds the lock; nil if another process has it.
  private static func lock(_ path: String) -> Int32? {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
    close(descriptor)
    return nil
  }

  private static func removeLeft(in parent: String) {
    for name in (try? FolderNames.read(parent)) ?? [] {
      let path = "\(parent)/\(name)"
      var status = stat()
      guard name.hasPrefix(prefix), lstat(path, &status) == 0, status.st_uid == getuid() else { continue }
      guard time(nil) - status.st_mtim.tv_sec > minimumAgeSeconds, let lock = lock(path) else { continue }
      remove(path)
      close(lock)
    }
  }

  private static func remove(_ path: String) {
    // Redis makes one level of folders (appendonlydir).
    for name in (try? FolderNames.read(path)) ?? [] where unlink("\(path)/\(name)") != 0 && errno == EISDIR { remove("\(path)/\(name)") }
    rmdir(path)
  }
}

import EventLoop
import Glibc

/// The folder of a private server, removed with it.
struct TemporaryFolder: Sendable {
  let path: String

  init() throws(RedisError) {
    let wanted = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    // A socket's path has at most 107 bytes.
    let parent = wanted.utf8.count < 80 ? wanted : "/tmp"
    var bytes = Array("\(parent)/carillon-redis-XXXXXX".utf8CString)
    guard mkdtemp(&bytes) != nil else {
      throw RedisError(.serverFailed, "cannot make a folder \(parent)/carillon-redis-…: \(String(cString: strerror(errno)))")
    }
    path = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Removes the folder and its contents.
  func remove() { Self.remove(path) }

  private static func remove(_ path: String) {
    // Redis makes one level of folders (appendonlydir).
    for name in (try? FolderNames.read(path)) ?? [] where unlink("\(path)/\(name)") != 0 && errno == EISDIR { remove("\(path)/\(name)") }
    rmdir(path)
  }
}

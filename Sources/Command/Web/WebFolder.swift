import EventLoop
import Glibc
import JSON
import Worker

/// A folder that files are written into. All calls block.
struct WebFolder {
  let path: String

  /// Makes the folder if it is missing.
  ///
  /// - Parameter mayHaveFiles: an existing folder may have entries.
  init(_ path: String, mayHaveFiles: Bool) throws(Failure) {
    self.path = path
    try Self.make(path)
    guard let folder = opendir(path) else { throw Self.failure(path, "read") }
    defer { closedir(folder) }
    while !mayHaveFiles, let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard name == "." || name == ".." else {
        throw Failure(.wrongUsage, "\(PrintedText.echo(path)) is not empty: --force replaces the files of the same names")
      }
    }
  }

  /// Writes a file under another name, and gives it its own when it is complete. A reader never sees a part of it.
  func write(_ bytes: SharedBytes, to name: String) throws(Failure) {
    let (file, draft) = ("\(path)/\(name)", "\(path)/\(name).new")
    try Self.make(String(file.prefix(upTo: file.lastIndex(of: "/") ?? file.startIndex)))
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw Self.failure(draft, "write") }
    let isComplete = bytes.withUnsafeBytes { Descriptor.write($0, to: descriptor) == $0.count }
    // Some file systems report a full disk only now.
    guard close(descriptor) == 0, isComplete, rename(draft, file) == 0 else { throw Self.failure(file, "write") }
  }

  private static func make(_ path: String) throws(Failure) {
    var folder = path.hasPrefix("/") ? "/" : ""
    for name in path.split(separator: "/") {
      folder += name
      guard mkdir(folder, 0o755) == 0 || errno == EEXIST else { throw failure(folder, "make") }
      folder += "/"
    }
  }

  private static func failure(_ path: String, _ verb: String) -> Failure {
    Failure(.wrongUsage, "cannot \(verb) \(PrintedText.echo(path)): \(String(cString: strerror(errno)))")
  }
}

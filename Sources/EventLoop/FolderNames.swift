import Glibc

/// The content of a folder.
public enum FolderNames {
  /// The names in a folder in any order, at most one more than the limit; nil if it is missing.
  ///
  /// An incomplete reading throws. Its calls block.
  public static func read(_ path: String, atMost limit: Int = .max - 1) throws(ReadError) -> [String]? {
    guard let folder = opendir(path) else {
      if errno == ENOENT { return nil }
      throw ReadError(reason: errno)
    }
    defer { closedir(folder) }
    var names: [String] = []
    while names.count <= limit {
      errno = 0
      guard let entry = readdir(folder) else {
        guard errno == 0 else { throw ReadError(reason: errno) }
        break
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// A folder that cannot be read.
  public struct ReadError: Error {
    /// The `errno`.
    public let reason: Int32
  }
}

internal import Glibc

extension Localization {
  /// The file of a locale in its folder.
  static var fileName: String { "Localizable.strings" }
  /// Entries of the folder at most, whatever they are.
  static var folderEntries: Int { 4_096 }

  /// Reads the files `LOCALE.lproj/Localizable.strings` of a folder. What has another name is passed over, and so is a locale without
  /// that file.
  ///
  /// Its calls block, so it is called where that is allowed: at the start, or on a thread of its own.
  public init(folder: String, defaultLocale: String?) throws(LocalizationError) {
    let suffix = ".lproj"
    var files: [File] = []
    var bytes = 0
    for name in try Self.entries(of: folder) where name.hasSuffix(suffix) && name.utf8.count > suffix.utf8.count {
      let path = "\(folder)/\(name)/\(Self.fileName)"
      guard let content = try Self.read(path) else { continue }
      bytes += content.count
      guard bytes <= Self.totalBytes, files.count < Self.tableCount else {
        throw LocalizationError(file: folder, rule: "a folder has \(Self.tableCount) locales with \(Self.totalBytes) bytes at most")
      }
      files.append(File(locale: String(name.dropLast(suffix.count)), name: path, bytes: content))
    }
    guard !files.isEmpty else { throw LocalizationError(file: folder, rule: "the folder has no file such as en.lproj/\(Self.fileName)") }
    try self.init(files, defaultLocale: defaultLocale)
  }

  /// The names in a folder, sorted.
  private static func entries(of path: String) throws(LocalizationError) -> [String] {
    guard let folder = opendir(path) else { throw unreadable(path) }
    defer { closedir(folder) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(folder) else {
        guard errno == 0 else { throw unreadable(path) }
        return names.sorted()
      }
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) { String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self)) })
      guard names.count <= folderEntries else {
        throw LocalizationError(file: path, rule: "a folder of texts has \(folderEntries) entries at most")
      }
    }
  }

  /// What a file has; nil when there is none.
  private static func read(_ path: String) throws(LocalizationError) -> [UInt8]? {
    // Without blocking, for the opening of a FIFO waits until somebody writes there.
    let file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw unreadable(path)
    }
    defer { close(file) }
    var facts = stat()
    guard fstat(file, &facts) == 0 else { throw unreadable(path) }
    guard facts.st_mode & S_IFMT == S_IFREG else { throw LocalizationError(file: path, rule: "texts are read from a regular file only") }
    // One byte more than allowed, by which `StringsFile` knows that it is too large; it may have grown since it was asked for its size.
    let limit = StringsFile.fileBytes + 1
    var bytes = [UInt8](repeating: 0, count: min(limit, max(0, Int(facts.st_size)) + 1))
    var count = 0
    while true {
      if count == bytes.count {
        guard count < limit else { return bytes }
        bytes.append(contentsOf: repeatElement(0, count: min(limit - count, 1 << 16)))
      }
      let read = bytes.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress.map { $0 + count }, $0.count - count) }
      if read == 0 { return Array(bytes[..<count]) }
      if read > 0 { count += read } else if errno != EINTR { throw unreadable(path) }
    }
  }

  /// An error by `errno`.
  private static func unreadable(_ path: String) -> LocalizationError {
    LocalizationError(file: path, rule: "cannot be read: \(String(cString: strerror(errno)))")
  }
}

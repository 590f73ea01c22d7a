internal import EventLoop
internal import Glibc
import Notifications

extension Localization {
  /// The file of a locale in its folder.
  static var fileName: String { "Localizable.strings" }
  /// The most entries of the folder, of any kind.
  static var folderEntries: Int { 4_096 }

  /// Reads the files `LOCALE.lproj/Localizable.strings` of a folder. Other names are ignored, and so is a locale without that file.
  ///
  /// Its calls block, so it is called at the start, or on a thread of its own.
  init(folder: String, defaultLocale: String?) throws(FieldError) {
    let suffix = ".lproj"
    var files: [File] = []
    var bytes = 0
    for name in try Self.entries(of: folder) where name.hasSuffix(suffix) && name.utf8.count > suffix.utf8.count {
      let path = "\(folder)/\(name)/\(Self.fileName)"
      // One byte more than allowed shows the initializer below that a file is too large.
      guard let content = try BoundedFile.read(path, limit: Self.fileBytes) else { continue }
      bytes += content.count
      files.append(File(locale: String(name.dropLast(suffix.count)), name: path, bytes: content))
      // The initializer below refuses so much.
      if bytes > Self.totalBytes || files.count > Self.tableCount { break }
    }
    guard !files.isEmpty else { throw FieldError(field: folder, rule: "the folder has no file such as en.lproj/\(Self.fileName)") }
    try self.init(files, defaultLocale: defaultLocale)
  }

  /// The names in a folder, sorted.
  private static func entries(of path: String) throws(FieldError) -> [String] {
    func failure(_ reason: Int32) -> FieldError {
      FieldError(field: path, rule: "cannot be read: \(String(cString: strerror(reason)))")
    }
    let found: [String]?
    do throws(FolderNames.ReadError) { found = try FolderNames.read(path, atMost: folderEntries) } catch { throw failure(error.reason) }
    guard let names = found else { throw failure(ENOENT) }
    guard names.count <= folderEntries else {
      throw FieldError(field: path, rule: "a folder of texts has \(folderEntries) entries at most")
    }
    return names.sorted()
  }
}

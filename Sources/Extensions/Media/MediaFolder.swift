internal import EventLoop
internal import Glibc
public import Notifications

/// The folder of the media store, which the workers of a cluster share. All calls block.
///
/// | path | what |
/// |---|---|
/// | `ab/abcd…` | a file by its content's hash, whole and never changed |
/// | `ab/abcd….1764000000` | an empty file: it is kept until then, in seconds since 1970; the latest counts |
/// | `ab/abcd….removed` | a file that is being removed |
/// | `new/…` | a file that a worker is writing |
///
/// So a worker needs neither another one nor Redis to know the stored files. A file appears under one name at one moment, and one more name
/// extends its end.
public struct MediaFolder: Sendable {
  /// Its path.
  public let path: String

  /// A folder, which need not exist yet.
  public init(_ path: String) { self.path = path }

  /// Opens a file; nil if it is missing.
  public func open(_ hash: MediaHash) throws(MediaError) -> MediaFile? {
    let descriptor = Glibc.open(file(hash), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw failure("open a file of", errno)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let reason = errno
      close(descriptor)
      throw failure("read a file of", reason)
    }
    guard let file = MediaFile(descriptor, size: Int(status.st_size)) else {
      close(descriptor)
      throw MediaError("a file of the media folder \(path) is none of the types: \(hash)")
    }
    return file
  }

  // MARK: Names

  private func part(_ hash: MediaHash) -> String { "\(path)/\(hash.description.prefix(2))" }
  func file(_ hash: MediaHash) -> String { "\(part(hash))/\(hash)" }
  private func mark(_ hash: MediaHash, _ until: Int64) -> String { "\(file(hash)).\(until)" }
  private func removed(_ hash: MediaHash) -> String { "\(file(hash)).removed" }
  private var incoming: String { "\(path)/new" }

  // MARK: Writing

  /// Makes missing folders, and checks whether files can be made.
  func prepare() throws(MediaError) {
    for folder in [path, incoming] {
      guard mkdir(folder, 0o750) == 0 || errno == EEXIST else { throw failure("make", errno) }
    }
    let (descriptor, path) = try begin()
    close(descriptor)
    unlink(path)
  }

  /// Distinguishes a file that is being written from foreign files.
  private static let suffix = ".part"

  /// Makes a new file for writing.
  func begin() throws(MediaError) -> (descriptor: Int32, path: String) {
    let path = "\(incoming)/\(UInt64.random(in: 0...(.max)))\(Self.suffix)"
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o640)
    guard descriptor >= 0 else { throw failure("write to", errno) }
    return (descriptor, path)
  }

  /// Writes all of the bytes.
  func write(_ bytes: [UInt8], to descriptor: Int32) throws(MediaError) {
    guard bytes.withUnsafeBytes({ Descriptor.write($0, to: descriptor) }) == bytes.count else { throw failure("write to", errno) }
  }

  /// Gives a written file its name, durably.
  ///
  /// - Returns: whether its content is new.
  func finish(_ descriptor: Int32, at written: String, as hash: MediaHash, until: Int64) throws(MediaError) -> Bool {
    guard fsync(descriptor) == 0 else { throw failure("write to", errno) }
    if mkdir(part(hash), 0o750) == 0 { try sync(path) } else if errno != EEXIST { throw failure("write to", errno) }
    // The mark comes first, so that no cleaning worker finds an unmarked file.
    try mark(hash, until: until)
    let isNew = !has(hash)
    guard rename(written, file(hash)) == 0 else { throw failure("write to", errno) }
    try sync(part(hash))
    return isNew
  }

  /// Marks until when a file is kept.
  ///
  /// - Returns: whether it exists. It is checked after the mark was made, so it stays.
  func keep(_ hash: MediaHash, until: Int64) throws(MediaError) -> Bool {
    guard has(hash) else { return false }
    try mark(hash, until: until)
    try sync(part(hash))
    return has(hash)
  }

  /// Whether a file exists.
  func has(_ hash: MediaHash) -> Bool { access(file(hash), F_OK) == 0 }

  private func mark(_ hash: MediaHash, until: Int64) throws(MediaError) {
    let descriptor = Glibc.open(mark(hash, until), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o640)
    guard descriptor >= 0 else { throw failure("write to", errno) }
    close(descriptor)
  }

  private func sync(_ folder: String) throws(MediaError) {
    guard Descriptor.sync(folder: folder) else { throw failure("write to", errno) }
  }

  // MARK: Cleaning

  /// The parts of the folder: the first two digits of the hashes.
  static let parts = (UInt8.min...UInt8.max).map { Hexadecimal.text([$0]) }

  /// The content of a part.
  private struct Part {
    /// The latest mark of each file; 0 if it has none.
    var files: [MediaHash: Int64] = [:]
    var marks: [MediaHash: [Int64]] = [:]
    var removed: Set<MediaHash> = []
  }

  private func read(_ part: String) throws(MediaError) -> Part {
    var found = Part()
    for name in try names(in: "\(path)/\(part)") {
      let pieces = name.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
      guard let hash = pieces.first.flatMap({ MediaHash($0) }) else { continue }
      switch pieces.count {
      case 1: found.files[hash] = found.files[hash] ?? 0
      case _ where pieces[1] == "removed": found.removed.insert(hash)
      default: if let until = Int64(pieces[1]) { found.marks[hash, default: []].append(until) }
      }
    }
    for hash in found.files.keys { found.files[hash] = found.marks[hash]?.max() ?? 0 }
    return found
  }

  /// Removes expired files from a part.
  ///
  /// - Parameters:
  ///   - now: in seconds since 1970.
  ///   - unmarked: how long a file without a mark is kept after its last write, in seconds. No worker leaves such a file.
  /// - Returns: the remaining bytes and files.
  func clean(_ part: String, now: Int64, unmarked: Int64) throws(MediaError) -> (bytes: Int, files: Int) {
    let before = try read(part)
    var left = (bytes: 0, files: 0)
    var leaving = before.removed
    for (hash, until) in before.files {
      var status = stat()
      guard stat(file(hash), &status) == 0 else { continue }
      if until >= now || until == 0 && Int64(status.st_mtim.tv_sec) >= now - unmarked {
        left.bytes += Int(status.st_size)
        left.files += 1
      } else if rename(file(hash), removed(hash)) == 0 {
        leaving.insert(hash)
      }
    }
    guard !leaving.isEmpty || before.marks.contains(where: { $0.value.count > 1 || before.files[$0.key] == nil }) else { return left }
    // Another worker may have marked a file meanwhile. It checks afterwards whether the file exists.
    let after = try read(part)
    for hash in leaving {
      if let until = after.marks[hash]?.max(), until >= now, after.files[hash] == nil {
        rename(removed(hash), file(hash))
      } else {
        unlink(removed(hash))
      }
    }
    for (hash, marks) in after.marks {
      let latest = marks.max() ?? 0
      for until in marks where until < now || until < latest { unlink(mark(hash, until)) }
    }
    return left
  }

  /// Removes unfinished files that are so old that no worker writes them any more.
  func cleanIncoming(before time: Int64) throws(MediaError) {
    for name in try names(in: incoming) where name.hasSuffix(Self.suffix) && UInt64(name.dropLast(Self.suffix.count)) != nil {
      var status = stat()
      if stat("\(incoming)/\(name)", &status) == 0, Int64(status.st_mtim.tv_sec) < time { unlink("\(incoming)/\(name)") }
    }
  }

  /// The names in a folder; none if it is missing. An incomplete reading throws, since a file with an unseen mark would be removed.
  private func names(in folder: String) throws(MediaError) -> [String] {
    do throws(FolderNames.ReadError) { return try FolderNames.read(folder) ?? [] } catch { throw failure("read", error.reason) }
  }

  /// Throws if it cannot be read.
  public func check() throws(MediaError) {
    guard access(path, R_OK | X_OK) == 0 else { throw failure("read", errno) }
  }

  private func failure(_ operation: String, _ reason: Int32) -> MediaError {
    MediaError("cannot \(operation) the media folder \(path): \(String(cString: strerror(reason)))")
  }
}

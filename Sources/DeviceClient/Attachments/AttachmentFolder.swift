internal import Cryptography
internal import EventLoop
internal import Extensions
internal import Glibc
internal import Notifications

/// The folder of a device's attachments. All calls block.
///
/// A file has the hash of its content as its name. It is written under another name, synced and renamed, so that a file with a hash is
/// complete after any crash.
struct AttachmentFolder: Sendable {
  /// Its path.
  let path: String

  /// A written file that has no name yet.
  struct Written: Sendable {
    let path: String
    let media: Media
  }

  /// The path of a file.
  func file(_ hash: MediaHash) -> String { "\(path)/\(hash)" }

  /// Removes the files that a crash has left, and those of no notification; returns the others. Files of somebody else stay.
  func clean(keeping live: Set<MediaHash>) throws(AttachmentFailure) -> [Media] {
    let names: [String]?
    do throws(FolderNames.ReadError) { names = try FolderNames.read(path) } catch { throw failure("read", error.reason) }
    var files: [Media] = []
    for name in names ?? [] {
      var status = stat()
      guard lstat("\(path)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      if let hash = MediaHash(name), live.contains(hash) {
        let type = MediaType(beginning: Self.beginning(of: "\(path)/\(name)", bytes: MediaType.tellingBytes))
        if let type { files.append(Media(hash: hash, type: type, size: Int(status.st_size))) }
      } else if MediaHash(name) != nil || Self.isPart(name) {
        unlink("\(path)/\(name)")
      }
    }
    return files
  }

  /// Reads the first bytes of a file; none if it cannot be read.
  static func beginning(of path: String, bytes limit: Int) -> [UInt8] {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    return Array((Descriptor.readAll(descriptor, limit: limit) ?? []).prefix(limit))
  }

  private static let partSuffix = ".part"

  /// Whether a file has the name of one that was begun.
  private static func isPart(_ name: String) -> Bool { name.hasSuffix(partSuffix) && UInt64(name.dropLast(partSuffix.count)) != nil }

  /// Begins a file.
  func begin() throws(AttachmentFailure) -> AttachmentWriter {
    try make()
    let path = "\(path)/\(UInt64.random(in: 0...(.max)))\(Self.partSuffix)"
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw failure("write to", errno) }
    return AttachmentWriter(self, path, descriptor)
  }

  /// Makes the folder, durably: the database may name a file in it next.
  private func make() throws(AttachmentFailure) {
    guard mkdir(path, 0o700) == 0 else {
      if errno == EEXIST { return }
      throw failure("make", errno)
    }
    let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    do throws(AttachmentFailure) {
      try sync(end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ".")
    } catch {
      rmdir(path)
      throw error
    }
  }

  /// The bytes of a file of the program.
  func size(of source: String) throws(AttachmentFailure) -> Int {
    var status = stat()
    guard lstat(source, &status) == 0 else { throw AttachmentFailure(.disk, "cannot read \(source): \(String(cString: strerror(errno)))") }
    guard status.st_mode & S_IFMT == S_IFREG else { throw AttachmentFailure(.wrongType, "\(source) is not a regular file") }
    return Int(status.st_size)
  }

  /// Copies a file of the program.
  ///
  /// - Parameter limit: the most bytes that it may have.
  func copy(_ source: String, limit: Int) throws(AttachmentFailure) -> Written {
    // A pipe without a writer would block the opening.
    let descriptor = Glibc.open(source, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { throw AttachmentFailure(.disk, "cannot read \(source): \(String(cString: strerror(errno)))") }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw AttachmentFailure(.wrongType, "\(source) is not a regular file")
    }
    let writer = try begin()
    do throws(AttachmentFailure) {
      while true {
        var piece: [UInt8] = []
        let count = Descriptor.read(descriptor, into: &piece, limit: 256 << 10)
        guard count >= 0 else { throw AttachmentFailure(.disk, "cannot read \(source): \(String(cString: strerror(errno)))") }
        if count == 0 { break }
        guard writer.size + count <= limit else { throw AttachmentFailure(.wrongSize, "\(source) grows while it is copied") }
        try writer.append(piece)
      }
      return try writer.finish()
    } catch {
      writer.discard()
      throw error
    }
  }

  /// Removes a file of the program whose copy has this hash. One of this folder stays: it is that copy.
  func remove(_ source: String, copiedAs hash: MediaHash) {
    var (given, kept) = (stat(), stat())
    guard lstat(source, &given) == 0 else { return }
    guard lstat(file(hash), &kept) != 0 || given.st_dev != kept.st_dev || given.st_ino != kept.st_ino else { return }
    unlink(source)
  }

  /// Gives a written file its name, durably.
  func keep(_ written: Written) throws(AttachmentFailure) {
    let path = file(written.media.hash)
    let isNew = access(path, F_OK) != 0
    guard rename(written.path, path) == 0 else {
      let reason = errno
      unlink(written.path)
      throw failure("write to", reason)
    }
    do throws(AttachmentFailure) {
      try sync(self.path)
    } catch {
      // Notifications may have a file that was there before. It has the same content.
      if isNew { unlink(path) }
      throw error
    }
  }

  private func sync(_ folder: String) throws(AttachmentFailure) {
    guard Descriptor.sync(folder: folder) else { throw failure("write to", errno) }
  }

  fileprivate func failure(_ operation: String, _ reason: Int32) -> AttachmentFailure {
    AttachmentFailure(.disk, "cannot \(operation) the folder of attachments \(path): \(String(cString: strerror(reason)))")
  }
}

/// A file that is being written. It is unchecked Sendable: the thread of the disk alone uses it, one call after another.
final class AttachmentWriter: @unchecked Sendable {
  private let folder: AttachmentFolder
  private let path: String
  private var descriptor: Int32
  private let digest = RunningDigest()
  private var beginning: [UInt8] = []
  private(set) var size = 0

  fileprivate init(_ folder: AttachmentFolder, _ path: String, _ descriptor: Int32) {
    (self.folder, self.path, self.descriptor) = (folder, path, descriptor)
  }

  deinit { discard() }

  /// Writes the next bytes. Throws if they show that the file may not be attached.
  func append(_ bytes: [UInt8]) throws(AttachmentFailure) {
    beginning += bytes.prefix(MediaType.tellingBytes - min(beginning.count, MediaType.tellingBytes))
    size += bytes.count
    if beginning.count == MediaType.tellingBytes { _ = try type() }
    bytes.withUnsafeBytes { digest.append($0) }
    guard bytes.withUnsafeBytes({ Descriptor.write($0, to: descriptor) }) == bytes.count else { throw folder.failure("write to", errno) }
  }

  /// Makes the bytes durable, and returns what they are.
  func finish() throws(AttachmentFailure) -> AttachmentFolder.Written {
    let type = try type()
    guard fsync(descriptor) == 0 else { throw folder.failure("write to", errno) }
    close(descriptor)
    descriptor = -1
    guard let hash = digest.finish().withUnsafeBytes({ MediaHash(bytes: $0) }) else { preconditionFailure("a digest is a hash") }
    return AttachmentFolder.Written(path: path, media: Media(hash: hash, type: type, size: size))
  }

  /// Removes the file, unless it is finished.
  func discard() {
    guard descriptor >= 0 else { return }
    close(descriptor)
    descriptor = -1
    unlink(path)
  }

  /// The type by the content, of which the size is allowed.
  private func type() throws(AttachmentFailure) -> MediaType {
    guard let type = MediaType(beginning: beginning) else {
      throw AttachmentFailure(.wrongType, "it is none of: \(MediaType.allCases.map(\.name.description).joined(separator: ", "))")
    }
    guard size <= type.maximumBytes else {
      throw AttachmentFailure(.wrongType, "it has more than \(type.maximumBytes) bytes, the maximum for \(type.name)")
    }
    return type
  }
}

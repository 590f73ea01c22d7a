internal import Glibc
internal import Synchronization

/// The lock that keeps a second device from a state file, by whichever name each of them has the file. It blocks.
///
/// The lock is the file's own, on a byte behind those that SQLite locks.
final class StateLock {
  private static let byte: off_t = 1 << 62
  /// `F_OFD_SETLK` of Linux, which Glibc declares for `_GNU_SOURCE` only. Such a lock belongs to the descriptor, and not to the process.
  private static let setLock: Int32 = 37

  /// The file's own path, without symbolic links. So its folder of attachments is the same by each of its names.
  let path: String
  private let file: FileIdentity
  private let descriptor: Int32

  /// Opens the file, or makes it with access for its owner only, and takes its lock.
  init(_ path: String) throws(DeviceError) {
    let former = FileIdentity(path: path).flatMap(OpenFiles.takeDescriptor)
    descriptor = former ?? Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0, let file = FileIdentity(descriptor), let real = realpath(path, nil) else {
      let error = Self.cannotOpen(path)
      if let file = FileIdentity(descriptor) { OpenFiles.close(descriptor, of: file) }
      throw error
    }
    (self.file, self.path) = (file, String(cString: real))
    free(real)
    guard set(F_WRLCK) else {
      let error =
        [EAGAIN, EACCES].contains(errno)
        ? DeviceError(.stateInUse, "the state file \(path) is in use by another device process: end that one, or name another file")
        : Self.unusable(path, "locked")
      OpenFiles.close(descriptor, of: file)
      throw error
    }
  }

  /// Releases the lock; no call may follow.
  func release() {
    // A process that is being started at this moment has a copy of the descriptor until its exec, and would keep the lock.
    _ = set(F_UNLCK)
    OpenFiles.close(descriptor, of: file)
  }

  private func set(_ kind: Int32) -> Bool {
    var lock = flock()
    (lock.l_type, lock.l_whence, lock.l_start, lock.l_len) = (Int16(kind), Int16(SEEK_SET), Self.byte, 1)
    return fcntl(descriptor, Self.setLock, &lock) == 0
  }

  private static func cannotOpen(_ path: String) -> DeviceError {
    guard [EACCES, EROFS, EPERM].contains(errno) else { return unusable(path, "opened") }
    let reason = String(cString: strerror(errno))
    return DeviceError(
      .stateReadOnly, "the state file \(path) cannot be written: \(reason). Change the permissions of the file and its folder")
  }

  private static func unusable(_ path: String, _ what: String) -> DeviceError {
    DeviceError(.stateUnusable, "the state file \(path) cannot be \(what): \(String(cString: strerror(errno)))")
  }
}

/// Which file it is, by each of its names.
struct FileIdentity: Hashable {
  private let device: dev_t
  private let inode: ino_t
  /// How many names it has.
  let links: Int

  /// The file of a path, behind its symbolic links; nil if there is none.
  init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  /// An open file.
  init?(_ descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  private init(_ status: stat) { (device, inode, links) = (status.st_dev, status.st_ino, Int(clamping: status.st_nlink)) }

  static func == (left: FileIdentity, right: FileIdentity) -> Bool { left.device == right.device && left.inode == right.inode }

  func hash(into hasher: inout Hasher) {
    hasher.combine(device)
    hasher.combine(inode)
  }
}

/// The files that this process has open as databases.
///
/// The closing of any descriptor of a file releases SQLite's locks on it in the whole process. So a descriptor stays open until the last
/// database of the file is closed.
enum OpenFiles {
  private struct Uses {
    var databases = 0
    var descriptors: [Int32] = []
  }

  private static let files = Mutex<[FileIdentity: Uses]>([:])

  /// SQLite opens the file; `closed` follows.
  static func opened(_ file: FileIdentity) { files.withLock { $0[file, default: Uses()].databases += 1 } }

  /// SQLite has closed the file.
  static func closed(_ file: FileIdentity) {
    files.withLock { files in
      files[file]?.databases -= 1
      guard let uses = files[file], uses.databases == 0 else { return }
      for descriptor in uses.descriptors { Glibc.close(descriptor) }
      files[file] = nil
    }
  }

  /// Takes a descriptor that waits for the file's last database, to use it again; nil if there is none.
  static func takeDescriptor(of file: FileIdentity) -> Int32? { files.withLock { $0[file]?.descriptors.popLast() } }

  /// Closes a descriptor, now or with the file's last database.
  static func close(_ descriptor: Int32, of file: FileIdentity) {
    files.withLock { files in
      if files[file] == nil { Glibc.close(descriptor) } else { files[file]?.descriptors.append(descriptor) }
    }
  }
}

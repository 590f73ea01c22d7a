internal import EventLoop
internal import Glibc

/// The state file on the disk. Its calls block, so it has a thread of its own.
actor StateFile {
  nonisolated let disk: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { disk.asUnownedSerialExecutor() }

  private let path: String
  private var descriptor: Int32 = -1
  private var failure: DeviceError?

  /// Names the file; `open` opens it.
  init(path: String) {
    self.path = path
    disk = EventLoop(name: "device-state")
  }

  /// Opens the file, or makes it, and reads its lines. An incomplete last line is cut off, since it was never reported.
  ///
  /// Only one device at a time may have it open.
  func open(limit: Int = 1 << 30) throws(DeviceError) -> (records: [StateRecord], damaged: Int) {
    descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw error("opened") }
    // A file that was replaced between opening and locking does not have this name any more.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, isCurrent else {
      close(descriptor)
      descriptor = -1
      throw DeviceError(.stateInUse, "the state file \(path) is in use by another device process: end that one, or name another file")
    }
    var bytes: [UInt8] = []
    try withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 8) { chunk throws(DeviceError) in
      while true {
        let count = Glibc.read(descriptor, chunk.baseAddress, chunk.count)
        if count < 0, errno == EINTR { continue }
        if count < 0 { throw error("read") }
        if count == 0 { return }
        bytes.append(contentsOf: chunk[..<count])
        if bytes.count > limit {
          throw DeviceError(.stateUnusable, "the state file \(path) is larger than \(limit) bytes, so it is not a state file")
        }
      }
    }
    let lines = StateLines.read(bytes)
    // A file without a complete record is another program's, unless it ends within the first line.
    if lines.records.isEmpty, lines.damaged > 0 || lines.whole == 0 && !StateLines.canBeTorn(bytes) {
      throw DeviceError(.stateUnusable, "\(path) is not the state file of a device: name another file")
    }
    if lines.whole < bytes.count, ftruncate(descriptor, off_t(lines.whole)) != 0 { throw error("cut at its torn end") }
    guard lseek(descriptor, 0, SEEK_END) >= 0 else { throw error("read") }
    // The name must be as durable as the content.
    try syncFolder()
    return (lines.records, lines.damaged)
  }

  /// Appends complete lines, and returns when they are on the disk. After a failure nothing more is written, since the disk's state is
  /// unknown.
  func append(_ bytes: [UInt8]) throws(DeviceError) {
    if let failure { throw failure }
    guard write(bytes, to: descriptor), fdatasync(descriptor) == 0 else { throw failed("written") }
  }

  /// Replaces all lines with a snapshot, completely or not at all.
  func replace(_ bytes: [UInt8]) throws(DeviceError) {
    if let failure { throw failure }
    let draft = path + ".new"
    let new = Glibc.open(draft, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard new >= 0 else { throw failed("replaced") }
    guard flock(new, LOCK_EX | LOCK_NB) == 0, write(bytes, to: new), fsync(new) == 0, rename(draft, path) == 0 else {
      let error = failed("replaced")
      close(new)
      throw error
    }
    close(descriptor)
    descriptor = new
    do throws(DeviceError) { try syncFolder() } catch {
      failure = error
      throw error
    }
  }

  /// Closes the file.
  func end() {
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
    failure = failure ?? DeviceError(.stateUnusable, "the state file \(path) is closed")
  }

  private var isCurrent: Bool {
    var (opened, named) = (stat(), stat())
    return fstat(descriptor, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev
  }

  private func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count >= 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return false }
      }
      return true
    }
  }

  private func syncFolder() throws(DeviceError) {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw error("written: its folder cannot be opened") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw error("written: its folder cannot be synchronised") }
  }

  private func failed(_ what: String) -> DeviceError {
    let error = error(what)
    failure = error
    return error
  }

  private func error(_ what: String) -> DeviceError {
    DeviceError(.stateUnusable, "the state file \(path) cannot be \(what): \(String(cString: strerror(errno)))")
  }
}

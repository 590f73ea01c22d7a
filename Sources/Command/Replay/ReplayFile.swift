import Glibc
import JSON
import Operations
import Worker

/// The file that says how far a replay is. One process has it at a time; each save puts a new one in its place, whole or not at all.
final class ReplayFile {
  /// Where it is.
  let path: String
  private var descriptor: Int32 = -1
  /// It was made by this process, and nothing is in it yet.
  private var isEmpty = false

  /// The largest that is read: some 200 bytes for a partition.
  private static let maximumBytes = 16 << 20

  private init(_ path: String) { self.path = path }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Makes a file that is not there yet.
  static func make(_ path: String) throws(Failure) -> ReplayFile {
    let file = ReplayFile(path)
    file.descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file.descriptor >= 0 else {
      guard errno == EEXIST else { throw file.failure("made") }
      var found = stat()
      guard stat(path, &found) != 0 || found.st_size > 0 else {
        throw Failure(.wrongUsage, "\(path) is there already, and \(Self.emptiness), or name another file by --state")
      }
      throw Failure(.wrongUsage, "\(path) is there already: go on with it by --resume \(path), or name another file by --state")
    }
    file.isEmpty = true
    _ = flock(file.descriptor, LOCK_EX | LOCK_NB)
    return file
  }

  /// What an empty file is, as the middle of a sentence.
  private static let emptiness = "it is empty, since its replay ended before it wrote anything: remove it"

  /// Opens a file to go on with.
  static func open(_ path: String) throws(Failure) -> (ReplayFile, ReplayPlan) {
    let file = ReplayFile(path)
    file.descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC)
    guard file.descriptor >= 0 else { throw file.failure("opened") }
    // One that was replaced between the opening and the locking belongs to somebody who goes on with it.
    guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0, file.isCurrent else {
      throw Failure(.wrongUsage, "another process goes on with \(path) now: wait until it has ended, or end it")
    }
    let bytes = try file.read()
    guard !bytes.isEmpty else { throw Failure(.wrongUsage, "\(path) cannot be gone on with: \(Self.emptiness), and begin again") }
    do throws(ReplayPlanError) {
      return (file, try ReplayPlan(bytes))
    } catch {
      throw Failure(.wrongUsage, "\(path) cannot be gone on with: \(error)")
    }
  }

  private func read() throws(Failure) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < Self.maximumBytes {
      let count = Descriptor.read(descriptor, into: &bytes, limit: 1 << 16)
      guard count >= 0 else { throw failure("read") }
      if count == 0 { break }
    }
    return bytes
  }

  /// Puts the present state in its place, durably. A file that this process has made and that was never saved goes away where that fails: nobody
  /// could go on with it.
  func save(_ plan: ReplayPlan) throws(Failure) {
    let draft = path + ".new"
    let new = Glibc.open(draft, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard new >= 0 else {
      let failure = failure("written")
      if isEmpty { unlink(path) }
      throw failure
    }
    let text = Array((plan.json.text + "\n").utf8)
    let isWritten = text.withUnsafeBytes { Descriptor.write($0, to: new) } == text.count
    guard isWritten, flock(new, LOCK_EX | LOCK_NB) == 0, fsync(new) == 0, rename(draft, path) == 0 else {
      let failure = failure("written")
      close(new)
      unlink(draft)
      if isEmpty { unlink(path) }
      throw failure
    }
    close(descriptor)
    (descriptor, isEmpty) = (new, false)
    let folder = Glibc.open(path.lastIndex(of: "/").map { String(path[...$0]) } ?? ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if folder >= 0 {
      fsync(folder)
      close(folder)
    }
  }

  /// Where it is, once somebody could go on with it.
  var savedPath: String? { isEmpty ? nil : path }

  /// Removes it: there is nothing to go on with.
  func remove() { unlink(path) }

  private var isCurrent: Bool {
    var (opened, named) = (stat(), stat())
    return fstat(descriptor, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev
  }

  private func failure(_ what: String) -> Failure {
    Failure(.dependencyMissing, "\(path) cannot be \(what): \(String(cString: strerror(errno)))")
  }
}

import EventLoop
import Glibc
import JSON
import Operations
import Worker

/// The file with the progress of a replay. One process has it at a time, and each save replaces it completely.
///
/// - Note: `@unchecked Sendable` because only the replayer's loop uses it during the replay, and only the command before and after.
final class ReplayFile: @unchecked Sendable {
  /// Its path.
  let path: String
  private var descriptor: Int32 = -1
  /// Whether this process has made it and not saved yet.
  private var isEmpty = false

  /// The largest file that is read; a partition needs some 200 bytes.
  private static let maximumBytes = 16 << 20

  private init(_ path: String) { self.path = path }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Makes a new file.
  static func make(_ path: String) throws(Failure) -> ReplayFile {
    let file = ReplayFile(path)
    file.descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file.descriptor >= 0 else {
      guard errno == EEXIST else { throw file.failure("made") }
      var found = stat()
      guard stat(path, &found) != 0 || found.st_size > 0 else {
        throw Failure(.wrongUsage, "\(path) exists already, and \(Self.emptiness), or name another file by --state")
      }
      throw Failure(.wrongUsage, "\(path) exists already: continue it by --resume \(path), or name another file by --state")
    }
    file.isEmpty = true
    _ = flock(file.descriptor, LOCK_EX | LOCK_NB)
    return file
  }

  /// The state of an empty file, as the middle of a sentence.
  private static let emptiness = "it is empty, since its replay ended before it wrote anything: remove it"

  /// Opens a file to continue its replay.
  static func open(_ path: String) throws(Failure) -> (ReplayFile, ReplayPlan) {
    let file = ReplayFile(path)
    file.descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC)
    guard file.descriptor >= 0 else { throw file.failure("opened") }
    // A file that was replaced between the opening and the locking belongs to another process.
    guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0, file.isCurrent else {
      throw Failure(.wrongUsage, "another process continues \(path) now: wait until it has ended, or end it")
    }
    let bytes = try file.read()
    guard !bytes.isEmpty else { throw Failure(.wrongUsage, "\(path) cannot be continued: \(Self.emptiness), and begin again") }
    do throws(ReplayPlanError) {
      return (file, try ReplayPlan(bytes))
    } catch {
      throw Failure(.wrongUsage, "\(path) cannot be continued: \(error)")
    }
  }

  private func read() throws(Failure) -> [UInt8] {
    guard let bytes = Descriptor.readAll(descriptor, limit: Self.maximumBytes) else { throw failure("read") }
    return bytes
  }

  /// Saves the progress durably. If that fails for a new file that was never saved, it is removed, since nobody could continue it.
  func save(_ plan: ReplayPlan) throws(Failure) {
    let draft = path + ".new"
    let new = Glibc.open(draft, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    let text = Array((plan.json.text + "\n").utf8)
    let isWritten = new >= 0 && text.withUnsafeBytes { Descriptor.write($0, to: new) } == text.count
    guard isWritten, flock(new, LOCK_EX | LOCK_NB) == 0, fsync(new) == 0, rename(draft, path) == 0 else {
      let failure = failure("written")
      if new >= 0 {
        close(new)
        unlink(draft)
      }
      if isEmpty { unlink(path) }
      throw failure
    }
    close(descriptor)
    (descriptor, isEmpty) = (new, false)
    _ = Descriptor.sync(folder: path.lastIndex(of: "/").map { String(path[...$0]) } ?? ".")
  }

  /// Its path, once a replay can be continued from it.
  var savedPath: String? { isEmpty ? nil : path }

  /// Removes it after the replay has ended.
  func remove() { unlink(path) }

  private var isCurrent: Bool {
    var (opened, named) = (stat(), stat())
    return fstat(descriptor, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev
  }

  private func failure(_ what: String) -> Failure {
    Failure(.dependencyMissing, "\(path) cannot be \(what): \(String(cString: strerror(errno)))")
  }
}

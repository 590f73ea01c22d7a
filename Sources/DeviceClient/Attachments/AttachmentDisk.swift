internal import EventLoop
internal import Glibc
internal import Notifications

/// The folder of attachments on a thread of its own, since the file system blocks.
///
/// It returns failures and does not throw them: with Swift 6.3 a caller that passes on an error of an actor stays on the actor's thread.
actor AttachmentDisk: LoopActor {
  typealias Answer<Value: Sendable> = Result<Value, AttachmentFailure>

  nonisolated let loop = EventLoop(name: "device-files")

  private let folder: AttachmentFolder
  private var writers: [Int: AttachmentWriter] = [:]
  private var lastNumber = 0

  init(_ folder: AttachmentFolder) { self.folder = folder }

  /// Removes the files that no notification has; returns the others.
  func clean(keeping live: Set<MediaHash>) -> Answer<[Media]> {
    Result { () throws(AttachmentFailure) in try folder.clean(keeping: live) }
  }

  /// Begins a file; `finish` or `discard` follows.
  func begin() -> Answer<Int> {
    Result { () throws(AttachmentFailure) in
      let writer = try folder.begin()
      lastNumber += 1
      writers[lastNumber] = writer
      return lastNumber
    }
  }

  /// Writes the next bytes of a file.
  func append(_ bytes: [UInt8], to number: Int) -> Answer<Void> {
    Result { () throws(AttachmentFailure) in try writers[number]?.append(bytes) }
  }

  /// Ends a file, which has no name yet.
  func finish(_ number: Int) -> Answer<AttachmentFolder.Written> {
    guard let writer = writers.removeValue(forKey: number) else { preconditionFailure("a file ends once") }
    return Result { () throws(AttachmentFailure) in try writer.finish() }
  }

  /// Removes a file that is being written.
  func discard(_ number: Int) { writers.removeValue(forKey: number)?.discard() }

  /// The bytes of a file of the program.
  func size(of source: String) -> Answer<Int> { Result { () throws(AttachmentFailure) in try folder.size(of: source) } }

  /// Copies a file of the program.
  func copy(_ source: String, limit: Int) -> Answer<AttachmentFolder.Written> {
    Result { () throws(AttachmentFailure) in try folder.copy(source, limit: limit) }
  }

  /// Gives a written file its name, durably.
  func keep(_ written: AttachmentFolder.Written) -> Answer<Void> {
    Result { () throws(AttachmentFailure) in try folder.keep(written) }
  }

  /// Removes files of the program that were copied.
  func remove(_ sources: [(path: String, hash: MediaHash)]) { for source in sources { folder.remove(source.path, copiedAs: source.hash) } }

  /// Reads the first bytes of a file of the store; none if it cannot be read.
  func beginning(of path: String, bytes limit: Int) -> [UInt8] { AttachmentFolder.beginning(of: path, bytes: limit) }

  /// Removes files.
  func remove(_ paths: [String]) { for path in paths { unlink(path) } }
}

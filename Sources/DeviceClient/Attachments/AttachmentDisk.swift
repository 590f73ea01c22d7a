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

  /// Does something in the folder.
  func call<Value: Sendable>(_ body: @Sendable (AttachmentFolder) throws(AttachmentFailure) -> Value) -> Answer<Value> {
    Result { () throws(AttachmentFailure) in try body(folder) }
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

  /// Reads the first bytes of a file of the store; none if it cannot be read.
  func beginning(of path: String, bytes limit: Int) -> [UInt8] { AttachmentFolder.beginning(of: path, bytes: limit) }

  /// Removes files.
  func remove(_ paths: [String]) { for path in paths { unlink(path) } }
}

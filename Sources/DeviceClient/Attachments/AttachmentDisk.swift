internal import EventLoop

/// The folder of attachments on a thread of its own, since the file system blocks.
///
/// It returns failures and does not throw them: with Swift 6.3 a caller that passes on an error of an actor stays on the actor's thread.
actor AttachmentDisk: LoopActor {
  typealias Answer<Value: Sendable> = Result<Value, AttachmentFailure>

  nonisolated let loop = EventLoop(name: "device-files")

  private let folder: AttachmentFolder

  init(_ folder: AttachmentFolder) { self.folder = folder }

  /// Does something in the folder.
  func call<Value: Sendable>(_ body: @Sendable (AttachmentFolder) throws(AttachmentFailure) -> Value) -> Answer<Value> {
    Result { () throws(AttachmentFailure) in try body(folder) }
  }
}

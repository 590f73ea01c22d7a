internal import EventLoop
public import Notifications

/// A file of the device's store of attachments, while it is open.
public struct AttachmentFile: Sendable, Hashable {
  /// Its path. Do not change the file.
  public let path: String
  /// Its type, by its content.
  public let type: MediaType
  /// Its bytes.
  public let size: Int
}

/// The attachments of notifications, as files.
extension Device {
  /// Calls `body` with an attachment of a notification in the list. The file stays until `body` returns, even if the notification goes.
  ///
  /// Throws `attachment` if the file is not there: the event `attachmentMissing` has said why.
  public func withAttachment<Result: Sendable>(
    _ attachment: Name, of notification: Name, _ body: @concurrent @Sendable (AttachmentFile) async throws -> Result
  ) async throws -> Result {
    let linked = try delivered(notification).1.attachments.first { $0.attachment.identifier == attachment }
    guard let media = linked?.attachment.media else {
      throw DeviceError(.noAttachments, "the notification '\(notification)' has no attachment '\(attachment)'")
    }
    guard let attachments, let path = attachments.open(media) else {
      throw DeviceError(.attachment, "the attachment '\(attachment)' is not in the store")
    }
    defer { attachments.close(media.hash) }
    return try await body(AttachmentFile(path: path, type: media.type, size: media.size))
  }

  /// Copies the files of a local request into the store, where they are open.
  func copy(_ request: NotificationRequest) async throws(DeviceError) -> [NotificationAttachment] {
    var copies: [NotificationAttachment] = []
    do throws(DeviceError) {
      guard request.attachments.count <= NotificationAttachment.maximum else {
        throw DeviceError(.badRequest, "attachments: a notification has at most \(NotificationAttachment.maximum)")
      }
      for source in request.attachments {
        guard NotificationAttachment.isIdentifier(source.identifier), !copies.contains(where: { $0.identifier == source.identifier }) else {
          throw DeviceError(
            .badRequest,
            "attachments: '\(source.identifier)' is no identifier: it has 1 to \(NotificationAttachment.identifierBytes) bytes, and differs from the others"
          )
        }
        let media = try await copy(source)
        copies.append(NotificationAttachment(identifier: source.identifier, media: media, options: source.options))
      }
      return copies
    } catch {
      for copy in copies { attachments?.close(copy.media.hash) }
      throw error
    }
  }

  private func copy(_ source: AttachmentSource) async throws(DeviceError) -> Media {
    do throws(AttachmentFailure) {
      return try await copy(source.path)
    } catch {
      throw DeviceError(error.reason == .wrongType ? .badRequest : .attachment, "attachment '\(source.identifier)': \(error)")
    }
  }

  /// Copies a file of the program into the store, where it is open until it is closed.
  func copy(_ path: String) async throws(AttachmentFailure) -> Media {
    guard let attachments, let attachmentDisk else {
      let reason = configuration.stateFile == nil ? "the configuration names none" : "the device is not started, or is closed"
      throw AttachmentFailure(.disk, "attachments need a state file: \(reason)")
    }
    attachmentTasks += 1
    defer { attachmentTaskEnded() }
    return try await attachments.copy(path, to: attachmentDisk)
  }

  // MARK: Start and end

  /// Opens the store beside the state file. One that cannot be read has no files, and the notifications are shown without them.
  func startAttachments(_ path: String, _ connection: DeviceConnection) async {
    let folder = AttachmentFolder(path: path + "-attachments")
    let disk = AttachmentDisk(folder)
    attachmentDisk = disk
    let live = (connection.memory.store.delivered + connection.memory.store.pending).flatMap(\.attachments).map(\.attachment.media.hash)
    let files = (try? await disk.call { folder throws(AttachmentFailure) in try folder.clean(keeping: Set(live)) }.get()) ?? []
    let fetcher = AttachmentFetcher(
      on: loop, folder, milliseconds: configuration.attachmentMilliseconds,
      AttachmentLedger(limit: configuration.stateLimits.attachmentBytes, files: files),
      .init(
        tell: { [weak self] event in self?.assumeIsolated { $0.pass(event) } },
        kept: { [weak connection] in connection.map { $0.memory.store.delivered + $0.memory.store.pending } ?? [] },
        now: { [weak connection] in connection?.now ?? 0 },
        askForLink: { [weak connection] frame throws(DeviceError) in try connection?.askForLinks([frame]) },
        download: { [weak self] media in self?.assumeIsolated { $0.attachmentTask { await $0.attachments?.download(media, to: disk) } } },
        sweep: { [weak self] in self?.assumeIsolated { $0.attachmentTask { await $0.attachments?.sweep(from: disk) } } }))
    attachments = fetcher
  }

  /// Notifications have come into a list, or have left one.
  func listsChanged() {
    let change = attachments?.listsChanged()
    connection?.memory.writer.whenDurable { [weak self] failure in
      guard failure == nil else { return }
      self?.assumeIsolated { $0.listsAreDurable(change) }
    }
  }

  private func listsAreDurable(_ change: Int?) {
    if let change { attachments?.listsAreDurable(change) }
    watchListsChanged()
  }

  /// Ends all downloads, shows what waited for them, and returns when nothing uses the disk any more.
  func closeAttachments() async {
    attachments?.close()
    while attachmentTasks > 0 {
      await withCheckedContinuation { continuation in
        // Checked here, since other tasks may run between a check and an await: the last one would find nobody to resume.
        if attachmentTasks == 0 { continuation.resume() } else { whenAttachmentsEnd = continuation }
      }
    }
    attachments?.closeClient()
    attachments = nil
    let disk = attachmentDisk
    attachmentDisk = nil
    await disk?.loop.close()
  }

  /// Begins a task that uses the store's disk. The end of the device waits for it.
  func attachmentTask(_ work: @escaping @Sendable (isolated Device) async -> Void) {
    attachmentTasks += 1
    Task(executorPreference: loop) {
      await work(self)
      await self.attachmentTaskEnded()
    }
  }

  /// Removes files of the program, which the store has now; while a task of the store runs.
  func removeFiles(_ copied: [(path: String, hash: MediaHash)]) async {
    for (path, hash) in copied { _ = await attachmentDisk?.call { $0.remove(path, copiedAs: hash) } }
  }

  func attachmentTaskEnded() {
    attachmentTasks -= 1
    guard attachmentTasks == 0 else { return }
    whenAttachmentsEnd?.resume()
    whenAttachmentsEnd = nil
  }
}

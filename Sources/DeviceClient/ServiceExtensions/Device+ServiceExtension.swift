internal import Extensions
internal import Notifications

/// What the program's service extension makes of notifications.
extension Device {
  /// Starts the extension, and gives it the notifications that waited for it when the program ended.
  func startServiceExtension(_ state: StoredState, _ connection: DeviceConnection) {
    let memory = connection.memory
    if let work = configuration.serviceExtension {
      let program = ProgramExtension(
        work, milliseconds: configuration.serviceExtensionMilliseconds, on: loop,
        application: configuration.extensions?.application ?? configuration.hello.application, memory.store.extensions,
        .init(
          begin: { [weak connection] in connection?.memory.beginExtending($0, $1) ?? false },
          end: { [weak self] notification, run in self?.assumeIsolated { $0.extended(notification, run) } },
          now: { [weak connection] in connection?.now ?? 0 }))
      serviceExtension = program
      memory.extend = { [weak program] in program?.add($0) }
      memory.extendingEnded = { [weak program, weak memory] in
        program?.keep { notification in memory?.store.extending.contains { $0.isSame(notification) } ?? false }
      }
    }
    for stored in state.extending {
      let notification = stored.notification
      if let serviceExtension, !stored.isBegun {
        serviceExtension.add(notification)
      } else {
        if stored.isBegun { tell(.extensionFailed(notification: notification.identifier, "the program has ended while it worked")) }
        memory.endExtending(notification, changed: nil, now: connection.now)
      }
    }
  }

  /// Gives up the calls of the extension. It gets their notifications again at the next start, since it was not the reason for the end.
  func closeServiceExtension(_ connection: DeviceConnection) async {
    let running = await serviceExtension?.close() ?? []
    serviceExtension = nil
    for notification in running { connection.memory.postponeExtending(notification) }
  }

  /// Shows a notification as the extension has left it; nil if that was not called.
  private func extended(_ notification: DeliveredNotification, _ run: ExtensionRun?) {
    let failure = run.map { $0.outcomes.last?.failure } ?? ExtensionFailure("too many notifications have waited for it")
    if let failure { tell(.extensionFailed(notification: notification.identifier, failure.description)) }
    guard let run, let written = run.written else {
      if let connection { connection.memory.endExtending(notification, changed: nil, now: connection.now) }
      return
    }
    var frame = notification.frame
    frame.payload = written.payload
    attachmentTask { [frame] in await $0.show(notification, as: frame, run.content.attachments) }
  }

  /// Shows a changed notification, with the files that the extension has attached moved into the store.
  private func show(_ notification: DeliveredNotification, as changed: NotifyFrame, _ attachments: [ContentAttachment]) async {
    var frame = changed
    frame.attachments = []
    var copied: [(path: String, hash: MediaHash)] = []
    for attachment in attachments {
      do throws(AttachmentFailure) {
        var linked = try linked(attachment, of: notification)
        if linked == nil, let path = attachment.filePath {
          let media = try await copy(path)
          copied.append((path, media.hash))
          let copy = NotificationAttachment(identifier: attachment.identifier, media: media, options: attachment.options)
          linked = LinkedAttachment(copy, link: nil)
        }
        if let linked { frame.attachments.append(linked) }
      } catch {
        tell(.attachmentMissing(notification: notification.identifier, attachment: attachment.identifier, error))
      }
    }
    if let connection {
      await withCheckedContinuation { continuation in
        connection.memory.endExtending(notification, changed: frame, now: connection.now) { continuation.resume() }
      }
    }
    for file in copied { self.attachments?.close(file.hash) }
    // The files are moved, as those of a local request. What the store does not take stays where it was.
    await removeFiles(copied)
  }

  /// An attachment that the notification came with; nil for a file of the program.
  private func linked(_ attachment: ContentAttachment, of notification: DeliveredNotification) throws(AttachmentFailure)
    -> LinkedAttachment?
  {
    guard case .stored(let media) = attachment.source else {
      guard attachment.filePath == nil else { return nil }
      throw AttachmentFailure(.unreachable, "the service extension has not fetched it: what it attaches is a file of the device")
    }
    guard let given = notification.frame.attachments.first(where: { $0.attachment.media == media }) else {
      throw AttachmentFailure(.wrongContent, "the service extension names a file that the notification has not come with")
    }
    return LinkedAttachment(
      NotificationAttachment(identifier: attachment.identifier, media: media, options: attachment.options), link: given.link)
  }
}

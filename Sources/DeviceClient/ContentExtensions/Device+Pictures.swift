internal import EventLoop
internal import Glibc
internal import Notifications

/// The images of the expanded notification, of which a program without a screen shows the size.
extension Device {
  /// Begins to read the sizes of the panel's images from the store. The event `panel` tells them.
  func measureImages(_ open: OpenPanel) {
    let (notification, number) = (open.context.panel.notification, open.context.number)
    guard attachments != nil, !notification.attachments.isEmpty else { return }
    attachmentTasks += 1
    Task(executorPreference: loop) { await self.measureImages(of: notification, panel: number) }
  }

  private func measureImages(of notification: DeliveredNotification, panel number: Int) async {
    defer { attachmentTaskEnded() }
    var sizes: [Name: PixelSize] = [:]
    for attachment in notification.attachments.map(\.attachment) {
      sizes[attachment.identifier] = await pixelSize(of: attachment.media)
    }
    guard let open = openPanel, open.context.number == number else { return }
    open.context.state.measured(notification, sizes)
    panelChanged(number)
  }

  private func pixelSize(of media: Media) async -> PixelSize? {
    guard let attachments, let attachmentDisk, let path = attachments.open(media.hash) else { return nil }
    defer { attachments.close(media.hash) }
    return PixelSize(beginning: await attachmentDisk.beginning(of: path, bytes: PixelSize.searchedBytes), of: media.type)
  }
}

extension AttachmentDisk {
  /// Reads the first bytes of a file of the store; none if it cannot be read.
  func beginning(of path: String, bytes limit: Int) -> [UInt8] {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    return [UInt8](unsafeUninitializedCapacity: limit) { buffer, filled in
      while filled < limit {
        let count = read(descriptor, buffer.baseAddress.map { $0 + filled }, limit - filled)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { break }
        filled += count
      }
    }
  }
}

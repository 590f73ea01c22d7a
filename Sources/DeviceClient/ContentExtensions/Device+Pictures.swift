internal import EventLoop
internal import Notifications

/// The images of the expanded notification, of which a program without a screen shows the size.
extension Device {
  /// Begins to read the sizes of the panel's images from the store. The event `panel` tells them.
  func measureImages(_ open: OpenPanel) {
    let (notification, number) = (open.context.panel.notification, open.context.number)
    guard attachments != nil, !notification.attachments.isEmpty else { return }
    attachmentTask { await $0.measureImages(of: notification, panel: number) }
  }

  /// A file has come, maybe one of the panel's notification.
  func measureImages(with media: Media) {
    guard let openPanel, openPanel.context.panel.notification.attachments.contains(where: { $0.attachment.media == media }) else { return }
    measureImages(openPanel)
  }

  private func measureImages(of notification: DeliveredNotification, panel number: Int) async {
    var sizes: [Name: PixelSize] = [:]
    for attachment in notification.attachments.map(\.attachment) {
      sizes[attachment.identifier] = await pixelSize(of: attachment.media)
    }
    guard let open = openPanel, open.context.number == number else { return }
    open.context.state.measured(notification, sizes)
    panelChanged(number)
  }

  /// Opens a file for the extension of this panel; nil if the panel is closed, or the file is not there.
  func openFile(_ media: Media, panel number: Int) -> String? {
    openPanel?.context.number == number ? attachments?.open(media) : nil
  }

  private func pixelSize(of media: Media) async -> PixelSize? {
    guard let attachments, let attachmentDisk, let path = attachments.open(media) else { return nil }
    defer { attachments.close(media.hash) }
    return PixelSize(beginning: await attachmentDisk.beginning(of: path, bytes: PixelSize.searchedBytes), of: media.type)
  }
}

public import Notifications

/// What a content extension reads and changes of its panel (`NSExtensionContext` and the view controller). Confined to the device's loop.
///
/// A change is told by the event `panel`, several of one turn of the loop together. After the panel's end it has no effect.
public final class ContentExtensionContext {
  var state: PanelState
  /// Which panel of the device it is: an extension may have its context longer than its panel.
  let number: Int
  private weak var device: Device?
  /// The files that the extension has open, and how often.
  private var files: [MediaHash: Int] = [:]

  init(_ state: PanelState, number: Int, _ device: Device) { (self.state, self.number, self.device) = (state, number, device) }

  /// The panel as it is drawn.
  public var panel: Panel { state.panel }

  /// The title, if the declaration says that the extension has one.
  public var title: String {
    get { state.panel.title }
    set { change { $0.title = newValue } }
  }

  /// The attachments of the panel's notification that are drawn above the lines.
  public var pictures: [Name] {
    get { state.panel.pictures }
    set { change { $0.pictures = newValue } }
  }

  /// The extension's own content, as lines of text.
  public var lines: [PanelLine] {
    get { state.panel.lines }
    set { change { $0.lines = newValue } }
  }

  /// The extension's own controls; they stay empty without the declaration of interaction.
  public var controls: [PanelControl] {
    get { state.panel.controls }
    set { change { $0.controls = newValue } }
  }

  /// The text field that takes what the person types; nil gives it up (`becomeFirstResponder`, `resignFirstResponder`).
  public var firstResponder: Name? {
    get { state.panel.firstResponder }
    set { change { $0.firstResponder = newValue } }
  }

  /// The size that the panel is animated to.
  public var preferredContentSize: PanelSize? {
    get { state.panel.preferredSize }
    set { change { $0.preferredSize = newValue } }
  }

  /// The actions below the panel: the category's, until they are replaced. At most 10 are shown.
  public var notificationActions: [NotificationAction] {
    get { state.panel.actions }
    set { change { $0.actions = newValue } }
  }

  /// How the media button is drawn; nil for none.
  public var mediaPlayPauseButtonType: MediaButton.Kind? {
    get { state.panel.mediaButton?.kind }
    set { change { panel in panel.mediaButton = newValue.map { MediaButton($0, isPlaying: panel.mediaButton?.isPlaying ?? false) } } }
  }

  /// Shows that media play, without a tap on the button or after one.
  public func mediaPlayingStarted() { change { $0.mediaButton?.isPlaying = true } }

  /// Shows that media pause.
  public func mediaPlayingPaused() { change { $0.mediaButton?.isPlaying = false } }

  /// Opens an attachment's file for the extension, until it is closed or the panel ends (`startAccessingSecurityScopedResource`).
  ///
  /// The file stays while it is open, even if its notification goes. Each call needs a `stopAccessing` of its own.
  /// - Returns: the file; nil if it is not in the store, or the panel is closed.
  public func startAccessing(_ attachment: Name, of notification: DeliveredNotification) -> AttachmentFile? {
    let media = notification.attachments.first { $0.attachment.identifier == attachment }?.attachment.media
    let number = number
    guard let media, let path = device?.assumeIsolated({ $0.openFile(media, panel: number) }) else { return nil }
    files[media.hash, default: 0] += 1
    return AttachmentFile(path: path, type: media.type, size: media.size)
  }

  /// Closes an attachment's file that the extension has opened (`stopAccessingSecurityScopedResource`).
  public func stopAccessing(_ attachment: Name, of notification: DeliveredNotification) {
    let hash = notification.attachments.first { $0.attachment.identifier == attachment }?.attachment.media.hash
    guard let hash, let count = files[hash] else { return }
    files[hash] = count > 1 ? count - 1 : nil
    device?.assumeIsolated { $0.attachments?.close(hash) }
  }

  /// Closes the files that the extension still has open at the panel's end.
  func closeFiles() {
    let open = files
    files = [:]
    device?.assumeIsolated { device in
      for (hash, count) in open { for _ in 0..<count { device.attachments?.close(hash) } }
    }
  }

  /// Opens the application by the default action, past the extension, and closes the panel.
  ///
  /// It takes the place of the response that the extension has. Throws if too many responses wait.
  public func performNotificationDefaultAction() throws(DeviceError) {
    let number = number
    let result = device?.assumeIsolated { device -> Result<Void, DeviceError> in
      do throws(DeviceError) { return .success(try device.performDefaultAction(panel: number)) } catch { return .failure(error) }
    }
    try result?.get()
  }

  /// Closes the panel without a response; the notification stays in the list.
  public func dismissNotificationContentExtension() {
    let number = number
    device?.assumeIsolated { $0.closePanel(number) }
  }

  private func change(_ body: (inout Panel) -> Void) {
    let former = state.panel
    state.change(body)
    let number = number
    if state.panel != former { device?.assumeIsolated { $0.panelChanged(number) } }
  }
}

internal import JSON
internal import Notifications

/// A panel as text, for a program without a screen of its own.
extension Panel: CustomStringConvertible {
  /// The panel in a frame of characters, without colors and without control characters of foreign text.
  public var description: String { text(isColored: false) }

  /// The panel in a frame of characters, without control characters of foreign text.
  ///
  /// - Parameter isColored: whether lines have their colors, for a terminal.
  public func text(isColored: Bool) -> String {
    let content = notification.content
    var parts = [[PanelLine(title)]]
    if showsDefaultContent {
      parts.append(
        ([content.title, content.subtitle, content.body].filter { !$0.isEmpty }
          + notification.attachments.flatMap { picture($0.attachment) }).map { PanelLine($0) })
    }
    let pictures = self.pictures.compactMap { name in notification.attachments.first { $0.attachment.identifier == name } }
    let media: [PanelLine] = mediaButton.map { [$0.isPlaying ? "[pause]" : "[play]"] } ?? []
    parts.append(pictures.flatMap { picture($0.attachment) }.map { PanelLine($0) } + lines + media)
    parts.append(controls.map { PanelLine($0.drawn(isFocused: $0.identifier == firstResponder)) })
    parts.append(actions.isEmpty ? [] : [PanelLine(actions.map(\.drawn).joined(separator: "  "))])
    let rows = parts.map { part in
      part.flatMap { line in
        line.text.split(separator: "\n", omittingEmptySubsequences: false).map { PanelLine(Self.plain($0), isColored ? line.color : nil) }
      }
    }
    let width = max(rows.joined().map(\.text.count).max() ?? 0, 36)
    let rule = String(repeating: "─", count: width + 2)
    let boxes = rows.filter { !$0.isEmpty }.map { part in
      part.map { "│ \($0.styled)\(String(repeating: " ", count: width - $0.text.count)) │" }.joined(separator: "\n")
    }
    return "┌\(rule)┐\n" + boxes.joined(separator: "\n├\(rule)┤\n") + "\n└\(rule)┘"
  }

  /// The place of an attachment: what it is, in a frame.
  private func picture(_ attachment: NotificationAttachment) -> [String] {
    let texts = [Self.plain(attachment.identifier.text), "\(attachment.media.type.name)", "\(attachment.media.size) bytes"]
    let width = max(texts.map(\.count).max() ?? 0, 28)
    let rule = String(repeating: "─", count: width + 2)
    return ["╭\(rule)╮"] + texts.map { "│ \($0)\(String(repeating: " ", count: width - $0.count)) │" } + ["╰\(rule)╯"]
  }

  /// Text from outside with a space for each character that could control a terminal.
  public static func plain(_ text: some StringProtocol) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { $0 == "\u{200D}" || PrintedText.isVisible($0) ? $0 : " " }))
  }
}

extension NotificationAction {
  /// The action with three points if it takes a text, and with a mark if it destroys something: there is no color.
  fileprivate var drawn: String {
    "<\(options.contains(.destructive) ? "! " : "")\(title)\(textInput == nil ? "" : " …")>"
  }
}

extension PanelControl {
  fileprivate func drawn(isFocused: Bool) -> String {
    switch kind {
    case .button: "[\(title)] (\(identifier))"
    case .textField(let placeholder, let buttonTitle):
      "\(isFocused ? ">" : " ") \(title): \(placeholder) [\(buttonTitle)] (\(identifier))"
    }
  }
}

extension PanelLine {
  /// The text with the terminal's sequences for its color.
  fileprivate var styled: String { color.map { "\u{1B}[\($0.rawValue)m\(text)\u{1B}[0m" } ?? text }
}

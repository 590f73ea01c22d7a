public import Notifications

/// A notification that the person has expanded, as it is to be drawn at this moment. A value.
public struct Panel: Sendable, Equatable {
  /// The notification; a newer one of its identifier takes its place.
  public internal(set) var notification: DeliveredNotification
  /// The title: the application's name, or that of the extension.
  public internal(set) var title: String
  /// Whether title, subtitle, body and attachments of the notification are drawn.
  public internal(set) var showsDefaultContent = true
  /// The attachments that the extension draws above its lines.
  public internal(set) var pictures: [Name] = []
  /// The extension's own content.
  public internal(set) var lines: [PanelLine] = []
  /// The extension's own controls; none without the declaration of interaction.
  public internal(set) var controls: [PanelControl] = []
  /// The text field that takes what the person types.
  public internal(set) var firstResponder: Name?
  /// The height divided by the width at first; nil opens it full.
  public internal(set) var initialSizeRatio: Double?
  /// The size that the extension wishes, which the panel is animated to.
  public internal(set) var preferredSize: PanelSize?
  /// The actions below the panel, which the extension may have replaced.
  public internal(set) var actions: [NotificationAction]
  /// The button that plays and pauses; nil without one.
  public internal(set) var mediaButton: MediaButton?

  /// The identifier of its notification.
  public var identifier: Name { notification.identifier }
}

/// A control that a content extension draws in its panel.
public struct PanelControl: Sendable, Equatable {
  /// What the person does with it.
  public enum Kind: Sendable, Equatable {
    /// It is tapped.
    case button
    /// It takes a text, and has a button of its own that hands the text over.
    case textField(placeholder: String, buttonTitle: String)
  }

  /// The extension's name for it, unique in its panel.
  public var identifier: Name
  /// The title.
  public var title: String
  /// What the person does with it.
  public var kind: Kind

  /// A control.
  public init(identifier: Name, title: String, kind: Kind = .button) {
    (self.identifier, self.title, self.kind) = (identifier, title, kind)
  }

  var isTextField: Bool { if case .textField = kind { true } else { false } }
}

/// The size of a panel's content, in points.
public struct PanelSize: Sendable, Hashable {
  /// The width.
  public var width: Double
  /// The height.
  public var height: Double

  /// A size.
  public init(width: Double, height: Double) { (self.width, self.height) = (width, height) }
}

/// The button in a panel that plays and pauses media.
public struct MediaButton: Sendable, Hashable {
  /// How it is drawn (`UNNotificationContentExtensionMediaPlayPauseButtonType`).
  public enum Kind: Sendable, Hashable {
    /// Below the content, always visible.
    case `default`
    /// Over the content, partly transparent.
    case overlay
  }

  /// How it is drawn.
  public var kind: Kind
  /// Whether it pauses, since the media play.
  public internal(set) var isPlaying: Bool

  /// A button.
  public init(_ kind: Kind) { self.init(kind, isPlaying: false) }

  init(_ kind: Kind, isPlaying: Bool) { (self.kind, self.isPlaying) = (kind, isPlaying) }
}

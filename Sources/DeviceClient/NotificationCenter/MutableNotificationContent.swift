public import JSON
public import Notifications

/// The content of a local request, set member by member (`UNMutableNotificationContent`).
///
///     var content = MutableNotificationContent()
///     content.title = "Tea"
///     content.sound = .default
///     content.userInfo["cups"] = 2
public struct MutableNotificationContent: Sendable, Equatable {
  /// The title; empty for none.
  public var title = ""
  /// The subtitle; empty for none.
  public var subtitle = ""
  /// The text; empty for none.
  public var body = ""
  /// The number at the application's icon; 0 removes it, nil leaves it.
  public var badge: Int?
  /// The sound; nil for none.
  public var sound: NotificationSound?
  /// The name of the notification's group.
  public var threadIdentifier: Name?
  /// The category with its actions.
  public var categoryIdentifier: Name?
  /// The window of the application that opens.
  public var targetContentIdentifier: Name?
  /// How far it may interrupt.
  public var interruptionLevel = InterruptionLevel.active
  /// The rank in a summary, from 0 to 1.
  public var relevanceScore: Double?
  /// The text that a Focus compares with its filter.
  public var filterCriteria: String?
  /// The image or storyboard at the application's start.
  public var launchImageName: String?
  /// The program's own members; a member `aps` is ignored.
  public var userInfo: [String: JSONValue] = [:]
  /// The files that `add` moves into the device's store.
  public var attachments: [AttachmentSource] = []

  /// An empty content.
  public init() {}

  /// The content as a request has it, without the files.
  public var content: NotificationContent {
    NotificationContent(
      title: title, subtitle: subtitle, body: body, badge: badge, sound: sound, threadIdentifier: threadIdentifier,
      categoryIdentifier: categoryIdentifier, targetContentIdentifier: targetContentIdentifier, interruptionLevel: interruptionLevel,
      relevanceScore: relevanceScore, filterCriteria: filterCriteria, launchImageName: launchImageName, userInfo: userInfo)
  }
}

extension NotificationRequest {
  /// A request with a content that was set member by member, and its files.
  public init(identifier: Name, content: MutableNotificationContent, trigger: NotificationTrigger? = nil) {
    self.init(identifier: identifier, content: content.content, trigger: trigger, attachments: content.attachments)
  }
}

extension NotificationContent {
  /// The program's own members: all of the payload but `aps`.
  public var userInfo: [String: JSONValue] {
    Dictionary((payload.members ?? []).filter { $0.key != "aps" }.map { ($0.key, $0.value) }) { first, _ in first }
  }
}

extension NotificationSound {
  /// The system's sound.
  public static var `default`: NotificationSound { NotificationSound() }
  /// The system's sound, also on a muted device.
  public static var defaultCritical: NotificationSound { NotificationSound(isCritical: true) }
}

import DeviceClient
import Glibc
import JSON
import Notifications
import Worker

/// The events of a device as text for a person.
///
/// It removes control characters from foreign text, so that no notification controls the terminal.
struct DeviceText {
  /// Whether titles are bold.
  var isStyled = TerminalStyle.isWanted(on: STDOUT_FILENO)
  /// The numbers of notifications. A number stays with its identifier while that is in the list.
  private var numbers: [Name: Int] = [:]
  private var lastNumber = 0

  static let help = """
    list                     what was delivered, the newest first, and what waits for a time or a place
    add NAME [WHEN] TEXT     adds a local notification, at once or WHEN: in 60, every 3600, at 09:30, daily 09:30
    cancel NAME… | cancel all  they do not wait any more
    open N                   opens it (the default action)
    act N ACTION [TEXT]      takes an action of its category
    reply N TEXT             takes the action of its category that takes text
    dismiss N                dismisses it; told only if its category asks for that
    remove N… | remove all   takes it off the list; nothing is told
    fire IDENTIFIER          shows a notification that waits: the device is at its place
    links N                  new links to its attachments: those that it came with are good for a while
    settings [NAME VALUE]    shows all settings, or changes what notifications may do, previews, the locale, the time zone
    quiet FROM TO ZONE       the person's quiet hours, such as quiet 22:00 07:00 Europe/Rome; quiet off removes them
    state [STATE]            shows or sets what the program is doing: foreground, background, locked
    allow | deny             answers whether notifications are wanted, when that is asked
    connect                  reconnects after the cluster has told it to stay away
    unregister               signs out, and ends
    quit                     ends (also Ctrl-C); what was delivered meanwhile comes at the next start
    N is the number in brackets, or an identifier.
    On a terminal Ctrl-D ends.
    """

  // MARK: Numbers

  /// The number of an identifier, assigned now if it has none.
  mutating func number(of identifier: Name) -> Int {
    if let number = numbers[identifier] { return number }
    lastNumber += 1
    numbers[identifier] = lastNumber
    return lastNumber
  }

  /// The identifier of a number.
  func identifier(_ number: Int) -> Name? { numbers.first { $0.value == number }?.key }

  /// Forgets the numbers of notifications that have left the list.
  mutating func keep(_ listed: [DeliveredNotification]) {
    guard numbers.count > listed.count else { return }
    let identifiers = Set(listed.map(\.identifier))
    numbers = numbers.filter { identifiers.contains($0.key) }
  }

  // MARK: Texts

  /// Renders what the screen shows of a notification when it comes, in the ways of its presentation.
  mutating func shown(
    _ notification: DeliveredNotification, mark: String, categories: [NotificationCategory], preview: NotificationPreview?
  ) -> String {
    let ways = notification.presentation
    guard ways.isDisjoint(with: [.banner, .lockScreen]) else {
      return self.notification(notification, mark: mark, categories: categories, preview: preview)
    }
    let isListed = ways.contains(.list)
    let listed = isListed ? ["[\(number(of: notification.identifier))] \(Self.plain(notification.identifier)) is in the list"] : []
    return "-- " + (listed + Self.attention(notification)).joined(separator: " · ")
  }

  /// The badge and the sound with which a notification came.
  private static func attention(_ notification: DeliveredNotification) -> [String] {
    let (content, ways) = (notification.content, notification.presentation)
    let badge = ways.contains(.badge) ? content.badge.map { "badge \($0)" } : nil
    let sound = ways.contains(.sound) ? content.sound.map { "sound \(plain($0.name))" } : nil
    return [badge, sound].compactMap { $0 }
  }

  /// Renders a notification and its actions.
  ///
  /// - Parameter preview: the texts that may be drawn; nil for all.
  mutating func notification(
    _ notification: DeliveredNotification, mark: String, categories: [NotificationCategory], preview: NotificationPreview?
  ) -> String {
    let content = notification.content
    let texts = preview ?? NotificationPreview(of: content, .always, in: .foreground, category: nil)
    let number = "[\(number(of: notification.identifier))] "
    var lines = [Self.plain(texts.title), Self.plain(texts.subtitle), Self.plain(texts.body)].filter { !$0.isEmpty }
    if lines.isEmpty { lines = ["(nothing to read)"] }
    if isStyled, !texts.title.isEmpty { lines[0] = "\u{1B}[1m\(lines[0])\u{1B}[0m" }
    var facts = Self.attention(notification)
    // The cluster may have lowered it.
    let level = notification.frame.interruptionLevel ?? content.interruptionLevel
    if level != .active { facts.append(level.rawValue) }
    if let category = content.categoryIdentifier {
      facts.append(actions(category, categories.first { $0.identifier == category } ?? notification.frame.category))
    }
    facts.append(Self.plain(notification.identifier))
    let indent = String(repeating: " ", count: number.count)
    if !texts.isHidden { lines += notification.attachments.map(Self.attachment) }
    return number + (mark.isEmpty ? "" : "\(mark) ") + lines.joined(separator: "\n" + indent) + "\n" + indent
      + facts.joined(separator: " · ")
  }

  /// Renders an attachment and its link.
  private static func attachment(_ linked: LinkedAttachment) -> String {
    let media = linked.attachment.media
    return "\(plain(linked.attachment.identifier)) (\(media.type.name), \(TerminalText.count(media.size, "byte")))"
      + (linked.link.map { ": \(plain($0.url))" } ?? "")
  }

  private func actions(_ category: Name, _ known: NotificationCategory?) -> String {
    guard let known else {
      return "category \(Self.plain(category)) (not registered)"
    }
    let actions = known.actions.map { Self.plain($0.textInput == nil ? $0.identifier.text : "\($0.identifier) TEXT") }
    return "\(Self.plain(category)): \(actions.isEmpty ? "no actions" : actions.joined(separator: ", "))"
  }

  /// Renders another event; nil if a person need not see it.
  func event(_ event: DeviceEvent) -> String? {
    switch event {
    case .frame, .shown, .updated, .panel, .panelClosed: nil
    case .connected(let welcome, let url): "connected to \(url) (session \(Self.plain(welcome.session)))"
    case .closed(let code, let reason, let wait):
      "connection closed: \(CloseCode(rawValue: code).map { "\($0.name) (\(code))" } ?? "\(code)")"
        + (reason.isEmpty ? "" : ", \(Self.plain(reason))") + Self.coming(back: wait)
    case .unreachable(let reason, let wait): Self.plain(reason) + Self.coming(back: wait)
    case .silent(let notification):
      notification.content.isBackground
        ? "background notification \(Self.plain(notification.identifier)): \(Self.plain(notification.content.payload.text))"
        : "notification \(Self.plain(notification.identifier)) was taken and not shown: it only wakes the program"
    case .forwarded(let notification): "the watch has shown \(Self.plain(notification.identifier))"
    case .held(let notification):
      "notification \(Self.plain(notification.identifier)) waits for its place; 'fire \(Self.plain(notification.identifier))' says that the device is there"
    case .dropped(_, let id, let identifiers, let reason):
      "not taken (\(reason.rawValue)): \(Self.plain(identifiers.map(\.text).joined(separator: ", ")))\(id.map { " \(Self.plain($0))" } ?? "")"
    case .removed(let identifiers, let notifications):
      "\(notifications.isEmpty ? "the cluster removes what is not in the list" : "removed by the cluster"): \(identifiers.isEmpty ? "all" : Self.plain(identifiers.map(\.text).joined(separator: ", ")))"
    case .attachmentMissing(let notification, let attachment, let failure):
      "\(Self.plain(notification)) is shown without \(Self.plain(attachment)): \(Self.plain(failure.description))"
    case .extensionFailed(let notification, let reason):
      "the service extension has not finished \(Self.plain(notification)): \(Self.plain(reason))"
    case .activated(let identifier): "the program comes to the foreground, because of \(Self.plain(identifier))"
    case .unhandled(let notification): "the program has not taken \(Self.plain(notification.identifier)) in time"
    case .accepted(.response): "the cluster has the response"
    case .accepted(.request): "the cluster has the change"
    case .refused(let frame):
      "refused: \(Self.plain(frame.reason))\(frame.field.isEmpty ? "" : ", \(Self.plain(frame.field))")\(frame.rule.isEmpty ? "" : ": \(Self.plain(frame.rule))")"
    case .linked(let frame): "a new link: \(Self.plain(frame.link.url))"
    case .gap(let gap): "what came between \(Self.plain(gap.from)) and \(Self.plain(gap.to)) cannot be delivered any more"
    case .goaway(let goaway):
      "told to go away: \(Self.plain(goaway.reason))\(goaway.reconnectAfterMs.map { ", reconnect in \(TerminalText.duration(Int64($0)))" } ?? "")"
    case .badFrame(let error): "a frame of the cluster was not understood: \(Self.plain(error.description))"
    case .unregistered: "unregistered: the cluster has forgotten this device"
    case .failed(let error): error.description
    }
  }

  /// The person's quiet hours, as they are typed.
  static func quiet(_ hours: QuietHours) -> String {
    let days = (1...7).filter { hours.days & 1 << UInt8($0 - 1) != 0 }.map { "\($0)" }
    return "quiet \(QuietHours.text(of: hours.from)) \(QuietHours.text(of: hours.to)) \(plain(hours.timeZone))"
      + (hours.days == QuietHours.everyDay ? "" : " on the days \(days.joined(separator: " ")) of the week")
  }

  private static func coming(back wait: Int?) -> String {
    guard let wait else { return "; it does not reconnect by itself (connect)" }
    return "; it reconnects in \(TerminalText.duration(Int64(wait)))"
  }

  /// A foreign name without control characters.
  static func plain(_ name: Name) -> String { plain(name.text) }

  /// Foreign text without control characters.
  static func plain(_ text: String) -> String { Panel.plain(text) }
}

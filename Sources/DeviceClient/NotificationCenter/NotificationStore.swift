public import Extensions
internal import JSON
public import Notifications

/// A device's knowledge of notifications. A value: it takes frames and returns what happens to them.
///
/// It keeps the guarantees that only the device can keep. Each id is taken at most once, the screen has the newest revision of each
/// identifier, and nothing is shown after its expiration. So it keeps ids and the newest revision of each identifier, also of dismissed,
/// removed and expired ones. All times are the cluster's, in milliseconds since 1970.
public struct NotificationStore: Sendable {
  /// The limits of its memory. Beyond each limit the oldest is removed.
  public struct Limits: Sendable, Hashable {
    /// Ids that were taken.
    public var ids = 50_000
    /// Identifiers with their newest revision.
    public var identifiers = 50_000
    /// Delivered notifications in the list.
    public var delivered = 500
    /// Notifications that wait for a location.
    public var pending = 64

    /// The defaults.
    public init() {}
  }

  /// The result of a notification.
  public enum Outcome: Sendable, Equatable {
    /// It is shown.
    case shown(DeliveredNotification)
    /// It replaces the delivered one of its identifier, at the top of the list.
    case updated(DeliveredNotification)
    /// It is stored and not shown, because it only wakes the application or the person allows nothing.
    case silent(DeliveredNotification)
    /// It waits until the device is at its trigger's location.
    case held(DeliveredNotification)
    /// It is dropped.
    case dropped(DropReason)
  }

  /// The result of a removal.
  public enum Removal: Sendable, Equatable {
    /// It is valid; these were in the list.
    case removed([DeliveredNotification])
    /// It is dropped: it is a repeat, or newer ones have come.
    case dropped(DropReason)
  }

  /// The person's permissions, which apply to later notifications.
  public var authorization: Authorization
  /// How long ids and revisions are kept, in seconds; each welcome sets it.
  public var rememberSeconds: Int64 = 30 * 86_400
  /// The delivered notifications, the newest first.
  public private(set) var delivered: [DeliveredNotification] = []
  /// The notifications that wait for a location, in the order of their arrival.
  public private(set) var pending: [DeliveredNotification] = []
  /// The number at the application's icon.
  public private(set) var badge = 0

  private let limits: Limits
  private let extensions: ContentExtensions
  private(set) var ids: AgedTable<Void>
  private(set) var revisions: AgedTable<String>
  /// The revision of the newest removal of all notifications.
  private(set) var floor: String?

  /// An empty store.
  ///
  /// - Parameters:
  ///   - extensions: they change mutable notifications before these are shown.
  ///   - locale: the device's, for extensions that add texts.
  public init(
    authorization: Authorization = Authorization(status: .authorized), limits: Limits = Limits(), extensions: ExtensionChain? = nil,
    locale: String? = nil
  ) {
    self.authorization = authorization
    self.extensions = ContentExtensions(chain: extensions, locale: locale)
    self.limits = limits
    ids = AgedTable(limit: limits.ids)
    revisions = AgedTable(limit: limits.identifiers)
  }

  // MARK: Frames of the cluster

  /// Takes a notification, or returns why not.
  public mutating func take(_ frame: NotifyFrame, now: Int64) -> Outcome {
    forget(now)
    if ids[Name(frame.id)] != nil { return .dropped(.known) }
    let newest = revisions[frame.identifier]
    if let newest, frame.revision.isOlder(than: newest) { return .dropped(.stale) }
    // What waits for a place is pending, and no removal touches it.
    if let floor, frame.trigger == nil, frame.revision.isOlder(than: floor) { return .dropped(.stale) }
    if frame.isPast(now) {
      // An older revision must not be shown because the newest came too late.
      note(frame.revision, of: frame.identifier, at: now)
      return .dropped(.expired)
    }
    if newest == frame.revision { return .dropped(.stale) }
    ids.set((), for: Name(frame.id), at: now)
    note(frame.revision, of: frame.identifier, at: now)
    let notification = DeliveredNotification(frame, takenAt: now, authorization: authorization, extensions)
    pending.removeAll { $0.identifier == frame.identifier }
    if frame.trigger != nil {
      pending.append(notification)
      if pending.count > limits.pending { pending.removeFirst() }
      return .held(notification)
    }
    return place(notification)
  }

  /// Removes delivered and waiting notifications that are not newer than the removal.
  public mutating func remove(_ identifiers: [Name], revision: String, now: Int64) -> Removal {
    forget(now)
    var removed: [DeliveredNotification] = []
    var isNew = identifiers.isEmpty
    var isKnown = false
    for identifier in identifiers {
      if let newest = revisions[identifier], !newest.isOlder(than: revision) {
        isKnown = isKnown || newest == revision
        continue
      }
      isNew = true
      note(revision, of: identifier, at: now)
      removed += clear([identifier])
      pending.removeAll { $0.identifier == identifier }
    }
    return isNew ? .removed(removed) : .dropped(isKnown ? .known : .stale)
  }

  /// Removes all delivered notifications that are older than the removal; what waits for a place stays.
  ///
  /// Older ones that come later are dropped.
  public mutating func removeAll(revision: String, now: Int64) -> Removal {
    forget(now)
    if let floor, !floor.isOlder(than: revision) { return .dropped(floor == revision ? .known : .stale) }
    floor = revision
    let removed = delivered.filter { $0.frame.revision.isOlder(than: revision) }
    delivered.removeAll { $0.frame.revision.isOlder(than: revision) }
    return .removed(removed)
  }

  // MARK: Actions of the person and the application

  /// The delivered notification of an identifier.
  public func notification(_ identifier: Name) -> DeliveredNotification? { delivered.first { $0.identifier == identifier } }

  /// Removes delivered notifications from the list, and returns those that were in it. Their ids and revisions are kept.
  public mutating func clear(_ identifiers: [Name]) -> [DeliveredNotification] {
    let cleared = delivered.filter { identifiers.contains($0.identifier) }
    if !cleared.isEmpty { delivered.removeAll { identifiers.contains($0.identifier) } }
    return cleared
  }

  /// Fires the trigger of a waiting notification; returns the result, or nil if none waits.
  ///
  /// One whose trigger repeats stays.
  public mutating func fire(_ identifier: Name, now: Int64) -> Outcome? {
    guard let index = pending.firstIndex(where: { $0.identifier == identifier }) else { return nil }
    let waiting = pending[index]
    let isPast = waiting.frame.isPast(now)
    if isPast || !waiting.triggerRepeats { pending.remove(at: index) }
    return isPast ? .dropped(.expired) : place(DeliveredNotification(waiting.frame, takenAt: now, authorization: authorization, extensions))
  }

  // MARK: Restoring

  mutating func restore(id: Name, at time: Int64) { ids.set((), for: id, at: time) }

  mutating func restore(revision: String, of identifier: Name, at time: Int64) { note(revision, of: identifier, at: time) }

  mutating func restore(floor revision: String) { floor = revision }

  /// Restores a notification as the newest of its list.
  mutating func restore(_ frame: NotifyFrame, at time: Int64, isPending: Bool) {
    let notification = DeliveredNotification(frame, takenAt: time, authorization: authorization, extensions)
    if isPending { pending.append(notification) } else { _ = place(notification) }
  }

  // MARK: Parts

  private mutating func place(_ notification: DeliveredNotification) -> Outcome {
    if notification.presentation.contains(.badge), let badge = notification.content.badge { self.badge = max(badge, 0) }
    // A notification without a text never enters the list, and changes nothing in it.
    guard notification.content.hasAlert else { return notification.presentation.isEmpty ? .silent(notification) : .shown(notification) }
    let former = clear([notification.identifier]).first
    delivered.insert(notification, at: 0)
    if delivered.count > limits.delivered { delivered.removeLast() }
    if notification.presentation.isEmpty { return .silent(notification) }
    return former.map { !$0.presentation.isEmpty } == true ? .updated(notification) : .shown(notification)
  }

  private mutating func note(_ revision: String, of identifier: Name, at time: Int64) {
    revisions.set(revision, for: identifier, at: time)
  }

  private mutating func forget(_ now: Int64) {
    let (span, overflow) = max(0, rememberSeconds).multipliedReportingOverflow(by: 1000)
    guard !overflow else { return }
    let earliest = Timestamp.bounded(now) - span
    ids.forget(before: earliest)
    revisions.forget(before: earliest)
  }
}

extension NotifyFrame {
  /// Whether it has expired, by the cluster's clock in milliseconds. 0 allows one attempt, whose end only the cluster knows.
  func isPast(_ now: Int64) -> Bool { expiration > 0 && now / 1000 >= expiration }
}

extension DeliveredNotification {
  /// Whether its trigger fires repeatedly.
  var triggerRepeats: Bool { frame.trigger.flatMap { try? JSONValue(parsing: $0) }?["repeats"]?.boolValue ?? false }
}

extension String {
  /// Whether a revision is older than another: byte by byte, as in the protocol.
  func isOlder(than other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }
}

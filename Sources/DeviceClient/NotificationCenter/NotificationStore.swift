public import Extensions
internal import JSON
public import Notifications

/// A device's knowledge of notifications. A value: it takes frames and returns what happens to them.
///
/// It keeps the guarantees that only the device can keep. Each id is taken at most once, the screen has the newest revision of each
/// identifier, and nothing is shown after its expiration. So it keeps ids and the newest revision of each identifier, also of dismissed,
/// removed and expired ones. All times are the cluster's, in milliseconds since 1970.
public struct NotificationStore {
  /// The limits of its memory. Beyond each limit the oldest is removed.
  public struct Limits: Sendable, Hashable {
    /// Ids that were taken.
    public var ids = 50_000
    /// Identifiers with their newest revision.
    public var identifiers = 50_000
    /// Delivered notifications in the list.
    public var delivered = 500
    /// Notifications that wait for a time or a place.
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
    /// It is stored and not shown, because it only wakes the application.
    case silent(DeliveredNotification)
    /// It waits for the time or the place of its trigger.
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
  /// What the program and the screen are doing.
  public var state = ApplicationState.foreground
  /// How long ids and revisions are kept, in seconds; each welcome sets it.
  public var rememberSeconds: Int64 = 30 * 86_400
  /// The delivered notifications, the newest first.
  public private(set) var delivered: [DeliveredNotification] = []
  /// The notifications that wait for a time or a place, in the order in which they were added.
  public var pending: [DeliveredNotification] { table.entries.map(\.notification) }
  /// The number at the application's icon.
  public private(set) var badge = 0

  /// The program's choice of how a notification is shown; nil allows all ways.
  var willPresent: ((DeliveredNotification) -> PresentationOptions)?
  /// The time zone of calendar triggers that name none.
  var zone: Name
  /// The ways of showing that the device's platform has.
  var platformWays = PresentationOptions.all

  private var table: PendingTable
  /// What has changed since `takeChanges`, for the database.
  private var changes: [StateChange] = []
  /// How many ids and revisions were set since the database was told to forget old ones.
  private var unforgotten = 0
  private let limits: Limits
  private let extensions: ServiceExtensions
  private(set) var ids: AgedTable<Void>
  private(set) var revisions: AgedTable<String>
  /// The revision of the newest removal of all notifications.
  private(set) var floor: String?

  /// An empty store.
  ///
  /// - Parameters:
  ///   - extensions: they change mutable notifications before these are shown.
  ///   - locale: the device's, for extensions that add texts.
  ///   - zone: the device's time zone, for calendar triggers that name none.
  public init(
    authorization: Authorization = Authorization(status: .authorized), limits: Limits = Limits(), extensions: ExtensionChain? = nil,
    locale: String? = nil, zone: Name = "UTC"
  ) {
    self.zone = zone
    table = PendingTable(limit: limits.pending)
    self.authorization = authorization
    self.extensions = ServiceExtensions(chain: extensions, locale: locale)
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
    changes.append(.took(Name(frame.id), at: now))
    note(frame.revision, of: frame.identifier, at: now)
    let notification = DeliveredNotification(frame, takenAt: now, isLocal: false, extensions)
    if frame.trigger != nil {
      hold(notification)
      return .held(notification)
    }
    removePending([frame.identifier])
    return place(notification)
  }

  /// Removes notifications of the cluster that are not newer than the removal. Local ones stay.
  ///
  /// - Parameter isOfPending: whether those go that wait for a place; else the delivered ones.
  public mutating func remove(_ identifiers: [Name], revision: String, isOfPending: Bool = false, now: Int64) -> Removal {
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
      if !isOfPending, notification(identifier)?.isLocal == false { removed += clear([identifier]) }
      if isOfPending, table[identifier]?.notification.isLocal == false { removePending([identifier]) }
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
    changes.append(.floor(revision))
    return .removed(clear(delivered.filter { $0.frame.revision.isOlder(than: revision) }.map(\.identifier)))
  }

  // MARK: Actions of the person and the application

  /// The delivered notification of an identifier.
  public func notification(_ identifier: Name) -> DeliveredNotification? { delivered.first { $0.identifier == identifier } }

  /// Removes delivered notifications from the list, and returns those that were in it. Their ids and revisions are kept.
  public mutating func clear(_ identifiers: [Name]) -> [DeliveredNotification] {
    let cleared = delivered.filter { identifiers.contains($0.identifier) }
    guard !cleared.isEmpty else { return [] }
    delivered.removeAll { identifiers.contains($0.identifier) }
    changes.append(.unlisted(cleared.map(\.identifier), isPending: false))
    return cleared
  }

  /// Fires the trigger of a waiting notification; returns the result, or nil if none waits.
  ///
  /// One whose trigger repeats stays.
  ///
  /// - Parameters:
  ///   - now: the cluster's time.
  ///   - localTime: the device's own time.
  public mutating func fire(_ identifier: Name, now: Int64, localTime: Int64) -> Outcome? {
    guard let waiting = table[identifier]?.notification else { return nil }
    let isPast = waiting.frame.isPast(now)
    if isPast || !waiting.triggerRepeats { removePending([identifier]) }
    return isPast ? .dropped(.expired) : place(waiting.taken(at: waiting.isLocal ? localTime : now))
  }

  // MARK: Local requests

  /// Takes a local request, whose trigger is known to be due some time. Times are the device's own.
  mutating func add(_ frame: NotifyFrame, localTime: Int64) -> Outcome {
    let notification = DeliveredNotification(frame, takenAt: localTime, isLocal: true, extensions)
    guard frame.trigger != nil else {
      removePending([frame.identifier])
      return place(notification)
    }
    hold(notification)
    return .held(notification)
  }

  /// Checks that a trigger is due some time.
  mutating func check(_ trigger: TimedTrigger, localTime: Int64) throws(Rejection) {
    try table.check(trigger, now: localTime, zone: zone)
  }

  /// The next time at which something is due, by the device's own clock; nil if nothing waits for a time.
  mutating func nextDue() -> Int64? { table.next(zone: zone) }

  /// Takes the device's own time; returns what becomes of the notifications that are due.
  mutating func takeTime(_ localTime: Int64) -> [(identifier: Name, Outcome)] {
    let due = table.take(now: localTime, zone: zone)
    changes += due.changed.map { .waiting($0.notification.identifier, anchor: $0.anchor, after: $0.after) }
    if !due.ended.isEmpty { changes.append(.unlisted(due.ended, isPending: true)) }
    return due.notifications.map { ($0.identifier, place($0.taken(at: localTime))) }
  }

  /// Removes requests that wait; returns those that did.
  @discardableResult mutating func removePending(_ identifiers: [Name]) -> [Name] {
    let removed = table.remove(identifiers)
    if !removed.isEmpty { changes.append(.unlisted(removed, isPending: true)) }
    return removed
  }

  /// Sets the number at the application's icon.
  mutating func setBadge(_ number: Int) {
    badge = max(number, 0)
    changes.append(.badge(badge))
  }

  // MARK: The database

  /// Returns the changes since the last call.
  mutating func takeChanges() -> [StateChange] {
    defer { changes.removeAll(keepingCapacity: true) }
    return changes
  }

  /// Takes the state of the database, into an empty store.
  mutating func restore(_ state: StoredState) {
    for taken in state.ids { ids.set((), for: taken.id, at: taken.at) }
    for newest in state.revisions { revisions.set(newest.revision, for: newest.identifier, at: newest.at) }
    delivered = state.delivered.reversed().map { DeliveredNotification($0, extensions) }
    for listed in state.pending {
      let notification = DeliveredNotification(listed, extensions)
      _ = table.add(.init(notification: notification, anchor: listed.takenAt, after: listed.after))
    }
    (badge, floor) = (state.badge, state.floor)
  }

  // MARK: Parts

  private mutating func hold(_ notification: DeliveredNotification) {
    // The database replaces the former one in place.
    let removed = table.add(.init(notification: notification, anchor: notification.takenAt, after: notification.takenAt))
    changes.append(.listed(notification, isPending: true))
    if !removed.isEmpty { changes.append(.unlisted(removed, isPending: true)) }
  }

  /// Shows a notification in the ways that the cluster, the person, the screen, and in the foreground the program all allow.
  private mutating func place(_ waiting: DeliveredNotification) -> Outcome {
    let (frame, content) = (waiting.frame, waiting.content)
    var ways = PresentationOptions(of: content, countingAs: frame.interruptionLevel, under: authorization)
    if let presentation = frame.presentation { ways = ways.limited(to: presentation) }
    ways = ways.limited(to: platformWays.intersection(state.ways))
    if !ways.showsNothing, state.asksProgram, let willPresent { ways = ways.limited(to: willPresent(waiting.shown(ways))) }
    let notification = waiting.shown(ways)
    guard !ways.showsNothing else {
      let isSilent = content.isBackground || content.isContentAvailable || frame.presentation?.showsNothing == true
      return isSilent ? .silent(notification) : .dropped(.filtered)
    }
    if ways.contains(.badge), let badge = content.badge { setBadge(badge) }
    guard ways.contains(.list) else { return .shown(notification) }
    // The database replaces the former one in place.
    let former = self.notification(notification.identifier)
    delivered.removeAll { $0.identifier == notification.identifier }
    delivered.insert(notification, at: 0)
    changes.append(.listed(notification, isPending: false))
    if delivered.count > limits.delivered, let oldest = delivered.last { _ = clear([oldest.identifier]) }
    return former == nil ? .shown(notification) : .updated(notification)
  }

  private mutating func note(_ revision: String, of identifier: Name, at time: Int64) {
    revisions.set(revision, for: identifier, at: time)
    changes.append(.noted(identifier: identifier, revision: revision, at: time))
    unforgotten += 1
  }

  private mutating func forget(_ now: Int64) {
    let (span, overflow) = max(0, rememberSeconds).multipliedReportingOverflow(by: 1000)
    guard !overflow else { return }
    let earliest = Timestamp.bounded(now) - span
    ids.forget(before: earliest)
    revisions.forget(before: earliest)
    guard unforgotten >= Self.forgettingInterval else { return }
    unforgotten = 0
    changes.append(.forgot(before: earliest, ids: limits.ids, identifiers: limits.identifiers))
  }

  /// So many revisions are set before the database forgets old ones, which takes a walk through all.
  private static let forgettingInterval = 1_000
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

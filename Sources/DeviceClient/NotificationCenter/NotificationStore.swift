internal import Calendars
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
    /// It waits for the program's service extension, and is shown after it.
    case extending(DeliveredNotification)
    /// The program chooses how it is presented, and then `present` shows it.
    case asking(DeliveredNotification)
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
  /// The person's quiet hours; nil if there are none.
  ///
  /// The cluster has applied them to what it sends to be shown at once. The device applies them to the rest: local notifications, those with
  /// a trigger, and on a watch those of its phone.
  public var quietHours: QuietHours?
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
  /// The notifications that wait for the program's service extension, or are with it, in the order in which they came.
  private(set) var extending: [DeliveredNotification] = []

  /// Whether the program chooses in the foreground how a notification is presented.
  var asksDelegate = false
  /// Whether the program has a service extension.
  var hasServiceExtension = false
  /// The time zone of calendar triggers that name none.
  var zone: Name
  /// The ways of showing that the device's platform has.
  var platformWays = PresentationOptions.all

  private var table: PendingTable
  private var calendar = QuietCalendar()
  /// What has changed since `takeChanges`, for the database.
  private var changes: [StateChange] = []
  /// How many ids and revisions were set since the database was told to forget old ones.
  private var unforgotten = 0
  private let limits: Limits
  let extensions: ServiceExtensions
  private(set) var ids: AgedTable<Void>
  private(set) var revisions: AgedTable<Name>
  /// The revision of the newest removal of all notifications.
  private(set) var floor: Name?

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
    if let reason = reasonAtAnyTime(frame, now) { return .dropped(reason) }
    let (newest, revision) = (revisions[frame.identifier], Name(frame.revision))
    if frame.isPast(now) {
      // An older revision must not be shown because the newest came too late.
      note(revision, of: frame.identifier, at: now)
      stopExtending { $0.identifier == frame.identifier }
      return .dropped(.expired)
    }
    if newest == revision { return .dropped(.stale) }
    ids.set((), for: Name(frame.id), at: now)
    changes.append(.took(Name(frame.id), at: now))
    note(revision, of: frame.identifier, at: now)
    let notification = DeliveredNotification(frame, takenAt: now, isLocal: false, extensions)
    if frame.trigger != nil {
      hold(notification)
      return .held(notification)
    }
    removePending([frame.identifier])
    return place(notification, at: now)
  }

  /// Whether only a time between two decides what becomes of a notification.
  mutating func needsTime(_ frame: NotifyFrame, from earliest: Int64, to now: Int64) -> Bool {
    frame.isPast(now) && !frame.isPast(earliest) && reasonAtAnyTime(frame, now) == nil
  }

  /// Why a notification is dropped, whether it has expired or not; nil if it may be shown.
  private mutating func reasonAtAnyTime(_ frame: NotifyFrame, _ now: Int64) -> DropReason? {
    forget(now)
    if ids[Name(frame.id)] != nil { return .known }
    let revision = Name(frame.revision)
    if let newest = revisions[frame.identifier], revision < newest { return .stale }
    // What waits for a place is pending, and no removal touches it.
    if let floor, frame.trigger == nil, revision < floor { return .canceled }
    return nil
  }

  /// Removes notifications of the cluster that are not newer than the removal. Local ones stay.
  ///
  /// - Parameter isOfPending: whether those go that wait for a place; else the delivered ones.
  public mutating func remove(_ identifiers: [Name], revision: Name, isOfPending: Bool = false, now: Int64) -> Removal {
    forget(now)
    var removed: [DeliveredNotification] = []
    var isNew = identifiers.isEmpty
    var isKnown = false
    for identifier in identifiers {
      if let newest = revisions[identifier], revision <= newest {
        isKnown = isKnown || newest == revision
        continue
      }
      isNew = true
      note(revision, of: identifier, at: now)
      if !isOfPending { stopExtending { $0.identifier == identifier } }
      if !isOfPending, notification(identifier)?.isLocal == false { removed += clear([identifier]) }
      if isOfPending, table[identifier]?.notification.isLocal == false { removePending([identifier]) }
    }
    return isNew ? .removed(removed) : .dropped(isKnown ? .known : .stale)
  }

  /// Removes all delivered notifications that are older than the removal; what waits for a place stays.
  ///
  /// Older ones that come later are dropped.
  public mutating func removeAll(revision: Name, now: Int64) -> Removal {
    forget(now)
    if let floor, revision <= floor { return .dropped(floor == revision ? .known : .stale) }
    floor = revision
    changes.append(.floor(revision))
    stopExtending { Name($0.frame.revision) < revision }
    return .removed(clear(delivered.filter { Name($0.frame.revision) < revision }.map(\.identifier)))
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
    let time = waiting.isLocal ? localTime : now
    return isPast ? .dropped(.expired) : place(waiting.taken(at: time), at: time)
  }

  /// Removes what belongs to the person who signs out; returns what was in the list.
  mutating func forgetPerson() -> [DeliveredNotification] {
    stopExtending { _ in true }
    removePending(pending.map(\.identifier))
    setBadge(0)
    return clear(delivered.map(\.identifier))
  }

  // MARK: The program's service extension

  /// The program's service extension is given a notification; false if that is not needed any more.
  mutating func beginExtending(_ notification: DeliveredNotification) -> Bool {
    guard extending.contains(where: { $0.isSame(notification) }) else { return false }
    changes.append(.extensionBegan(notification.identifier, true))
    return true
  }

  /// The program's service extension has not finished a notification, and gets it again at the next start.
  mutating func postponeExtending(_ notification: DeliveredNotification) {
    guard extending.contains(where: { $0.isSame(notification) }) else { return }
    changes.append(.extensionBegan(notification.identifier, false))
  }

  /// The program's service extension has ended, and has changed the frame or not; returns the result, or nil if a newer one has come.
  mutating func endExtending(_ notification: DeliveredNotification, changed: NotifyFrame?, now: Int64) -> Outcome? {
    guard extending.contains(where: { $0.isSame(notification) }) else { return nil }
    stopExtending { $0.isSame(notification) }
    guard !notification.frame.isPast(now) else { return .dropped(.expired) }
    return place(changed.map { notification.changed(to: $0) } ?? notification, at: now, isExtended: true)
  }

  private mutating func stopExtending(_ condition: (DeliveredNotification) -> Bool) {
    let stopped = extending.filter(condition).map(\.identifier)
    guard !stopped.isEmpty else { return }
    extending.removeAll(where: condition)
    changes.append(.extended(stopped))
  }

  // MARK: Phone and watch

  /// Takes a notification of the phone on its watch, with the phone's time. What was shown is known until it is forgotten like an id.
  mutating func takeForwarded(_ frame: NotifyFrame, _ showing: NotificationShowing, now: Int64) -> Outcome {
    forget(now)
    guard !frame.isPast(now) else { return .dropped(.expired) }
    let notification = DeliveredNotification(frame, takenAt: showing.takenAt, isLocal: false, extensions)
    let outcome = place(notification, at: now, isExtended: true, isForwarded: true)
    switch outcome {
    case .shown, .updated: note(showing, now: now)
    default: break
    }
    return outcome
  }

  /// Stores that the watch shows a notification of the phone.
  mutating func note(_ showing: NotificationShowing, now: Int64) { note(Self.key(of: showing), now: now) }

  /// Whether the watch has shown a notification of the phone, in this life or an earlier one.
  func hasShown(_ showing: NotificationShowing) -> Bool { hasTaken(Self.key(of: showing)) }

  private static func key(of showing: NotificationShowing) -> Name { Name("\(showing.id.text) \(showing.takenAt)") }

  /// Whether an id was taken.
  func hasTaken(_ id: Name) -> Bool { ids[id] != nil }

  /// Stores an id.
  mutating func note(_ id: Name, now: Int64) {
    ids.set((), for: id, at: now)
    changes.append(.took(id, at: now))
    unforgotten += 1
  }

  // MARK: Local requests

  /// Takes a local request, whose trigger is known to be due some time.
  mutating func add(_ frame: NotifyFrame, localTime: LocalTime) -> Outcome {
    let time = localTime.by(frame.timedTrigger)
    let notification = DeliveredNotification(frame, takenAt: time, isLocal: true, extensions)
    guard frame.trigger != nil else {
      removePending([frame.identifier])
      return place(notification, at: time)
    }
    hold(notification)
    return .held(notification)
  }

  /// The zone of calendar triggers that name none; nil for UTC, which takes the place of one that the time zone database does not have.
  var ownZone: Name? {
    mutating get {
      let known = table.known(zone)
      return known == DueTimes.defaultZone ? nil : known
    }
  }

  /// Checks that the trigger of a local request is due some time.
  mutating func check(_ frame: NotifyFrame, localTime: LocalTime) throws(DeviceError) {
    guard let text = frame.trigger, case .timed(let timed) = try Trigger(text: text) else { return }
    do throws(Rejection) {
      try table.check(timed, now: localTime, zone: zone)
    } catch {
      throw DeviceError(.badRequest, "\(error.field): \(error.rule)")
    }
  }

  /// The milliseconds until something is due; nil if nothing waits for a time.
  mutating func wait(_ localTime: LocalTime) -> Int64? { table.wait(now: localTime, zone: zone) }

  /// The next time at which a waiting request is due; nil if none waits, or if it waits for a place.
  mutating func nextDue(of identifier: Name, _ localTime: LocalTime) -> Int64? { table.next(of: identifier, now: localTime, zone: zone) }

  /// Takes the device's own time; returns what becomes of the notifications that are due.
  mutating func takeTime(_ localTime: LocalTime) -> [(identifier: Name, Outcome)] {
    let due = table.take(now: localTime, zone: zone)
    changes += due.changed.map { .waiting($0.notification.identifier, anchor: $0.anchor, after: $0.after) }
    let gone = due.ended + due.missed
    if !gone.isEmpty { changes.append(.unlisted(gone, isPending: true)) }
    let time = localTime.wall
    return due.notifications.map { ($0.identifier, place($0.taken(at: time), at: time)) }
      + due.missed.map { ($0, .dropped(.expired)) }
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
    delivered = state.delivered.reversed()
    for entry in state.pending { _ = table.add(entry) }
    (badge, floor) = (state.badge, state.floor)
    extending = state.extending.map(\.notification)
  }

  // MARK: Parts

  private mutating func hold(_ notification: DeliveredNotification) {
    // The database replaces the former one in place.
    let removed = table.add(.init(notification: notification, anchor: notification.takenAt, after: notification.takenAt))
    changes.append(.listed(notification, isPending: true))
    if !removed.isEmpty { changes.append(.unlisted(removed, isPending: true)) }
  }

  /// Shows a notification in the ways that the cluster, the person and the screen all allow, unless the program is asked first.
  ///
  /// One of the cluster that would be shown as an alert waits for the program's service extension first.
  ///
  /// - Parameter time: the present time, for the quiet hours.
  private mutating func place(
    _ waiting: DeliveredNotification, at time: Int64, isExtended: Bool = false, isForwarded: Bool = false
  ) -> Outcome {
    stopExtending { $0.identifier == waiting.identifier }
    let (frame, content) = (waiting.frame, waiting.content)
    // A watch follows its phone until the person has decided for the watch.
    let follows = isForwarded && authorization.status == .notDetermined
    let authorization = follows ? Authorization(status: .authorized) : authorization
    // The cluster knows a change of the hours by another device before this one does.
    let wasJudged = !waiting.isLocal && frame.trigger == nil && !isForwarded
    var ways = PresentationOptions(
      of: content, countingAs: frame.interruptionLevel, under: authorization, isQuiet: !wasJudged && isQuiet(at: time))
    if let presentation = frame.presentation { ways = ways.limited(to: presentation) }
    ways = ways.limited(to: platformWays.intersection(state.ways))
    if hasServiceExtension, !isExtended, !waiting.isLocal, !ways.isDisjoint(with: [.banner, .lockScreen, .list]),
      extending.count < limits.delivered, extensions.request(of: frame, for: "") != nil
    {
      extending.append(waiting)
      changes.append(.extending(waiting))
      return .extending(waiting)
    }
    let notification = waiting.shown(ways)
    return asksDelegate && !ways.showsNothing && state.asksProgram ? .asking(notification) : present(notification)
  }

  /// Shows a notification in its ways, as far as the program allows them.
  ///
  /// The store does not ask the program itself: its delegate may read the device, and change it.
  mutating func present(_ notification: DeliveredNotification, allowing allowed: PresentationOptions = .all) -> Outcome {
    let ways = notification.presentation.limited(to: allowed)
    let notification = notification.shown(ways)
    let (frame, content) = (notification.frame, notification.content)
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

  /// Whether the person's quiet hours hold. Those of a zone that is unknown here never do.
  private mutating func isQuiet(at time: Int64) -> Bool {
    guard let quietHours else { return false }
    return calendar.answer(for: quietHours, at: Timestamp.bounded(time))?.isQuiet ?? false
  }

  private mutating func note(_ revision: Name, of identifier: Name, at time: Int64) {
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
  /// Its trigger, if it is due at a time.
  var timedTrigger: TimedTrigger? {
    guard let text = trigger, case .timed(let timed)? = try? Trigger(text: text) else { return nil }
    return timed
  }

  /// Whether it has expired, by the cluster's clock in milliseconds. 0 allows one attempt, whose end only the cluster knows.
  func isPast(_ now: Int64) -> Bool { expiration > 0 && now / 1000 >= expiration }
}

extension DeliveredNotification {
  /// Whether both are the same showing: an occurrence of a repeating trigger has the same id, and another time.
  func isSame(_ other: DeliveredNotification) -> Bool {
    identifier == other.identifier && Name(id) == Name(other.id) && takenAt == other.takenAt
  }

  /// Whether its trigger fires repeatedly.
  var triggerRepeats: Bool { frame.trigger.flatMap { try? JSONValue(parsing: $0) }?["repeats"]?.boolValue ?? false }
}

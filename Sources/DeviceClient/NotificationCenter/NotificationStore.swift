public import Extensions
internal import JSON
public import Notifications

/// What a device knows of notifications, as a value: a frame in, what becomes of it out.
///
/// It keeps the promises that only the device can keep: each id is taken at most once, what is on the screen is the newest revision of
/// its identifier, and nothing comes after its expiration. For that it remembers ids and the newest revision of each identifier, those of
/// dismissed, removed and expired ones too. All times are the cluster's, in milliseconds since 1970.
public struct NotificationStore: Sendable {
  /// How much is remembered; beyond each bound the oldest is let go.
  public struct Limits: Sendable, Hashable {
    /// Ids that were taken.
    public var ids = 50_000
    /// Identifiers with their newest revision.
    public var identifiers = 50_000
    /// Delivered notifications in the list.
    public var delivered = 500
    /// Notifications that wait for a place.
    public var pending = 64

    /// The defaults.
    public init() {}
  }

  /// What becomes of a notification.
  public enum Outcome: Sendable, Equatable {
    /// It comes before the person.
    case shown(DeliveredNotification)
    /// It takes the place of the delivered one of its identifier, at the top of the list.
    case updated(DeliveredNotification)
    /// It is stored, and nothing is shown: it only wakes the application, or the person wants none.
    case silent(DeliveredNotification)
    /// It waits until the device is where its trigger says.
    case held(DeliveredNotification)
    /// It is not taken.
    case dropped(DropReason)
  }

  /// What becomes of identifiers that the cluster takes away.
  public enum Removal: Sendable, Equatable {
    /// It holds; these were in the list.
    case removed([DeliveredNotification])
    /// It is not taken: known, or newer ones have come.
    case dropped(DropReason)
  }

  /// What the person lets notifications do; it holds for those that come later.
  public var authorization: Authorization
  /// For how long ids and revisions are remembered, in seconds; the cluster says it with each welcome.
  public var rememberSeconds: Int64 = 30 * 86_400
  /// The delivered notifications, the newest first.
  public private(set) var delivered: [DeliveredNotification] = []
  /// The notifications that wait for a place, in the order in which they came.
  public private(set) var pending: [DeliveredNotification] = []
  /// The number at the application's icon.
  public private(set) var badge = 0

  private let limits: Limits
  private let extensions: ContentExtensions
  private(set) var ids: AgedTable<Void>
  private(set) var revisions: AgedTable<String>

  /// An empty store.
  ///
  /// - Parameters:
  ///   - extensions: what changes mutable notifications before they are shown.
  ///   - locale: the device's, for those that fill in texts.
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

  // MARK: What the cluster says

  /// Takes a notification, or says why not.
  public mutating func take(_ frame: NotifyFrame, now: Int64) -> Outcome {
    forget(now)
    if ids[Name(frame.id)] != nil { return .dropped(.known) }
    let newest = revisions[frame.identifier]
    if let newest, frame.revision.isOlder(than: newest) { return .dropped(.stale) }
    if frame.isPast(now) {
      // An older revision must not come to light because the newest came too late.
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

  /// Takes delivered and waiting notifications away, as far as they are not newer than the removal.
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

  // MARK: What the person and the application do

  /// The delivered notification of an identifier.
  public func notification(_ identifier: Name) -> DeliveredNotification? { delivered.first { $0.identifier == identifier } }

  /// Takes delivered notifications off the list and answers those that were in it; they stay remembered.
  public mutating func clear(_ identifiers: [Name]) -> [DeliveredNotification] {
    let cleared = delivered.filter { identifiers.contains($0.identifier) }
    if !cleared.isEmpty { delivered.removeAll { identifiers.contains($0.identifier) } }
    return cleared
  }

  /// The device is where the trigger of a waiting notification says: what becomes of it; nil when none waits.
  ///
  /// One whose trigger repeats goes on waiting.
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

  /// Puts a notification back as the newest of its list.
  mutating func restore(_ frame: NotifyFrame, at time: Int64, isPending: Bool) {
    let notification = DeliveredNotification(frame, takenAt: time, authorization: authorization, extensions)
    if isPending { pending.append(notification) } else { _ = place(notification) }
  }

  // MARK: Parts

  private mutating func place(_ notification: DeliveredNotification) -> Outcome {
    if notification.presentation.contains(.badge), let badge = notification.content.badge { self.badge = max(badge, 0) }
    // What has nothing to read never enters the list, and leaves alone what is there.
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
  /// Whether its time is over, by the cluster's clock in milliseconds; 0 is one attempt, whose end the cluster alone knows.
  func isPast(_ now: Int64) -> Bool { expiration > 0 && now / 1000 >= expiration }
}

extension DeliveredNotification {
  /// Whether its trigger fires again and again.
  var triggerRepeats: Bool { frame.trigger.flatMap { try? JSONValue(parsing: $0) }?["repeats"]?.boolValue ?? false }
}

extension String {
  /// Whether a revision is older than another: byte by byte, as the protocol compares them.
  func isOlder(than other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }
}

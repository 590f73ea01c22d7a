internal import EventLoop
internal import Glibc
internal import HTTP
internal import Notifications

/// Fetches the attachments of notifications into the store, and lets events of notifications wait for them.
///
/// Only the event waits: the notification is stored and acknowledged before. One that is not kept in the list is shown at once.
final class AttachmentFetcher {
  /// What the fetcher asks of the device.
  struct Owner {
    /// Tells an event to the program.
    let tell: (DeviceEvent) -> Void
    /// The notifications in the list, and those that wait for a time or a place.
    let kept: () -> [DeliveredNotification]
    /// The cluster's time, in milliseconds since 1970.
    let now: () -> Int64
    /// Asks the cluster for a link. Throws if there is no connection.
    let askForLink: (LinkFrame) throws(DeviceError) -> Void
    /// Begins a task that calls `download` with this file.
    let download: (Media) -> Void
    /// Begins a task that calls `sweep`.
    let sweep: () -> Void
  }

  /// The fetch of one file, for all notifications that have it.
  private final class Fetch {
    enum Phase {
      case downloading(AttachmentDownload, MediaLink)
      /// The cluster is asked for a link; nil while it cannot be asked.
      case waitingForLink(request: String?)
    }

    /// An attachment that has the file.
    struct User {
      let showing: NotificationShowing
      let attachment: Name
      /// Its link, which is tried when those before it have failed.
      var link: MediaLink?

      /// The event that tells why it is missing.
      func missing(_ failure: AttachmentFailure) -> DeviceEvent {
        .attachmentMissing(notification: showing.identifier, attachment: attachment, failure)
      }
    }

    let media: Media
    private(set) var users: [User] = []
    var phase = Phase.waitingForLink(request: nil)
    var wasRenewed = false
    /// Whether a task downloads the file. It ends the reservation of its bytes then, since it may still write them.
    var isRunning = false

    init(_ media: Media) { self.media = media }

    /// Adds an attachment, in place of one of the identifier's former notification.
    func add(_ user: User) {
      users.removeAll { $0.showing.identifier == user.showing.identifier && $0.attachment == user.attachment }
      users.append(user)
    }

    /// Removes the attachments of notifications, and returns them.
    func remove(_ condition: (NotificationShowing) -> Bool) -> [User] {
      let removed = users.filter { condition($0.showing) }
      users.removeAll { condition($0.showing) }
      return removed
    }

    /// Takes a link that was not tried; nil if there is none.
    func takeLink() -> MediaLink? {
      guard let index = users.lastIndex(where: { $0.link != nil }) else { return nil }
      defer { users[index].link = nil }
      return users[index].link
    }
  }

  private let loop: EventLoop
  private let folder: AttachmentFolder
  private let milliseconds: Int
  private let owner: Owner
  private(set) var ledger: AttachmentLedger
  private var showings = Showings<DeviceEvent>()
  private var fetches: [Media: Fetch] = [:]
  private var client: HTTPClient?
  private var timer: Timer?
  private var isComplete = false
  private var isSweeping = false
  private var isClosed = false

  /// - Parameters:
  ///   - milliseconds: how long an event waits for its attachments.
  ///   - ledger: the files that are there.
  init(on loop: EventLoop, _ folder: AttachmentFolder, milliseconds: Int, _ ledger: AttachmentLedger, _ owner: Owner) {
    (self.loop, self.folder, self.milliseconds, self.ledger, self.owner) = (loop, folder, max(milliseconds, 0), ledger, owner)
    timer = Timer(on: loop) { [weak self] in self?.timeIsOver() }
  }

  /// Tells all events that wait, and cancels all downloads. When their tasks have ended, `closeClient` follows.
  func close() {
    isClosed = true
    for waiting in showings.waiting { tellWithout(waiting) }
    for fetch in fetches.values { cancel(fetch) }
    fetches = [:]
    timer?.close()
    timer = nil
  }

  /// Closes the connections to the servers of links.
  func closeClient() {
    client?.close()
    client = nil
  }

  // MARK: Events

  /// Takes an event of the device, and tells it now or when its attachments are there.
  func take(_ event: DeviceEvent) {
    switch event {
    case .shown(let notification), .updated(let notification):
      let (missing, failures) = fetch(notification)
      let showing = NotificationShowing(notification)
      showings.add(event, showing, missing: missing, deadline: loop.milliseconds() + longestWait(of: notification))
      startTimer()
      // The program may remove the notification at any of these, which drops its event.
      for failure in failures { owner.tell(failure) }
      if missing.isEmpty { tellWaiting(showing) }
    case .held(let notification):
      for failure in fetch(notification).failures { owner.tell(failure) }
      owner.tell(event)
    case .connected:
      owner.tell(event)
      connected()
    case .closed:
      for fetch in fetches.values { if case .waitingForLink = fetch.phase { fetch.phase = .waitingForLink(request: nil) } }
      owner.tell(event)
    case .linked(let frame):
      if let fetch = fetch(of: frame.request) { begin(fetch, frame.link) } else { owner.tell(event) }
      askForLinks()
    case .refused(let frame):
      if case .request(let request) = frame.subject, let fetch = fetch(of: request) { refused(fetch, frame) } else { owner.tell(event) }
      askForLinks()
    default: owner.tell(event)
    }
  }

  /// Takes a change of the lists, which is not durable yet; returns its number for `listsAreDurable`.
  ///
  /// Drops the events of notifications that have left the list, and ends the downloads that no notification in it needs.
  func listsChanged() -> Int {
    let change = ledger.listsChanged()
    guard !isClosed, !ledger.isEmpty || !showings.waiting.isEmpty || !fetches.isEmpty else { return change }
    let kept = owner.kept()
    let (listed, files) = (Set(kept.map { NotificationShowing($0) }), Self.files(of: kept))
    showings.keep(listed)
    ledger.list(Set(files.map(\.hash)))
    for fetch in fetches.values {
      _ = fetch.remove { !listed.contains($0) }
      guard !files.contains(fetch.media) else { continue }
      cancel(fetch)
      end(fetch, nil)
    }
    return change
  }

  /// Takes that a change of the lists is durable, and begins to remove the files that no notification has any more.
  func listsAreDurable(_ change: Int) {
    ledger.listsAreDurable(change)
    beginSweep()
  }

  private static func files(of notifications: [DeliveredNotification]) -> Set<Media> {
    Set(notifications.flatMap(\.attachments).map(\.attachment.media))
  }

  private func beginSweep() {
    guard !isClosed, !isSweeping, ledger.hasRemovable else { return }
    isSweeping = true
    owner.sweep()
  }

  /// Removes the files that no notification has any more; in a task of the device for each call of the owner's `sweep`.
  func sweep(from disk: AttachmentDisk) async {
    isSweeping = false
    // The disk gets the names in this turn. So a file that is given one of them later is written after the removal.
    let removed = ledger.sweep()
    _ = await disk.call { folder in for hash in removed { unlink(folder.file(hash)) } }
  }

  /// Asks for the links that could not be asked for, and after a crash fetches what is missing.
  private func connected() {
    askForLinks()
    guard !isComplete else { return }
    isComplete = true
    let failures = owner.kept().flatMap { fetch($0).failures }
    for failure in failures { owner.tell(failure) }
  }

  // MARK: Fetching

  /// Begins to fetch the files of a notification that are not there; returns them, and the events of those that cannot be had.
  private func fetch(_ notification: DeliveredNotification) -> (missing: Set<Media>, failures: [DeviceEvent]) {
    guard !isClosed, !notification.isLocal, !notification.attachments.isEmpty,
      owner.kept().contains(where: { $0.identifier == notification.identifier && Name($0.id) == Name(notification.id) })
    else { return ([], []) }
    var (missing, failures): (Set<Media>, [DeviceEvent]) = ([], [])
    for linked in notification.attachments where !ledger.has(linked.attachment.media) {
      let media = linked.attachment.media
      let link = linked.link.flatMap { $0.expires > owner.now() / 1000 ? $0 : nil }
      let user = Fetch.User(showing: NotificationShowing(notification), attachment: linked.attachment.identifier, link: link)
      if let fetch = fetches[media] {
        fetch.add(user)
        missing.insert(media)
        // The cluster may never give the link that was asked for.
        if case .waitingForLink = fetch.phase, let link = fetch.takeLink() { begin(fetch, link) }
      } else if let failure = refusal(media) {
        failures.append(user.missing(failure))
      } else {
        let fetch = Fetch(media)
        fetch.add(user)
        fetches[media] = fetch
        missing.insert(media)
        if let link = fetch.takeLink() { begin(fetch, link) } else { renew(fetch) }
      }
    }
    return (missing, failures)
  }

  /// Reserves the bytes of a file, or returns why it cannot be stored.
  private func refusal(_ media: Media) -> AttachmentFailure? {
    guard !ledger.has(media.hash) else { return Self.otherContent }
    guard media.size <= media.type.maximumBytes else {
      return AttachmentFailure(
        .wrongType, "it has \(media.size) bytes, and the maximum for \(media.type.name) is \(media.type.maximumBytes)")
    }
    return ledger.reserve(media.size) ? nil : AttachmentFailure(.full, "the store of attachments has no room for its \(media.size) bytes")
  }

  private func begin(_ fetch: Fetch, _ link: MediaLink) {
    fetch.phase = .downloading(AttachmentDownload(fetch.media), link)
    owner.download(fetch.media)
  }

  private func cancel(_ fetch: Fetch) {
    if case .downloading(let download, _) = fetch.phase { download.cancel(Self.late) }
  }

  /// Downloads a file; in a task of the device for each call of the owner's `download`.
  func download(_ media: Media, to disk: AttachmentDisk) async {
    guard let fetch = fetches[media], !fetch.isRunning, case .downloading(let download, let link) = fetch.phase else { return }
    fetch.isRunning = true
    // The file has its name before this task hears of it. Nothing may remove that name meanwhile.
    ledger.pin(media.hash)
    var problem: AttachmentFailure?
    do throws(AttachmentFailure) {
      let client = client ?? makeClient()
      self.client = client
      try await download.run(client, link.url, milliseconds: milliseconds, into: disk)
    } catch { problem = error }
    ledger.close(media.hash)
    guard let failure = problem else {
      ledger.end(media.size, media)
      return arrived(media)
    }
    fetch.isRunning = false
    // Its time was over while it ran.
    guard fetches[media] === fetch else { return ledger.end(media.size) }
    if let link = fetch.takeLink() { return begin(fetch, link) }
    guard failure.reason == .expired, !fetch.wasRenewed else { return end(fetch, failure) }
    renew(fetch)
  }

  /// A file is in the store: nobody need fetch it.
  private func arrived(_ media: Media) {
    ledger.list(Set(Self.files(of: owner.kept()).map(\.hash)))
    if let fetch = fetches[media] {
      cancel(fetch)
      end(fetch, nil)
    }
    beginSweep()
  }

  /// Asks the cluster for a new link, once; false if that is not possible at this moment.
  @discardableResult
  private func renew(_ fetch: Fetch) -> Bool {
    let request = Device.uniqueID()
    do throws(DeviceError) {
      try owner.askForLink(LinkFrame(hash: fetch.media.hash, request: request))
      (fetch.phase, fetch.wasRenewed) = (.waitingForLink(request: request), true)
      return true
    } catch {
      // There is no connection, or too many links are asked for. It is asked for with the next connection or answer.
      fetch.phase = .waitingForLink(request: nil)
      return false
    }
  }

  /// Asks for the links that could not be asked for.
  private func askForLinks() {
    for fetch in fetches.values { if case .waitingForLink(nil) = fetch.phase, !renew(fetch) { return } }
  }

  /// The cluster gives no link.
  private func refused(_ fetch: Fetch, _ frame: RefusedFrame) {
    if let link = fetch.takeLink() { return begin(fetch, link) }
    end(fetch, AttachmentFailure(.expired, "the cluster gives no new link (\(frame.reason))"))
  }

  private func fetch(of request: String) -> Fetch? {
    fetches.values.first { if case .waitingForLink(request) = $0.phase { true } else { false } }
  }

  /// Ends a fetch, and tells the events that waited for it alone.
  private func end(_ fetch: Fetch, _ failure: AttachmentFailure?) {
    // The program may remove its notification when it gets an event, which ends the fetch before this call does.
    guard fetches[fetch.media] === fetch else { return }
    fetches[fetch.media] = nil
    if !fetch.isRunning { ledger.end(fetch.media.size) }
    if let failure { for user in fetch.users { owner.tell(user.missing(failure)) } }
    for showing in showings.ended(fetch.media) { tellWaiting(showing) }
    startTimer()
  }

  /// Tells an event that waits, unless its notification was removed meanwhile.
  private func tellWaiting(_ showing: NotificationShowing) { if let event = showings.take(showing) { owner.tell(event) } }

  /// Tells an event without the files that it waits for. These may still come.
  private func tellWithout(_ waiting: Showings<DeviceEvent>.Waiting) {
    let users = waiting.missing.compactMap { fetches[$0] }.flatMap { $0.remove { $0 == waiting.showing } }
    for user in users { owner.tell(user.missing(Self.late)) }
    tellWaiting(waiting.showing)
  }

  /// Makes the client for all links. The cluster names their hosts, so any host and any address is allowed.
  private func makeClient() -> HTTPClient {
    var configuration = HTTPClientConfiguration(hosts: .any)
    if let all = try? [IPNetwork("0.0.0.0/0"), IPNetwork("::/0")] { configuration.addresses = HTTPAddressRule(admitting: all) }
    configuration.schemes = [.https, .http]
    (configuration.maximumConnections, configuration.maximumConnectionsPerHost) = (32, 4)
    return HTTPClient(on: loop, configuration: configuration)
  }

  // MARK: Time

  private static let late = AttachmentFailure(.late, "it has not come in time")
  private static let otherContent = AttachmentFailure(
    .wrongContent, "the file with its hash is of another type or size than the notification says")

  /// How long the event of a notification waits, in milliseconds. The program gets it before the notification expires.
  private func longestWait(of notification: DeliveredNotification) -> UInt64 {
    guard notification.frame.expiration > 0 else { return UInt64(milliseconds) }
    let left = max(min(notification.frame.expiration, 1 << 40) * 1000 - owner.now(), 0)
    return UInt64(min(Int64(milliseconds), left - min(1_000, left / 4)))
  }

  private func timeIsOver() {
    for waiting in showings.over(now: loop.milliseconds()) { tellWithout(waiting) }
    startTimer()
  }

  private func startTimer() {
    guard let deadline = showings.deadline else { return timer?.stop() ?? () }
    timer?.start(after: Int(clamping: deadline - min(deadline, loop.milliseconds())))
  }

  // MARK: The program's access

  /// Opens a file for the program, which stays until it is closed; nil if it is not there.
  func open(_ media: Media) -> String? { ledger.open(media) ? folder.file(media.hash) : nil }

  /// Closes a file of the program.
  func close(_ hash: MediaHash) {
    ledger.close(hash)
    beginSweep()
  }

  // MARK: Files of the program

  /// Copies a file of the program into the store, and opens it.
  func copy(_ path: String, to disk: AttachmentDisk) async throws(AttachmentFailure) -> Media {
    let size = try await disk.call { folder throws(AttachmentFailure) in try folder.size(of: path) }.get()
    guard ledger.reserve(size) else { throw AttachmentFailure(.full, "the store of attachments has no room for its \(size) bytes") }
    do throws(AttachmentFailure) {
      let written = try await disk.call { folder throws(AttachmentFailure) in try folder.copy(path, limit: size) }.get()
      // The last notification with this content may go while the copy is given its name.
      ledger.pin(written.media.hash)
      do throws(AttachmentFailure) {
        try await disk.call { folder throws(AttachmentFailure) in try folder.keep(written) }.get()
      } catch {
        close(written.media.hash)
        throw error
      }
      ledger.end(size, written.media)
      arrived(written.media)
      return written.media
    } catch {
      ledger.end(size)
      throw error
    }
  }
}

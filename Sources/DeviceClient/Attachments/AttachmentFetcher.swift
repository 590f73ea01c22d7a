internal import EventLoop
internal import HTTP
internal import Notifications

/// Fetches the attachments of notifications into the store, and lets events of notifications wait for them. Loop-confined.
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
    /// Begins a task that calls `download` with this hash.
    let download: (MediaHash) -> Void
    /// Begins to remove files.
    let remove: ([String]) -> Void
  }

  /// The fetch of one file, for all notifications that have it.
  private final class Fetch {
    enum Phase {
      case downloading(AttachmentDownload, MediaLink)
      /// The cluster is asked for a link; nil while there is no connection.
      case waitingForLink(request: String?)
    }

    let media: Media
    var users: [(notification: Name, attachment: Name)]
    var deadline: UInt64
    var phase = Phase.waitingForLink(request: nil)
    /// The links of further notifications with this file, which are tried when the first fails.
    var links: [MediaLink] = []
    var wasRenewed = false

    init(_ media: Media, deadline: UInt64) { (self.media, self.deadline, users) = (media, deadline, []) }
  }

  private let loop: EventLoop
  private let folder: AttachmentFolder
  private let milliseconds: Int
  private let owner: Owner
  private(set) var ledger: AttachmentLedger
  private var showings = Showings<DeviceEvent>()
  private var fetches: [MediaHash: Fetch] = [:]
  private var clients: [String: HTTPClient] = [:]
  private var timer: Timer?
  private var isComplete = false
  private var isClosed = false

  /// - Parameters:
  ///   - milliseconds: how long an event waits for its attachments.
  ///   - ledger: the files that are there.
  init(on loop: EventLoop, _ folder: AttachmentFolder, milliseconds: Int, _ ledger: AttachmentLedger, _ owner: Owner) {
    (self.loop, self.folder, self.milliseconds, self.ledger, self.owner) = (loop, folder, max(milliseconds, 0), ledger, owner)
    timer = Timer(on: loop) { [weak self] in self?.timeIsOver() }
  }

  /// Tells all events that wait, and cancels all downloads. When their tasks have ended, `closeClients` follows.
  func close() {
    isClosed = true
    for event in showings.takeAll() { owner.tell(event) }
    for fetch in fetches.values { cancel(fetch) }
    fetches = [:]
    timer?.close()
    timer = nil
  }

  /// Closes the connections to the servers of links.
  func closeClients() {
    for client in clients.values { client.close() }
    clients = [:]
  }

  // MARK: Events

  /// Takes an event of the device, and tells it now or when its attachments are there.
  func take(_ event: DeviceEvent) {
    switch event {
    case .shown(let notification), .updated(let notification):
      let missing = fetch(notification)
      guard !missing.isEmpty else { return owner.tell(event) }
      showings.add(
        event, notification.identifier, id: notification.id, missing: missing, deadline: loop.milliseconds() + UInt64(milliseconds))
      startTimer()
    case .held(let notification):
      fetch(notification)
      owner.tell(event)
    case .connected:
      owner.tell(event)
      connected()
    case .closed:
      for fetch in fetches.values { if case .waitingForLink = fetch.phase { fetch.phase = .waitingForLink(request: nil) } }
      owner.tell(event)
    case .linked(let frame):
      guard let fetch = fetch(of: frame.request) else { return owner.tell(event) }
      begin(fetch, frame.link)
    case .refused(let frame):
      guard case .request(let request) = frame.subject, let fetch = fetch(of: request) else { return owner.tell(event) }
      if let link = fetch.links.popLast() { return begin(fetch, link) }
      end(fetch, AttachmentFailure(.expired, "the cluster gives no new link (\(frame.reason))"))
    default: owner.tell(event)
    }
  }

  /// Removes the files that no notification has any more, and drops the events of notifications that have left the list.
  func listsChanged() {
    guard !ledger.hashes.isEmpty || !showings.waiting.isEmpty else { return }
    let kept = owner.kept()
    showings.keep { showing in kept.contains { $0.identifier == showing.identifier && Name($0.id) == Name(showing.id) } }
    let live = Set(kept.flatMap(\.attachments).map(\.attachment.media.hash))
    let paths = ledger.sweep(keeping: live).map(folder.file)
    if !paths.isEmpty { owner.remove(paths) }
  }

  /// Asks for the links that could not be asked for, and after a crash fetches what is missing.
  private func connected() {
    for fetch in fetches.values { if case .waitingForLink(nil) = fetch.phase { renew(fetch) } }
    guard !isComplete else { return }
    isComplete = true
    for notification in owner.kept() { fetch(notification) }
  }

  // MARK: Fetching

  /// Begins to fetch the files of a notification that are not there; returns their hashes.
  @discardableResult
  private func fetch(_ notification: DeliveredNotification) -> Set<MediaHash> {
    guard !isClosed, !notification.isLocal, !notification.attachments.isEmpty,
      owner.kept().contains(where: { $0.identifier == notification.identifier && Name($0.id) == Name(notification.id) })
    else { return [] }
    var missing: Set<MediaHash> = []
    for linked in notification.attachments where !ledger.has(linked.attachment.media.hash) {
      let media = linked.attachment.media
      let user = (notification.identifier, linked.attachment.identifier)
      if let fetch = fetches[media.hash] {
        fetch.users.append(user)
        if let link = linked.link { fetch.links.append(link) }
        fetch.deadline = loop.milliseconds() + UInt64(milliseconds)
        missing.insert(media.hash)
      } else if let failure = refusal(media) {
        tell(failure, user)
      } else {
        let fetch = Fetch(media, deadline: loop.milliseconds() + UInt64(milliseconds))
        fetch.users.append(user)
        fetches[media.hash] = fetch
        missing.insert(media.hash)
        if let link = linked.link, link.expires > owner.now() / 1000 { begin(fetch, link) } else { renew(fetch) }
      }
    }
    startTimer()
    return missing
  }

  /// Reserves the bytes of a file, or returns why it cannot be stored.
  private func refusal(_ media: Media) -> AttachmentFailure? {
    guard media.size <= media.type.maximumBytes else {
      return AttachmentFailure(
        .wrongType, "it has \(media.size) bytes, and the maximum for \(media.type.name) is \(media.type.maximumBytes)")
    }
    return ledger.reserve(media.size) ? nil : AttachmentFailure(.full, "the store of attachments has no room for its \(media.size) bytes")
  }

  private func begin(_ fetch: Fetch, _ link: MediaLink) {
    fetch.phase = .downloading(AttachmentDownload(fetch.media), link)
    owner.download(fetch.media.hash)
  }

  private func cancel(_ fetch: Fetch) {
    if case .downloading(let download, _) = fetch.phase { download.cancel(Self.late) }
  }

  /// Downloads a file; in a task of the device for each call of the owner's `download`.
  func download(_ hash: MediaHash, to disk: AttachmentDisk) async {
    guard let fetch = fetches[hash], case .downloading(let download, let link) = fetch.phase, !download.isBegun else { return }
    var failure: AttachmentFailure?
    do throws(AttachmentFailure) {
      try await download.run(try client(of: link.url), link.url, milliseconds: milliseconds, into: disk)
    } catch { failure = error }
    guard fetches[hash] === fetch else {
      // Its time was over while the file got its name.
      if failure == nil, fetches[hash] == nil, !ledger.has(hash) { await disk.remove([folder.file(hash)]) }
      return
    }
    if failure != nil, let link = fetch.links.popLast() { return begin(fetch, link) }
    if failure?.reason == .expired, !fetch.wasRenewed { return renew(fetch) }
    end(fetch, failure)
  }

  /// Asks the cluster for a new link, once.
  private func renew(_ fetch: Fetch) {
    let request = Device.uniqueID()
    fetch.phase = .waitingForLink(request: request)
    do throws(DeviceError) {
      try owner.askForLink(LinkFrame(hash: fetch.media.hash, request: request))
      fetch.wasRenewed = true
    } catch {
      // It is asked for with the next connection, if that comes in time.
      fetch.phase = .waitingForLink(request: nil)
    }
  }

  private func fetch(of request: String) -> Fetch? {
    fetches.values.first { if case .waitingForLink(request) = $0.phase { true } else { false } }
  }

  /// Ends a fetch, and tells the events that waited for it alone.
  private func end(_ fetch: Fetch, _ failure: AttachmentFailure?) {
    fetches[fetch.media.hash] = nil
    ledger.end(fetch.media.size, failure == nil ? fetch.media : nil)
    if let failure { for user in fetch.users { tell(failure, user) } }
    for event in showings.ended(fetch.media.hash) { owner.tell(event) }
    listsChanged()
    startTimer()
  }

  private func tell(_ failure: AttachmentFailure, _ user: (notification: Name, attachment: Name)) {
    owner.tell(.attachmentMissing(notification: user.notification, attachment: user.attachment, failure))
  }

  /// The client for the host of a link. The cluster names the host, so any address is allowed.
  private func client(of url: String) throws(AttachmentFailure) -> HTTPClient {
    guard let address = (try? HTTPURL(url))?.address, let hosts = try? HTTPHostRule(["\(address)"]),
      let all = try? [IPNetwork("0.0.0.0/0"), IPNetwork("::/0")]
    else { throw AttachmentFailure(.unreachable, "its link cannot be used: it is no URL") }
    if let client = clients["\(address)"] { return client }
    for (address, client) in clients where clients.count >= Self.maximumClients && client.inFlight == 0 {
      client.close()
      clients[address] = nil
    }
    guard clients.count < Self.maximumClients else {
      throw AttachmentFailure(.unreachable, "too many hosts serve attachments at this moment")
    }
    var configuration = HTTPClientConfiguration(hosts: hosts)
    configuration.addresses = HTTPAddressRule(admitting: all)
    configuration.schemes = [.https, .http]
    configuration.maximumConnections = 4
    let client = HTTPClient(on: loop, configuration: configuration)
    clients["\(address)"] = client
    return client
  }

  private static let maximumClients = 8

  // MARK: Time

  private static let late = AttachmentFailure(.late, "it has not come in time")

  private func timeIsOver() {
    let now = loop.milliseconds()
    for fetch in fetches.values where fetch.deadline <= now {
      cancel(fetch)
      end(fetch, Self.late)
    }
    // Those that wait for a file with a later deadline are shown without it.
    for event in showings.expire(now: now) { owner.tell(event) }
    startTimer()
  }

  private func startTimer() {
    guard let deadline = [showings.deadline, fetches.values.map(\.deadline).min()].compactMap({ $0 }).min() else {
      return timer?.stop() ?? ()
    }
    timer?.start(after: Int(clamping: deadline - min(deadline, loop.milliseconds())))
  }

  // MARK: The program's access

  /// Opens a file for the program, which stays until it is closed; nil if it is not there.
  func open(_ hash: MediaHash) -> String? { ledger.open(hash) ? folder.file(hash) : nil }

  /// Closes a file of the program.
  func close(_ hash: MediaHash) {
    ledger.close(hash)
    if !isClosed { listsChanged() }
  }

  // MARK: Files of the program

  /// Copies a file of the program into the store, and opens it.
  func copy(_ path: String, to disk: AttachmentDisk) async throws(AttachmentFailure) -> Media {
    let size = try await disk.size(of: path).get()
    guard ledger.reserve(size) else { throw AttachmentFailure(.full, "the store of attachments has no room for its \(size) bytes") }
    do throws(AttachmentFailure) {
      let written = try await disk.copy(path, limit: size).get()
      try await disk.keep(written).get()
      ledger.end(size, written.media)
      _ = ledger.open(written.media.hash)
      return written.media
    } catch {
      ledger.end(size)
      throw error
    }
  }
}

import EventLoop
import HTTP
import JSON
import Notifications

/// The built-in extension `attach`: fetches a notification's media into the media store. Each lane has one, with connections that it uses
/// again. It fetches a file once for all notifications that need it at about the same time.
actor Attach: LoopActor, ServiceExtension {
  nonisolated let loop: EventLoop
  private let settings: AttachSettings
  private let store: MediaStore?
  private let client: HTTPClient
  private var recent: RecentMedia
  private var fetches: [Name: Fetch] = [:]
  private var lastWaiter = 0
  /// The number of unfinished requests to the store, and of running downloads.
  private var asked = 0
  private var running = 0
  /// Beyond these numbers the store or the servers hang.
  private static let (maximumAsked, maximumRunning) = (16_384, 1_024)

  /// A file that is being fetched, with the calls that wait for it.
  private final class Fetch {
    let download: MediaDownload
    var waiters: [Int: CheckedContinuation<RecentMedia.Outcome, Never>] = [:]
    /// The latest time until which a waiting call needs it.
    var until: Int64 = 0

    init(_ download: MediaDownload) { self.download = download }
  }

  /// Call it on the loop.
  ///
  /// - Parameter store: nil if the process has none: then every call fails.
  init(_ settings: AttachSettings, _ store: MediaStore?, on loop: EventLoop) {
    self.loop = loop
    self.settings = settings
    self.store = store
    client = HTTPClient(on: loop, configuration: settings.configuration)
    recent = RecentMedia(milliseconds: settings.reuseMilliseconds)
  }

  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    let given = bestAttempt.content
    var (wanted, failure) = settings.wanted(in: given)
    guard !wanted.isEmpty || failure != nil else { return given }
    guard store != nil else { throw ExtensionFailure("this process has no media store: it was started without --media") }
    let until = max(request.expiration, WallClock.seconds())
    await withTaskGroup(of: (ContentAttachment, RecentMedia.Outcome).self) { group in
      for (attachment, url) in wanted {
        group.addTask { (attachment, await self.media(Name(url), until: until)) }
      }
      for await (attachment, outcome) in group {
        switch outcome {
        case .success(let media):
          var stored = attachment
          stored.source = .stored(media)
          bestAttempt.update { $0.put(stored, inOrderOf: given.attachments + wanted.map(\.attachment)) }
        case .failure(let error): failure = failure ?? error
        }
      }
    }
    try Task.checkCancellation()
    if let failure { throw failure }
    return bestAttempt.content
  }

  /// A file of the store, which keeps it until a day after this time.
  private func media(_ url: Name, until: Int64) async -> RecentMedia.Outcome {
    for _ in 0..<2 {
      let outcome = await fetched(url, until: until)
      guard case .success(let media) = outcome else { return outcome }
      switch await keep(media, until: until) {
      case .success(true)?: return outcome
      case .success(false)?: recent.forget(url)
      case .failure(let error)?: return .failure(ExtensionFailure(error.description))
      case nil: return .failure(Self.canceled)
      }
    }
    return .failure(Self.gone)
  }

  /// Makes the store keep a file; returns whether the store has it, or nil if the call was cancelled. A hanging folder never answers.
  private func keep(_ media: Media, until: Int64) async -> Result<Bool, MediaError>? {
    guard asked < Self.maximumAsked else { return .failure(MediaError("too many questions wait for the media store")) }
    asked += 1
    let (answers, answer) = AsyncStream<Result<Bool, MediaError>>.makeStream(bufferingPolicy: .bufferingNewest(1))
    Task(executorPreference: loop) {
      answer.yield(await self.ask(media, until: until))
      answer.finish()
    }
    // The loop also ends with its task.
    for await kept in answers { return kept }
    return nil
  }

  private func ask(_ media: Media, until: Int64) async -> Result<Bool, MediaError> {
    defer { asked -= 1 }
    do throws(MediaError) { return .success(try await store?.keep(media.hash, until: until) ?? false) } catch { return .failure(error) }
  }

  private static let gone = ExtensionFailure("its file is gone from the media store")
  private static let canceled = ExtensionFailure("its file was not waited for")

  /// The file of a URL, which is fetched if it is unknown.
  private func fetched(_ url: Name, until: Int64) async -> RecentMedia.Outcome {
    if let known = recent.outcome(url, at: loop.milliseconds()) { return known }
    guard fetches[url] != nil || running < Self.maximumRunning else {
      return .failure(ExtensionFailure("its file was not fetched: too many are on their way"))
    }
    lastWaiter += 1
    let waiter = lastWaiter
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        guard !Task.isCancelled else { return continuation.resume(returning: .failure(Self.canceled)) }
        let fetch = fetch(url)
        fetch.waiters[waiter] = continuation
        fetch.until = max(fetch.until, until)
      }
    } onCancel: {
      loop.execute { self.assumeIsolated { $0.leave(url, waiter) } }
    }
  }

  private func fetch(_ url: Name) -> Fetch {
    if let fetch = fetches[url] { return fetch }
    let fetch = Fetch(MediaDownload(url.text, timeoutMilliseconds: settings.timeoutMilliseconds))
    fetches[url] = fetch
    running += 1
    // The task starts before any call can leave, since the loop runs nothing else in between.
    Task(executorPreference: loop) { await self.run(url) }
    return fetch
  }

  private func run(_ url: Name) async {
    defer { running -= 1 }
    guard let fetch = fetches[url], let store else { return }
    let outcome = await fetch.download.run(client, into: store) { fetch.until }
    // All waiting calls may have left, and new ones may have come.
    guard fetches[url] === fetch else { return }
    fetches[url] = nil
    recent.remember(url, outcome, at: loop.milliseconds())
    for continuation in fetch.waiters.values { continuation.resume(returning: outcome) }
  }

  /// A call leaves. Without waiting calls the download is cancelled.
  private func leave(_ url: Name, _ waiter: Int) {
    guard let fetch = fetches[url], let continuation = fetch.waiters.removeValue(forKey: waiter) else { return }
    continuation.resume(returning: .failure(Self.canceled))
    guard fetch.waiters.isEmpty else { return }
    fetches[url] = nil
    fetch.download.cancel()
  }

  func close() {
    for (url, fetch) in fetches { for waiter in Array(fetch.waiters.keys) { leave(url, waiter) } }
    client.close()
  }
}

extension AttachSettings {
  /// The attachments to fetch for a content: those that have only a URL, and those that the payload names. With the first error in the
  /// payload's places.
  fileprivate func wanted(in content: MutableContent) -> (wanted: [(attachment: ContentAttachment, url: String)], ExtensionFailure?) {
    var wanted: [(attachment: ContentAttachment, url: String)] = []
    var failure: ExtensionFailure?
    for attachment in content.attachments {
      if case .url(let url) = attachment.source { wanted.append((attachment, url)) }
    }
    for place in places {
      guard let value = content.payload[place.pointer], value != .null else { continue }
      guard let url = value.stringValue, (1...ContentAttachment.urlBytes).contains(url.utf8.count) else {
        failure = failure ?? ExtensionFailure("the payload's \(place.pointer) is no URL of 1 to \(ContentAttachment.urlBytes) bytes")
        continue
      }
      guard !content.attachments.contains(where: { $0.identifier == place.identifier }) else { continue }
      wanted.append((ContentAttachment(identifier: place.identifier, url: url, options: place.options), url))
    }
    return (wanted, failure)
  }
}

extension MutableContent {
  /// Inserts an attachment in the order of all, or replaces the one with its identifier.
  fileprivate mutating func put(_ attachment: ContentAttachment, inOrderOf all: [ContentAttachment]) {
    attachments.removeAll { $0.identifier == attachment.identifier }
    let order = Dictionary(all.enumerated().map { ($0.element.identifier, $0.offset) }, uniquingKeysWith: { first, _ in first })
    let place = order[attachment.identifier] ?? .max
    let end = attachments.firstIndex { order[$0.identifier] ?? .max > place } ?? attachments.endIndex
    attachments.insert(attachment, at: end)
  }
}

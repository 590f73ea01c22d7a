import HTTP
import Notifications

/// A download from a URL into the media store, a few pieces at a time, at the store's speed.
final class MediaDownload {
  private let url: String
  private let timeoutMilliseconds: Int
  private var body: HTTPPulledBody?
  /// Why it is refused, found during the download.
  private var refusal: ExtensionFailure?
  private var isCanceled = false

  init(_ url: String, timeoutMilliseconds: Int) { (self.url, self.timeoutMilliseconds) = (url, timeoutMilliseconds) }

  /// Fetches the file and stores it; from a task on the client's loop.
  ///
  /// - Parameter until: returns the time until which to keep it at least. It is called after the download.
  func run(_ client: HTTPClient, into store: MediaStore, until: () -> Int64) async -> RecentMedia.Outcome {
    var file: Int?
    do {
      let body = try begin(client)
      while let piece = await body.next() {
        // Begun only with the first piece, since thousands may wait for their turn.
        if file == nil { file = try await store.begin() }
        if let file { try await store.append(piece, to: file) }
      }
      try check(body.result)
      guard let file, let media = try await store.finish(file, until: until()) else { throw MediaError.noType }
      return .success(media)
    } catch {
      body?.cancel()
      if let file { await store.discard(file) }
      switch error {
      case let error as ExtensionFailure: return .failure(error)
      // The client's message names the host, which comes from the payload and may have been encrypted there.
      case let error as HTTPClientError:
        return .failure(ExtensionFailure("its file cannot be fetched (\(error.code))", said: error.message))
      default: return .failure(ExtensionFailure("\(error)"))
      }
    }
  }

  /// Stops it; the file is not needed any more.
  func cancel() {
    isCanceled = true
    body?.cancel()
  }

  private func begin(_ client: HTTPClient) throws -> HTTPPulledBody {
    guard !isCanceled else { throw Self.canceled }
    var request = HTTPClientRequest(.get, url, headers: [("accept", "image/*, audio/*, video/*")])
    request.timeoutMilliseconds = timeoutMilliseconds
    request.maximumBodyBytes = MediaType.largestBytes
    request.maximumRedirects = AttachSettings.redirects
    let body = try HTTPPulledBody(of: request, from: client) { [self] in accepts($1) }
    self.body = body
    return body
  }

  /// False if the response shows that the file is refused.
  private func accepts(_ response: HTTPClientResponse) -> Bool {
    if response.status != .ok { refusal = Self.status(response) }
    return response.status == .ok
  }

  private func check(_ result: Result<HTTPClientResponse, HTTPClientError>?) throws {
    if isCanceled { throw Self.canceled }
    if let refusal { throw refusal }
    guard let response = try result?.get() else { throw Self.canceled }
    guard response.status == .ok else { throw Self.status(response) }
  }

  private static func status(_ response: HTTPClientResponse) -> ExtensionFailure {
    ExtensionFailure("the server of its file answers with the status \(response.status.rawValue)")
  }

  private static let canceled = ExtensionFailure("its file is not wanted any more")
}

import EventLoop
import HTTP
import Notifications

/// A download from a URL into the media store, a few pieces at a time, at the store's speed. Loop-confined.
final class MediaDownload: HTTPBodyHandler {
  /// Bytes that may wait for the store before the server has to wait.
  private static let waitingBytes = 256 << 10

  private let url: String
  private let timeoutMilliseconds: Int
  private var call: HTTPClientCall?
  private var waiting: [UInt8] = []
  private var isPaused = false
  private var beginning: [UInt8] = []
  private var received = 0
  private var largest = MediaType.largestBytes
  /// Why it is refused, found during the download.
  private var refusal: ExtensionFailure?
  private var result: Result<HTTPClientResponse, HTTPClientError>?
  private var continuation: CheckedContinuation<Void, Never>?
  private var isCanceled = false

  init(_ url: String, timeoutMilliseconds: Int) { (self.url, self.timeoutMilliseconds) = (url, timeoutMilliseconds) }

  /// Fetches the file and stores it; from a task on the client's loop.
  ///
  /// - Parameter until: returns the time until which to keep it at least. It is called after the download.
  func run(_ client: HTTPClient, into store: MediaStore, until: () -> Int64) async -> RecentMedia.Outcome {
    var file: Int?
    do {
      try begin(client)
      while let piece = await next() {
        // Begun only with the first piece, since thousands may wait for their turn.
        if file == nil { file = try await store.begin() }
        if let file { try await store.append(piece, to: file) }
      }
      try checkResult()
      guard let file, let media = try await store.finish(file, until: until()) else { throw Self.noType }
      return .success(media)
    } catch {
      call?.cancel()
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
    waiting = []
    call?.cancel()
  }

  private func begin(_ client: HTTPClient) throws {
    guard !isCanceled else { throw Self.canceled }
    var request = HTTPClientRequest(.get, url, headers: [("accept", "image/*, audio/*, video/*")])
    request.timeoutMilliseconds = timeoutMilliseconds
    request.connectMilliseconds = timeoutMilliseconds
    request.maximumBodyBytes = MediaType.largestBytes
    request.maximumRedirects = AttachSettings.redirects
    call = try client.send(request, to: self) { [self] result in
      self.result = result
      wake()
    }
  }

  /// The next piece; nil at the end.
  private func next() async -> [UInt8]? {
    while waiting.isEmpty, result == nil { await withCheckedContinuation { continuation = $0 } }
    guard !waiting.isEmpty else { return nil }
    let piece = waiting
    waiting = []
    if isPaused {
      isPaused = false
      call?.resumeBody()
    }
    return piece
  }

  private func wake() {
    continuation?.resume()
    continuation = nil
  }

  func httpBodyReceived(_ bytes: UnsafeRawBufferPointer, of response: HTTPClientResponse) -> HTTPBodyDemand {
    guard response.status == .ok else {
      refusal = Self.status(response)
      return .stop
    }
    guard take(bytes) else { return .stop }
    wake()
    guard waiting.count >= Self.waitingBytes else { return .more }
    isPaused = true
    return .pause
  }

  /// Takes a piece; false if it shows that the file is refused.
  private func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    received += bytes.count
    if beginning.count < MediaType.tellingBytes {
      beginning += bytes.prefix(MediaType.tellingBytes - beginning.count)
      if beginning.count >= MediaType.tellingBytes {
        guard let type = MediaType(beginning: beginning) else {
          refusal = Self.noType
          return false
        }
        largest = type.maximumBytes
      }
    }
    guard received <= largest else {
      refusal = MediaType(beginning: beginning).map {
        ExtensionFailure("its file has more than \($0.maximumBytes) bytes, which is the maximum for \($0.name)")
      }
      return false
    }
    waiting += bytes
    return true
  }

  private func checkResult() throws {
    if isCanceled { throw Self.canceled }
    if let refusal { throw refusal }
    guard let response = try result?.get() else { throw Self.canceled }
    guard response.status == .ok else { throw Self.status(response) }
  }

  private static func status(_ response: HTTPClientResponse) -> ExtensionFailure {
    ExtensionFailure("the server of its file answers with the status \(response.status.rawValue)")
  }

  private static let canceled = ExtensionFailure("its file is not wanted any more")
  private static let noType = ExtensionFailure("its file is none of: \(MediaType.allCases.map(\.name.description).joined(separator: ", "))")
}

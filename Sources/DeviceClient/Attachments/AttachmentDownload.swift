internal import HTTP
internal import Notifications

/// The download of an attachment into the store, at the speed of the disk. Loop-confined.
final class AttachmentDownload: HTTPBodyHandler {
  /// Bytes that may wait for the disk before the server has to wait.
  private static let waitingBytes = 256 << 10

  private let media: Media
  /// Whether its task runs.
  private(set) var isBegun = false
  private var call: HTTPClientCall?
  private var pieces: [UInt8] = []
  private var received = 0
  private var isPaused = false
  private var failure: AttachmentFailure?
  private var result: Result<HTTPClientResponse, HTTPClientError>?
  private var continuation: CheckedContinuation<Void, Never>?

  init(_ media: Media) { self.media = media }

  /// Fetches the file and gives it its name; from a task on the client's loop.
  func run(_ client: HTTPClient, _ url: String, milliseconds: Int, into disk: AttachmentDisk) async throws(AttachmentFailure) {
    try begin(client, url, milliseconds)
    let file = try await disk.begin().get()
    do throws(AttachmentFailure) {
      while let piece = await next() { try await disk.append(piece, to: file).get() }
      try checkResult()
    } catch {
      call?.cancel()
      await disk.discard(file)
      throw error
    }
    let written = try await disk.finish(file).get()
    guard written.media == media, failure == nil else {
      await disk.remove([written.path])
      throw failure ?? AttachmentFailure(.wrongContent, "its content is not what the notification says: its type or its hash differs")
    }
    try await disk.keep(written).get()
  }

  /// Ends it for this reason.
  func cancel(_ failure: AttachmentFailure) {
    self.failure = self.failure ?? failure
    pieces = []
    call?.cancel()
  }

  private func begin(_ client: HTTPClient, _ url: String, _ milliseconds: Int) throws(AttachmentFailure) {
    isBegun = true
    if let failure { throw failure }
    var request = HTTPClientRequest(.get, url, headers: [("accept", "image/*, audio/*, video/*")])
    (request.timeoutMilliseconds, request.connectMilliseconds) = (milliseconds, milliseconds)
    request.maximumBodyBytes = MediaType.largestBytes
    do throws(HTTPClientError) {
      call = try client.send(request, to: self) { [self] result in
        self.result = result
        wake()
      }
    } catch { throw AttachmentFailure(.unreachable, "its link cannot be used (\(error.code))") }
  }

  /// The next bytes; nil at the end.
  private func next() async -> [UInt8]? {
    while pieces.isEmpty, result == nil { await withCheckedContinuation { continuation = $0 } }
    guard !pieces.isEmpty else { return nil }
    let piece = pieces
    pieces = []
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
    guard response.status == .ok, failure == nil else { return .stop }
    received += bytes.count
    guard received <= media.size else {
      failure = AttachmentFailure(.wrongSize, "it has more than the \(media.size) bytes that the notification says")
      return .stop
    }
    pieces += bytes
    wake()
    guard pieces.count >= Self.waitingBytes else { return .more }
    isPaused = true
    return .pause
  }

  private func checkResult() throws(AttachmentFailure) {
    if let failure { throw failure }
    switch result {
    case .success(let response)?:
      let status = response.status.rawValue
      switch status {
      case 200: break
      case 300..<400: throw AttachmentFailure(.redirected, "its link redirects (status \(status))")
      case 401, 403, 404, 410: throw AttachmentFailure(.expired, "its link is good no more (status \(status))")
      default: throw AttachmentFailure(.refused, "its server answers with the status \(status)")
      }
    case .failure(let error)?: throw AttachmentFailure(.unreachable, "it cannot be fetched (\(error.code))")
    case nil: preconditionFailure("a download ends with its result")
    }
    guard received == media.size else {
      throw AttachmentFailure(.wrongSize, "it has \(received) bytes, and the notification says \(media.size)")
    }
  }
}

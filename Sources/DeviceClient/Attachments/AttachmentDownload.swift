internal import Glibc
internal import HTTP
internal import Notifications

/// The download of an attachment into the store, at the speed of the disk.
final class AttachmentDownload {
  private let media: Media
  private var body: HTTPPulledBody?
  private var received = 0
  private var failure: AttachmentFailure?

  init(_ media: Media) { self.media = media }

  /// Fetches the file and gives it its name; from a task on the client's loop.
  func run(_ client: HTTPClient, _ url: String, milliseconds: Int, into disk: AttachmentDisk) async throws(AttachmentFailure) {
    let body = try begin(client, url, milliseconds)
    let written: AttachmentFolder.Written
    var begun: AttachmentWriter?
    do throws(AttachmentFailure) {
      let file = try await disk.call { folder throws(AttachmentFailure) in try folder.begin() }.get()
      begun = file
      while let piece = await body.next() { try await disk.call { _ throws(AttachmentFailure) in try file.append(piece) }.get() }
      try check(body.result)
      written = try await disk.call { _ throws(AttachmentFailure) in try file.finish() }.get()
    } catch {
      body.cancel()
      _ = await disk.call { [begun] _ in begun?.discard() }
      throw error
    }
    guard written.media == media, failure == nil else {
      _ = await disk.call { _ in unlink(written.path) }
      throw failure ?? AttachmentFailure(.wrongContent, "its content is not what the notification says: its type or its hash differs")
    }
    try await disk.call { folder throws(AttachmentFailure) in try folder.keep(written) }.get()
  }

  /// Ends it for this reason.
  func cancel(_ failure: AttachmentFailure) {
    self.failure = self.failure ?? failure
    body?.cancel()
  }

  private func begin(_ client: HTTPClient, _ url: String, _ milliseconds: Int) throws(AttachmentFailure) -> HTTPPulledBody {
    if let failure { throw failure }
    var request = HTTPClientRequest(.get, url, headers: [("accept", "image/*, audio/*, video/*")])
    request.timeoutMilliseconds = milliseconds
    request.maximumBodyBytes = MediaType.largestBytes
    do throws(HTTPClientError) {
      let body = try HTTPPulledBody(of: request, from: client) { [self] in accepts($0.count, $1) }
      self.body = body
      return body
    } catch { throw AttachmentFailure(.unreachable, "its link cannot be used (\(error.code))") }
  }

  private func accepts(_ count: Int, _ response: HTTPClientResponse) -> Bool {
    guard response.status == .ok, failure == nil else { return false }
    received += count
    guard received > media.size else { return true }
    failure = AttachmentFailure(.wrongSize, "it has more than the \(media.size) bytes that the notification says")
    return false
  }

  private func check(_ result: Result<HTTPClientResponse, HTTPClientError>?) throws(AttachmentFailure) {
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

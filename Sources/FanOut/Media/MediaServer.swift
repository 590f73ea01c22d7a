package import Cryptography
package import EventLoop
package import Extensions
package import HTTP
import Notifications
package import Worker

/// Serves media of notifications to devices, at signed links.
///
/// It has a loop of its own: the file system may block, and no lane must wait for it.
///
/// | answer | when |
/// |---|---|
/// | 200, 206 | the file or a part of it (RFC 9110, section 14), with `ETag` |
/// | 304, 416 | the device has it already, or asks for a part that there is not |
/// | 403 | the link is none of this cluster's, or has expired |
/// | 404 | the file is not there, or not any more |
/// | 500 | the folder cannot be read |
/// | 503 | there are too many connections, or the process has few descriptors left |
package enum MediaServer {
  /// Maximum number of connections. Each may have a file open, too.
  package static let maximumConnections = 4_096

  /// Starts it; see `LoopServer.start`.
  ///
  /// - Parameters:
  ///   - keys: the cluster's, which have signed the links.
  ///   - maximumDescriptor: devices are refused on a descriptor of this number or a higher one: the process keeps the rest for itself.
  ///   - tls: TLS of its connections; nil for none.
  package static func start(
    at address: SocketAddress, _ folder: MediaFolder, keys: InForce<KeyRing>, maximumDescriptor: Int32 = .max,
    tls: TLSServerConfiguration?, logger: Logger, metrics: MetricRegistry
  ) async throws(EventLoopError) -> LoopServer {
    var configuration = HTTPServerConfiguration()
    configuration.tls = tls
    configuration.maximumConnections = maximumConnections
    configuration.maximumDescriptor = maximumDescriptor
    configuration.maximumBodyBytes = 0
    return try await LoopServer.start("media", at: address, configuration) { _ in
      var routes = HTTPRoutes()
      let media = MediaResponses(folder, MediaLinks(nil, keys), maximumDescriptor, logger, metrics)
      routes.add(.get, prefix: MediaLinks.path) { request, responder in responder.respond(media.response(to: request)) }
      return routes
    }
  }
}

/// Answers requests for media. It blocks.
private final class MediaResponses {
  private let folder: MediaFolder
  private let links: MediaLinks
  private let maximumDescriptor: Int32
  private let logger: Logger
  private let bytes: Counter
  private let answers: MetricSet<Counter>

  init(_ folder: MediaFolder, _ links: MediaLinks, _ maximumDescriptor: Int32, _ logger: Logger, _ metrics: MetricRegistry) {
    (self.folder, self.links, self.maximumDescriptor, self.logger) = (folder, links, maximumDescriptor, logger)
    (bytes, answers) = (metrics.make(MetricNames.mediaServedBytes), metrics.makeSet(MetricNames.mediaServed))
  }

  func response(to request: HTTPRequest) -> HTTPResponse {
    let response = answer(to: request)
    answers.increment("\(response.status.rawValue)")
    return response
  }

  private func answer(to request: HTTPRequest) -> HTTPResponse {
    guard let hash = MediaHash(request.path.dropFirst(MediaLinks.path.count)) else {
      return HTTPResponse(.notFound, text: "There is nothing at this path.\n")
    }
    let verdict = links.judge(
      hash, device: request.queryParameter("device"), expires: request.queryParameter("expires"),
      signature: request.queryParameter("signature"), now: WallClock.seconds())
    switch verdict {
    case .wrong: return HTTPResponse(.forbidden, text: "This link is none that the cluster has given.\n")
    case .expired: return HTTPResponse(.forbidden, text: "This link has expired; the frame link asks for another.\n")
    case .good(let seconds):
      do throws(MediaError) {
        guard let file = try folder.open(hash) else {
          return HTTPResponse(.notFound, text: "The cluster does not have this file any more.\n")
        }
        guard file.descriptor < maximumDescriptor else {
          return HTTPResponse(.serviceUnavailable, text: "Too many files are being read.\n", headers: [("Retry-After", "5")])
        }
        return response(to: request, hash, file, seconds: seconds)
      } catch {
        logger.warning("a file of the media folder cannot be read", ["error": "\(error)"])
        return HTTPResponse(.internalServerError, text: "The file cannot be read.\n")
      }
    }
  }

  private func response(to request: HTTPRequest, _ hash: MediaHash, _ file: MediaFile, seconds: Int64) -> HTTPResponse {
    let selection = HTTPRepresentation(entityTag: hash.description, count: file.size).selection(for: request)
    let caching = [("Cache-Control", "private, max-age=\(seconds), immutable")]
    guard let range = selection.range else {
      return HTTPResponse(selection.status, headers: (selection.status == .notModified ? caching : []) + selection.headers)
    }
    // A browser must not guess another type.
    let headers =
      caching + [
        ("Content-Type", file.type.name.description),
        ("X-Content-Type-Options", "nosniff"), ("Content-Security-Policy", "sandbox; default-src 'none'"),
      ]
    return HTTPResponse(selection.status, headers: headers + selection.headers, source: MediaBody(file, range, bytes))
  }
}

/// A part of a file on its way to a device.
private final class MediaBody: HTTPBodySource {
  private let file: MediaFile
  private let served: Counter
  private var place: Int
  let count: Int

  init(_ file: MediaFile, _ range: Range<Int>, _ served: Counter) {
    (self.file, self.served) = (file, served)
    (place, count) = (range.lowerBound, range.count)
  }

  func read(atMost maximum: Int) -> SharedBytes {
    let piece = file.read(at: place, atMost: maximum)
    place += piece.count
    served.increment(by: piece.count)
    return piece
  }

  func close() { file.close() }
}

import EventLoop
import HTTP
import TestSupport
import Testing

/// A client on a loop of its own.
actor HTTPClientLane: LoopActor {
  nonisolated let loop = EventLoop(name: "client-test")
  private var client: HTTPClient?
  /// The body that a test pulls.
  var pulled: HTTPPulledBody?
  /// What requests that nobody waits for came to.
  private(set) var codes: [HTTPClientError.Code] = []
  private(set) var successes = 0
  private var calls: [HTTPClientCall] = []

  @concurrent static func with(
    _ configuration: HTTPClientConfiguration, _ body: @concurrent @Sendable (HTTPClientLane) async throws -> Void
  ) async throws {
    let lane = HTTPClientLane()
    await lane.open(configuration)
    do { try await body(lane) } catch {
      await lane.close()
      await lane.loop.close()
      throw error
    }
    await lane.close()
    #expect(await lane.inFlight == 0)
    await lane.loop.close()
  }

  /// Goes to hosts of 127.0.0.0/8, by http.
  static func local(_ hosts: String..., admitting networks: [String] = ["127.0.0.0/8"]) throws -> HTTPClientConfiguration {
    var configuration = HTTPClientConfiguration(hosts: try HTTPHostRule(hosts))
    configuration.schemes = [.http]
    configuration.addresses = HTTPAddressRule(admitting: try networks.map { try IPNetwork($0) })
    return configuration
  }

  func open(_ configuration: HTTPClientConfiguration) { client = HTTPClient(on: loop, configuration: configuration) }

  func close() { client?.close() }
  var inFlight: Int { client?.inFlight ?? 0 }

  /// The client, while the lane is open.
  var opened: HTTPClient {
    guard let client else { preconditionFailure("the lane is open") }
    return client
  }

  /// Sends a request and waits for what comes of it.
  func send(_ request: HTTPClientRequest) async -> Result<HTTPClientResponse, HTTPClientError> {
    do throws(HTTPClientError) { return .success(try await opened.send(request)) } catch { return .failure(error) }
  }

  /// The failure of a request; nil where there is a response.
  func failure(_ request: HTTPClientRequest) async -> HTTPClientError? {
    if case .failure(let error) = await send(request) { error } else { nil }
  }

  /// Sends requests without waiting; what can be told at once counts like what comes later.
  func start(_ requests: [HTTPClientRequest], to handler: BodyCollector? = nil) {
    for request in requests {
      do throws(HTTPClientError) {
        let call = try client?.send(request, to: handler.map { handler in { handler.take($0, of: $1) } }) { result in
          switch result {
          case .success: self.assumeIsolated { $0.successes += 1 }
          case .failure(let error): self.assumeIsolated { $0.codes.append(error.code) }
          }
        }
        if let call { calls.append(call) }
        handler?.call = call
      } catch { codes.append(error.code) }
    }
  }

  func cancelAll() { for call in calls { call.cancel() } }

  private var collector: BodyCollector?

  /// Runs a request whose body goes to a collector that the test asks with `withBody`.
  func collect(_ request: HTTPClientRequest, _ behave: @escaping @Sendable (BodyCollector) -> HTTPBodyDemand) {
    let collector = BodyCollector(behave)
    self.collector = collector
    start([request], to: collector)
  }

  func withBody<R>(_ body: (BodyCollector) -> R) -> R {
    guard let collector else { preconditionFailure("a request collects its body") }
    return body(collector)
  }

  func resumeBody() {
    withBody {
      $0.isPaused = false
      $0.call?.resumeBody()
    }
  }

  /// Waits until a condition on the loop holds.
  func wait(_ location: SourceLocation = #_sourceLocation, until condition: @Sendable (isolated HTTPClientLane) -> Bool) async -> Bool {
    await eventually("the condition holds", location) { condition(self) }
  }
}

/// Keeps a body that comes in pieces.
final class BodyCollector {
  private let behave: (BodyCollector) -> HTTPBodyDemand
  private(set) var bytes: [UInt8] = []
  private(set) var pieces = 0
  private(set) var statuses: Set<HTTPStatus> = []
  /// Something came while it was paused.
  private(set) var wasDisturbed = false
  var isPaused = false
  var pauses = 0
  var call: HTTPClientCall?

  init(_ behave: @escaping (BodyCollector) -> HTTPBodyDemand) { self.behave = behave }

  func take(_ bytes: UnsafeRawBufferPointer, of response: HTTPClientResponse) -> HTTPBodyDemand {
    self.bytes.append(contentsOf: bytes)
    pieces += 1
    if isPaused { wasDisturbed = true }
    statuses.insert(response.status)
    return behave(self)
  }
}

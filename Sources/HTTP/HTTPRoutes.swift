/// Which handler answers which method and path.
///
/// Paths match exactly. A path that is known with another method is answered with 405 and `Allow`, an unknown one with 404.
public struct HTTPRoutes {
  /// Answers a request; called on the loop, and may keep the responder to answer later on the loop.
  public typealias Handler = (HTTPRequest, HTTPResponder) -> Void

  enum Endpoint {
    case plain(Handler)
    case webSocket(WebSocketRoute)
  }

  enum Match {
    case found(Endpoint)
    case otherMethod(allow: String)
    case unknown
  }

  private var paths: [String: [HTTPMethod: Endpoint]] = [:]

  /// Makes routes that answer everything with 404.
  public init() {}

  /// Adds a handler; one for GET answers HEAD too.
  public mutating func add(_ method: HTTPMethod, _ path: String, _ handler: @escaping Handler) {
    paths[path, default: [:]][method] = .plain(handler)
  }

  /// Adds a WebSocket endpoint (RFC 6455).
  ///
  /// - Parameter admit: judges each upgrade that is well-formed, on the loop: it gives the connection's handler, or refuses.
  public mutating func addWebSocket(
    _ path: String, _ configuration: WebSocketConfiguration, admit: @escaping (HTTPRequest) -> WebSocketAdmission
  ) {
    paths[path, default: [:]][.get] = .webSocket(WebSocketRoute(configuration: configuration, admit: admit))
  }

  func match(_ method: HTTPMethod, _ path: String) -> Match {
    guard let endpoints = paths[path] else { return .unknown }
    if let endpoint = endpoints[method] { return .found(endpoint) }
    if method == .head, let endpoint = endpoints[.get], case .plain = endpoint { return .found(endpoint) }
    var names = Set(endpoints.keys.map(\.rawValue))
    if let endpoint = endpoints[.get], case .plain = endpoint { names.insert("HEAD") }
    return .otherMethod(allow: names.sorted().joined(separator: ", "))
  }

  /// Gives each WebSocket route the state that its connections share.
  mutating func bindWebSockets(_ makeEndpoint: (WebSocketConfiguration) -> WebSocketEndpoint) {
    for (path, endpoints) in paths {
      for case (let method, .webSocket(var route)) in endpoints {
        route.endpoint = makeEndpoint(route.configuration)
        paths[path]?[method] = .webSocket(route)
      }
    }
  }
}

/// The handlers by method and path.
///
/// An added path matches exactly, with any method. Another path belongs to the longest prefix that it begins with. The answer is 405 with
/// `Allow` if only other methods have a handler, and 404 if there is none.
public struct HTTPRoutes {
  /// Answers a request. It is called on the loop, and may keep the responder to answer later on the loop.
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
  /// The longest first.
  private var prefixes: [(prefix: String, endpoints: [HTTPMethod: Endpoint])] = []

  /// Makes routes that answer everything with 404.
  public init() {}

  /// Adds a handler. One for GET answers HEAD too.
  public mutating func add(_ method: HTTPMethod, _ path: String, _ handler: @escaping Handler) {
    paths[path, default: [:]][method] = .plain(handler)
  }

  /// Adds a handler for every longer path that begins with `prefix`. One for GET answers HEAD too.
  ///
  /// The handler reads the rest from the request's path. It may be any bytes of a path as sent, with slashes and dots.
  public mutating func add(_ method: HTTPMethod, prefix: String, _ handler: @escaping Handler) {
    if let index = prefixes.firstIndex(where: { $0.prefix == prefix }) {
      prefixes[index].endpoints[method] = .plain(handler)
    } else {
      let index = prefixes.firstIndex { $0.prefix.utf8.count < prefix.utf8.count } ?? prefixes.endIndex
      prefixes.insert((prefix, [method: .plain(handler)]), at: index)
    }
  }

  /// Adds a WebSocket endpoint (RFC 6455).
  ///
  /// - Parameter admit: called on the loop for each well-formed upgrade; returns the connection's handler, or refuses.
  public mutating func addWebSocket(
    _ path: String, _ configuration: WebSocketConfiguration, admit: @escaping (HTTPRequest) -> WebSocketAdmission
  ) {
    paths[path, default: [:]][.get] = .webSocket(WebSocketRoute(configuration: configuration, admit: admit))
  }

  func match(_ method: HTTPMethod, _ path: String) -> Match {
    guard let endpoints = paths[path] ?? prefixes.first(where: { path.goesOn(behind: $0.prefix) })?.endpoints else { return .unknown }
    if let endpoint = endpoints[method] { return .found(endpoint) }
    if method == .head, let endpoint = endpoints[.get], case .plain = endpoint { return .found(endpoint) }
    var names = Set(endpoints.keys.map(\.rawValue))
    if let endpoint = endpoints[.get], case .plain = endpoint { names.insert("HEAD") }
    return .otherMethod(allow: names.sorted().joined(separator: ", "))
  }

  /// Gives each WebSocket route the shared state of its connections.
  mutating func bindWebSockets(_ makeEndpoint: (WebSocketConfiguration) -> WebSocketEndpoint) {
    for (path, endpoints) in paths {
      for case (let method, .webSocket(var route)) in endpoints {
        route.endpoint = makeEndpoint(route.configuration)
        paths[path]?[method] = .webSocket(route)
      }
    }
  }
}

extension String {
  /// Whether it begins with `prefix`, byte by byte, and is longer.
  fileprivate func goesOn(behind prefix: String) -> Bool { utf8.count > prefix.utf8.count && utf8.starts(with: prefix.utf8) }
}

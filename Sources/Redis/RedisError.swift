/// Why a call, a connection or an address failed.
public struct RedisError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The failures that callers distinguish.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The address has an unknown form.
    case badAddress
    /// The feature is not in this version: a Redis Cluster.
    case notInThisVersion

    /// The host's name has no address.
    case unresolved
    /// Nothing accepts the connection.
    case unreachable
    /// There is no connection now, and the call was not sent.
    case notConnected
    /// Too many calls are in flight, and the call was not sent.
    case full
    /// The connection was lost with the call in flight.
    case connectionLost
    /// The deadline passed first.
    case timedOut
    /// The connection was closed by this side.
    case closed
    /// The peer does not speak Redis' protocol.
    case protocolViolation
    /// The peer does not speak TLS, or one side does not trust the other.
    case tlsFailed

    /// `WRONGPASS`, `NOAUTH`: user and password are missing or wrong.
    case authenticationFailed
    /// `NOPERM`, `DENIED`: the user lacks the right.
    case noPermission
    /// `READONLY`: the server has become a replica.
    case readOnly
    /// `LOADING`: the server is loading its data set.
    case loading
    /// `MASTERDOWN`: a replica without its primary.
    case masterDown
    /// `OOM`: `maxmemory` is reached.
    case outOfMemory
    /// `NOSCRIPT`: the script is unknown, even after loading it again.
    case noScript
    /// `MOVED`, `ASK`, `CROSSSLOT`: the server is a node of a Redis Cluster.
    case moved
    /// `CLUSTERDOWN`, `TRYAGAIN`: the cluster cannot answer now.
    case clusterDown
    /// `BUSY`: a script runs for too long.
    case busy
    /// `MISCONF`, `NOREPLICAS`: the server refuses writes because it cannot make them durable.
    case writesRefused
    /// `WRONGTYPE`: the key has a value of another type.
    case wrongType
    /// The server has reached its limit of clients.
    case tooManyClients
    /// Any other error reply; the message has the server's words.
    case rejected

    /// The server's settings or version are unsuitable.
    case unsuitableServer
    /// No `redis-server` is installed.
    case serverMissing
    /// A private server did not start.
    case serverFailed
  }

  /// The kind of failure.
  public var code: Code
  /// What happened and what to do; never a password.
  public var message: String

  /// An error of its parts.
  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Whether the same may succeed later without a change by the user.
  public var isRetriable: Bool {
    switch code {
    case .unresolved, .unreachable, .notConnected, .full, .connectionLost, .timedOut, .readOnly, .loading, .masterDown, .outOfMemory,
      .noScript, .clusterDown, .busy, .writesRefused, .tooManyClients:
      true
    case .badAddress, .notInThisVersion, .closed, .protocolViolation, .tlsFailed, .authenticationFailed, .noPermission, .moved, .wrongType,
      .rejected, .unsuitableServer, .serverMissing, .serverFailed:
      false
    }
  }

  /// The message.
  public var description: String { message }
}

extension RedisError {
  /// Reads an error reply. Its first word is the code, by Redis' convention.
  init(reply text: String) {
    self.init(Self.code(of: text), "Redis answered: \(text)")
  }

  /// What first words say. `ERR` says too little.
  private static let codes: [String: Code] = [
    "WRONGPASS": .authenticationFailed, "NOAUTH": .authenticationFailed, "NOPERM": .noPermission, "DENIED": .noPermission,
    "-DENIED": .noPermission, "READONLY": .readOnly, "LOADING": .loading, "MASTERDOWN": .masterDown, "OOM": .outOfMemory,
    "NOSCRIPT": .noScript, "MOVED": .moved, "ASK": .moved, "CROSSSLOT": .moved, "CLUSTERDOWN": .clusterDown, "TRYAGAIN": .clusterDown,
    "BUSY": .busy, "MISCONF": .writesRefused, "NOREPLICAS": .writesRefused, "WRONGTYPE": .wrongType,
  ]

  private static func code(of text: String) -> Code {
    let word = String(text.prefix { $0 != " " })
    return word == "ERR" ? codeOfGeneral(text) : codes[word] ?? .rejected
  }

  private static func codeOfGeneral(_ text: String) -> Code {
    if text.hasPrefix("ERR max number of clients") { return .tooManyClients }
    // A script's user may not run one of its commands, or use one of its keys: the words before Redis 7.2, and since then.
    if text.contains("The user executing the script can't") || text.contains("ACL failure in script") { return .noPermission }
    // Servers before 6.0, and those without a password.
    if text.hasPrefix("ERR invalid password") || text.hasPrefix("ERR AUTH <password>") || text.hasPrefix("ERR Client sent AUTH") {
      return .authenticationFailed
    }
    // Redis 6.2 wraps what a command inside a script answered: "ERR Error running script (...): @user_script: 1: -OOM command ...".
    guard text.hasPrefix("ERR Error running script") else { return .rejected }
    let wrapped = text.split(separator: " ").first { $0.hasPrefix("-") && $0.dropFirst().first?.isUppercase == true }
    guard let wrapped, wrapped != "-ERR" else { return .rejected }
    return code(of: String(wrapped.dropFirst()))
  }
}

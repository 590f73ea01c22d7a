import Redis

/// Why a call has not done what it is for.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What a caller has to tell apart.
  public enum Code: Sendable {
    /// No answer has come, or none can come now; the call may have been executed.
    case unavailable
    /// Too many calls are in flight: nothing of the call was sent, and nothing that was done before is lost.
    case overloaded
    /// The server only reads now: nothing of the call was done, and nothing that was done before is lost.
    case writesRefused
    /// Redis does not have the bucket: what lay in it is lost, or was never there.
    case bucketLost
    /// The server answers, and does no such calls now or for this user: it refuses a command, or is busy, or reads its data set.
    case refused
    /// The server answers with an error that is not known here: `SelfCheck` tells whether that lies in the server, or in what it has under the
    /// call's keys.
    case unexplained
    /// The fault lies in the call, or in what Redis has under its keys: no waiting mends it.
    case faulty
  }

  /// The kind of failure.
  public let code: Code
  /// What happened and what to do; never a password.
  public let message: String

  /// An error from its parts.
  public init(_ code: Code, _ message: String) { (self.code, self.message) = (code, message) }

  init(_ error: RedisError) {
    let code: Code =
      switch error.code {
      case .wrongType: .faulty
      case .rejected: .unexplained
      case .full: .overloaded
      case .outOfMemory, .writesRefused: .writesRefused
      case .noPermission, .authenticationFailed, .loading, .masterDown, .noScript, .moved, .clusterDown, .busy: .refused
      case .badAddress, .notInThisVersion, .unresolved, .unreachable, .notConnected, .connectionLost, .timedOut, .closed,
        .protocolViolation,
        .readOnly, .tooManyClients, .unsuitableServer, .serverMissing, .serverFailed:
        .unavailable
      }
    self.init(code, error.message)
  }

  static let bucketLost = StoreError(.bucketLost, "Redis has lost what it had; 'carillon rebuild' restores it from Kafka")

  /// The same, with the key whose value is at fault.
  public func about(_ key: String) -> StoreError { code == .faulty ? StoreError(code, "\(key): \(message)") : self }

  /// Whether the same may succeed later without a change by the user.
  public var isRetriable: Bool { code != .faulty }

  /// Whether the server's answer says something of the server that a check of every script has to explain.
  public var needsCheck: Bool { code == .refused || code == .unexplained }

  /// The message.
  public var description: String { message }
}

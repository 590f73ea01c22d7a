public import Notifications
import Redis

/// Why a call to Redis failed.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The failures that callers treat differently.
  public enum Code: Sendable, Equatable {
    /// No answer came, or none can come now. The server may have executed the call.
    case unavailable
    /// Too many calls are in flight. The call was not sent, and no earlier data is lost.
    case overloaded
    /// The server is read-only now. It did not execute the call, and no earlier data is lost.
    case writesRefused
    /// Redis does not have the bucket: its data is lost, or never existed.
    case bucketLost
    /// The server refuses such calls now or for this user, is busy, or is loading its data set.
    case refused
    /// The server answers with an unknown error. `SelfCheck` finds out whether the server or the data under the call's keys causes it.
    case unexplained
    /// The call itself or the data under its keys is wrong: retrying cannot help.
    case faulty
    /// A newer program has written the data under the call's keys, or the record. It stays as it is, and the caller waits.
    case newer(Layout)
  }

  /// The kind of failure.
  public let code: Code
  /// What happened and what to do; never a password.
  public let message: String

  /// An error of its parts.
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
        .protocolViolation, .tlsFailed, .readOnly, .tooManyClients, .unsuitableServer, .serverMissing, .serverFailed:
        .unavailable
      }
    self.init(code, error.message)
  }

  /// The error about data of a version that a newer program has written.
  public static func newer(_ layout: Layout, _ version: some BinaryInteger, at place: String) -> StoreError {
    StoreError(.newer(layout), "\(place): \(layout.newer(version))")
  }

  static let bucketLost = StoreError(.bucketLost, "Redis has lost what it had; 'carillon rebuild' restores it from Kafka")

  /// The same error, with the key whose value is wrong.
  public func about(_ key: String) -> StoreError { code == .faulty ? StoreError(code, "\(key): \(message)") : self }

  /// Whether the answer concerns the server itself, so a check of all scripts has to explain it.
  var needsCheck: Bool { code == .refused || code == .unexplained }

  /// The message.
  public var description: String { message }
}

extension Result where Failure == StoreError {
  /// The value. Where there is none, nil, and the callback gets the error.
  public func value<Other>(orFail then: (Result<Other, StoreError>) -> Void) -> Success? {
    switch self {
    case .success(let value): return value
    case .failure(let error):
      then(.failure(error))
      return nil
    }
  }
}

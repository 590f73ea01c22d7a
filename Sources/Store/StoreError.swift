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
      case .wrongType, .rejected: .faulty
      case .full: .overloaded
      default: error.refusesWrites ? .writesRefused : .unavailable
      }
    self.init(code, error.message)
  }

  static let bucketLost = StoreError(.bucketLost, "Redis has lost what it had; 'carillon rebuild' restores it from Kafka")

  /// Whether the same may succeed later without a change by the user.
  public var isRetriable: Bool { code != .faulty }

  /// The message.
  public var description: String { message }
}

import CUV

/// Why an operation of the loop failed.
public struct EventLoopError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The failures that callers distinguish.
  public enum Code: Sendable, Hashable {
    /// Another socket listens on the address.
    case addressInUse
    /// The address does not belong to this machine, or is invalid.
    case addressNotAvailable
    /// Nothing listens at the peer's address.
    case connectionRefused
    /// The peer cut the connection.
    case connectionReset
    /// The name has no address.
    case hostNotFound
    /// The deadline passed first.
    case timedOut
    /// The file or program does not exist.
    case notFound
    /// The operating system does not allow it.
    case permissionDenied
    /// A limit of the process or the system was reached: descriptors, memory, buffers.
    case exhausted
    /// The loop or the handle was closed before.
    case closed
    /// Anything else; the message has the system's words.
    case other
  }

  /// The kind of failure.
  public var code: Code
  /// The operation with its object: `listen 127.0.0.1:8080`.
  public var operation: String
  /// The operating system's words.
  public var message: String

  /// An error of its parts.
  public init(code: Code, operation: String, message: String) {
    self.code = code
    self.operation = operation
    self.message = message
  }

  /// Whether the same operation may succeed later without a change by the user.
  public var isRetriable: Bool {
    switch code {
    case .connectionRefused, .connectionReset, .hostNotFound, .timedOut, .exhausted: true
    case .addressInUse, .addressNotAvailable, .notFound, .permissionDenied, .closed, .other: false
    }
  }

  /// The operation and the reason in one line.
  public var description: String { "\(operation): \(message)" }

  /// An error from libuv's negative result.
  init(_ result: Int32, _ operation: String) {
    self.init(code: Self.code(of: result), operation: operation, message: String(cString: uv_strerror(result)))
  }

  private static func code(of result: Int32) -> Code {
    switch uv_errno_t(rawValue: result) {
    case UV_EADDRINUSE: .addressInUse
    case UV_EADDRNOTAVAIL, UV_EINVAL, UV_EAFNOSUPPORT: .addressNotAvailable
    case UV_ECONNREFUSED: .connectionRefused
    case UV_ECONNRESET, UV_EPIPE, UV_ECONNABORTED, UV_EOF: .connectionReset
    case UV_EAI_NONAME, UV_EAI_NODATA, UV_EAI_AGAIN, UV_EAI_FAIL: .hostNotFound
    case UV_ETIMEDOUT: .timedOut
    case UV_ENOENT: .notFound
    case UV_EACCES, UV_EPERM: .permissionDenied
    case UV_EMFILE, UV_ENFILE, UV_ENOMEM, UV_ENOBUFS: .exhausted
    case UV_ECANCELED: .closed
    default: .other
    }
  }
}

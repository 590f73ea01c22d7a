/// Why a device cannot do what was asked.
public struct DeviceError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The mistakes that can be made, and what can fail.
  public enum Code: String, Sendable {
    /// The configuration cannot be used as it stands.
    case configuration
    /// The device was not started, or was closed.
    case notRunning
    /// No notification of this identifier is in the list.
    case noSuchNotification
    /// The notification has no attachments.
    case noAttachments
    /// There is no connection at the moment.
    case notConnected
    /// The notification has no category that the device has registered.
    case noCategory
    /// The category has no such action.
    case noSuchAction
    /// The action takes text and there is none, or takes none and there is some, or it is too long.
    case wrongText
    /// Too many responses or requests wait for the cluster's answer.
    case tooManyWaiting
    /// Another process has the state file.
    case stateInUse
    /// The state file cannot be read or written, or is of another device.
    case stateUnusable
  }

  /// What is wrong.
  public let code: Code
  /// What is wrong and what to do.
  public let description: String

  /// An error of its parts.
  init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }

  /// Whether the same call may succeed later without a change.
  public var isRetriable: Bool { [.tooManyWaiting, .stateInUse, .notConnected].contains(code) }
}

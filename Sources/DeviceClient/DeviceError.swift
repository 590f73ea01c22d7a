/// Why a device cannot do an action.
public struct DeviceError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of mistakes and failures.
  public enum Code: String, Sendable {
    /// The configuration cannot be used.
    case configuration
    /// The device was not started, or was closed.
    case notRunning
    /// No notification of this identifier is in the list.
    case noSuchNotification
    /// The notification has no attachments.
    case noAttachments
    /// The attachment is not in the store, or cannot be stored.
    case attachment
    /// There is no connection at the moment.
    case notConnected
    /// The cluster does not take the device.
    case refused
    /// The application has no settings of its own.
    case noSettings
    /// The notification has no category that the device has registered.
    case noCategory
    /// The category has no such action.
    case noSuchAction
    /// The text is missing, not allowed, or too long.
    case wrongText
    /// The screen is locked, and the person hides previews behind it.
    case locked
    /// No notification is expanded.
    case noPanel
    /// The panel of the expanded notification has no such control.
    case noSuchControl
    /// The content extension has not answered for the last response.
    case panelBusy
    /// Too many responses or requests wait for the cluster's answer, or too much waits for the disk or for the device.
    case tooManyWaiting
    /// Only the process of the device can do it, and this is another one.
    case needsDevice
    /// A local request, or what the program registers, breaks a rule.
    case badRequest
    /// Another process uses the state file, or keeps it locked.
    case stateInUse
    /// The state file cannot grow: the disk is full, or the file has reached its limit.
    case stateFull
    /// The state file or its folder cannot be written.
    case stateReadOnly
    /// A newer version of the program has written the state file.
    case stateNewer
    /// The state file is damaged, or is no database.
    case stateDamaged
    /// The state file is of another device or program, or cannot be used for another reason.
    case stateUnusable
  }

  /// The kind of error.
  public let code: Code
  /// The error, and what to do.
  public let description: String

  /// Makes an error from its parts.
  init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }

  /// Whether the same call may succeed later without a change.
  public var isRetriable: Bool { [.tooManyWaiting, .panelBusy, .locked, .stateInUse, .stateFull, .notConnected].contains(code) }
}

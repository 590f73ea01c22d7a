import Synchronization

/// A service extension that may take long, because it asks a server or computes. It resembles Apple's `UNNotificationServiceExtension`,
/// with Swift's concurrency instead of a content handler.
///
/// Each lane makes one of its own, which handles many notifications at the same time. Its tasks prefer the lane's loop, so they must await
/// and never block.
public protocol ServiceExtension: Sendable {
  /// Changes a notification's content. Called once for each, and again only if a worker's end has lost the result.
  ///
  /// When its budget has ended its task is cancelled, and a later result is not used.
  /// - Parameter bestAttempt: shown if the call does not finish; it begins as the given content.
  /// - Returns: the content to show, or to give to the next extension.
  /// - Throws: if it has no content: then the best attempt is used.
  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent

  /// Called shortly before the budget ends, as a last chance to set a content.
  ///
  /// - Returns: the content to show, which ends the call; nil (the default) to continue until the budget has ended.
  func serviceExtensionTimeWillExpire(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async -> MutableContent?

  /// Releases its resources. No more calls follow.
  func close() async
}

extension ServiceExtension {
  /// Sets no last content.
  public func serviceExtensionTimeWillExpire(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async -> MutableContent? { nil }

  /// Has no resources.
  public func close() async {}
}

/// The content that an extension would show if its time ended now. Any task may change it.
public final class BestAttempt: Sendable {
  private let value: Mutex<MutableContent>
  /// Called with each change, in their order.
  private let whenChanged: (@Sendable (MutableContent) -> Void)?

  /// Begins with this content.
  public convenience init(_ content: MutableContent) { self.init(content, whenChanged: nil) }

  init(_ content: MutableContent, whenChanged: (@Sendable (MutableContent) -> Void)?) {
    value = Mutex(content)
    self.whenChanged = whenChanged
  }

  /// The content.
  public var content: MutableContent {
    get { value.withLock { $0 } }
    set { update { $0 = newValue } }
  }

  /// Changes the content exclusively.
  public func update(_ change: (inout MutableContent) -> Void) {
    value.withLock { content in
      change(&content)
      whenChanged?(content)
    }
  }
}

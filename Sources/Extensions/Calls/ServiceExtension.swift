import Synchronization

/// A service extension that may take its time: it asks somebody, or computes for long. It is what Apple's `UNNotificationServiceExtension`
/// is, with Swift's concurrency in the place of a content handler.
///
/// Each lane makes one of its own, and many notifications pass it at the same time. Its tasks prefer the lane's loop, so it must not block:
/// what it waits for it awaits.
public protocol ServiceExtension: Sendable {
  /// Changes a notification's content; called once for each, and again only where what it has returned was lost with its worker.
  ///
  /// When its budget has ended its task is cancelled, and what it returns then is not used.
  /// - Parameter bestAttempt: what is shown if it does not come to its end; it begins as the content that the extension is given.
  /// - Returns: the content that is shown, or that the next extension gets.
  /// - Throws: when it has none: then the best attempt is used.
  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent

  /// Its budget is about to end: a last chance to say what is shown.
  ///
  /// - Returns: what is shown, with which the call ends; nil (unless it says otherwise) where it goes on until its budget has ended.
  func serviceExtensionTimeWillExpire(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async -> MutableContent?

  /// Nothing more is asked of it: it lets go of what it holds.
  func close() async
}

extension ServiceExtension {
  /// It has no last word.
  public func serviceExtensionTimeWillExpire(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async -> MutableContent? { nil }

  /// It holds nothing.
  public func close() async {}
}

/// What an extension would have shown if its time were up now: it may be changed from any task.
public final class BestAttempt: Sendable {
  private let value: Mutex<MutableContent>
  /// Told of each change, in their order.
  private let whenChanged: (@Sendable (MutableContent) -> Void)?

  /// Begins as this content.
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

  /// Changes the content, and nobody else does meanwhile.
  public func update(_ change: (inout MutableContent) -> Void) {
    value.withLock { content in
      change(&content)
      whenChanged?(content)
    }
  }
}

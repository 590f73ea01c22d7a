/// A service extension that computes, and needs nothing that it would have to wait for: it is done within microseconds, on the lane.
public protocol ImmediateExtension: Sendable {
  /// Changes a notification's content.
  ///
  /// - Returns: why it has failed, nil when it has not. After a failure the content is what the extension wants to have shown instead: most
  ///   leave it as it was.
  func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure?
}

/// How the call of an extension has ended.
public enum CallEnding: Sendable {
  /// With this content.
  case finished(MutableContent)
  /// It has failed; this is what it had by then.
  case failed(ExtensionFailure, bestAttempt: MutableContent)
  /// Its time was up; this is what it had by then.
  case expired(bestAttempt: MutableContent)
  /// It was not made, for this reason.
  case refused(ExtensionFailure)
}

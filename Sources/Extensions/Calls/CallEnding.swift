/// How the call of an extension has ended.
public enum CallEnding: Sendable {
  /// With this content.
  case finished(MutableContent)
  /// It has failed, with this best attempt.
  case failed(ExtensionFailure, bestAttempt: MutableContent)
  /// Its time has ended, with this best attempt.
  case expired(bestAttempt: MutableContent)
  /// It was not called, for this reason.
  case refused(ExtensionFailure)
}

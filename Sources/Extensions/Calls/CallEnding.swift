/// How the call of an extension has ended. It is thrown where the call does not begin.
public enum CallEnding: Error {
  /// With this content.
  case finished(MutableContent)
  /// It has failed, with this best attempt.
  case failed(ExtensionFailure, bestAttempt: MutableContent)
  /// Its time has ended, with this best attempt.
  case expired(bestAttempt: MutableContent)
  /// It was not called, for this reason.
  case refused(ExtensionFailure)
}

import EventLoop
import JSON

/// The call of a child for a notification.
///
/// - Note: `@unchecked Sendable` because only the loop changes it: cancellation, which comes from any thread, goes there first.
final class ChildCall: @unchecked Sendable {
  let number: Int64
  let request: ExtensionRequest
  let bestAttempt: BestAttempt
  /// The given content.
  let given: MutableContent
  /// Whether it was sent to the program.
  var isAsked = false
  /// Whether it was warned that its time will expire.
  var isWarned = false
  /// The number of its best attempts.
  var attempts = 0
  private weak var program: ChildProgram?
  private var outcome: Result<JSONValue, ExtensionFailure>?
  private var continuation: CheckedContinuation<Result<JSONValue, ExtensionFailure>, Never>?

  init(_ number: Int64, _ request: ExtensionRequest, _ bestAttempt: BestAttempt, of program: ChildProgram) {
    (self.number, self.request, self.bestAttempt, self.program) = (number, request, bestAttempt, program)
    given = bestAttempt.content
  }

  /// Ends the call.
  func finish(_ result: Result<JSONValue, ExtensionFailure>) {
    guard outcome == nil else { return }
    outcome = result
    continuation?.resume(returning: result)
    continuation = nil
  }

  /// The result. Cancelling the task gives up the call.
  func answer(on loop: EventLoop, isolation: isolated (any Actor)? = #isolation) async throws(ExtensionFailure) -> JSONValue {
    let result = await withTaskCancellationHandler {
      _ = isolation
      return await withCheckedContinuation { (continuation: CheckedContinuation<Result<JSONValue, ExtensionFailure>, Never>) in
        if let outcome { continuation.resume(returning: outcome) } else { self.continuation = continuation }
      }
    } onCancel: {
      loop.execute { self.program?.abandon(self) }
    }
    return try result.get()
  }
}

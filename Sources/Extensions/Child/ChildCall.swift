import EventLoop
import JSON

/// A notification that a child was asked about.
///
/// - Note: `@unchecked Sendable` because what changes in it is touched on the loop alone: cancellation, which comes from any thread, goes
///   there first.
final class ChildCall: @unchecked Sendable {
  let number: Int64
  let request: ExtensionRequest
  let bestAttempt: BestAttempt
  /// The content that it was given.
  let given: MutableContent
  /// It was sent to the program.
  var isAsked = false
  /// It was told that its time will expire.
  var isWarned = false
  /// How often it has said what is to be shown if it does not come to its end.
  var attempts = 0
  private weak var program: ChildProgram?
  private var outcome: Result<JSONValue, ExtensionFailure>?
  private var continuation: CheckedContinuation<Result<JSONValue, ExtensionFailure>, Never>?

  init(_ number: Int64, _ request: ExtensionRequest, _ bestAttempt: BestAttempt, of program: ChildProgram) {
    (self.number, self.request, self.bestAttempt, self.program) = (number, request, bestAttempt, program)
    given = bestAttempt.content
  }

  /// It has come to its end.
  func finish(_ result: Result<JSONValue, ExtensionFailure>) {
    guard outcome == nil else { return }
    outcome = result
    continuation?.resume(returning: result)
    continuation = nil
  }

  /// What has come of it; when the task is cancelled it is given up.
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

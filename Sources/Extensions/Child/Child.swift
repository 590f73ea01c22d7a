import EventLoop
import JSON

/// The built-in extension `child`: asks a program that runs beside the worker. Each lane has its own.
actor Child: LoopActor, ServiceExtension {
  nonisolated let loop: EventLoop
  private let program: ChildProgram

  /// Call it on the loop.
  init(_ settings: ChildSettings, on loop: EventLoop) {
    self.loop = loop
    program = ChildProgram(settings, on: loop)
  }

  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    let given = bestAttempt.content
    let answer = try await program.answer(request, bestAttempt)
    return answer == .null ? given : try ExtensionMessage.content(answer, of: given)
  }

  /// The program may send a last content, which ends the call. Until then the call continues.
  func serviceExtensionTimeWillExpire(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async -> MutableContent? {
    program.warn(bestAttempt)
    return nil
  }

  func close() async { await program.close() }
}

import Foundation
import TestSupport
import Testing

extension RunningCommand {
  /// Waits until standard output has a text so many times; ends the test when the process ends before, or it never comes.
  func untilOutput(contains text: String, count: Int = 1, _ location: SourceLocation = #_sourceLocation) async throws {
    func isThere() -> Bool { outputSoFar.components(separatedBy: text).count > count }
    await eventually("\(count) times '\(text)' on standard output: \(outputSoFar)\(errorsSoFar)", location) { hasEnded || isThere() }
    guard isThere() else { throw ClusterFailure("no \(count) times '\(text)': \(outputSoFar)\(errorsSoFar)") }
  }
}

extension CarillonCommand {
  /// Runs the program again and again until its answer is as wanted; ends the test when it never is.
  func answer(
    _ arguments: [String], _ what: String, _ location: SourceLocation = #_sourceLocation, until isWanted: (Result) throws -> Bool
  ) async throws -> Result {
    var result: Result?
    let holds = await eventually("\(what): \(result?.output ?? "")\(result?.errors ?? "")", location) {
      let latest = try await run(arguments)
      result = latest
      return try isWanted(latest)
    }
    guard holds, let result else { throw ClusterFailure("never: \(what)") }
    return result
  }
}

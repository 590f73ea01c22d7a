import Foundation
import Synchronization
public import Testing

/// Whether the tests run in the complete form: `TESTS_ALL` is 1.
public let isComplete = ProcessInfo.processInfo.environment["TESTS_ALL"] == "1"

/// A test of the complete form alone, `Deploy/test --all`. One that is about time runs once more when it fails.
public struct CompleteFormTrait: TestTrait, SuiteTrait, TestScoping {
  fileprivate let condition: ConditionTrait
  fileprivate let isAboutTime: Bool

  /// A suite's trait holds for each of its tests.
  public var isRecursive: Bool { true }

  /// Skips the test in the short form.
  public func prepare(for test: Test) async throws { try await condition.prepare(for: test) }

  /// Runs the test; the issues of a first run that is about time count as known.
  @concurrent public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    guard isAboutTime, testCase != nil else { return try await function() }
    let hasFailed = Mutex(false)
    try await withKnownIssue("it is about time, and runs once more", isIntermittent: true) {
      try await function()
    } matching: { _ in
      hasFailed.withLock { $0 = true }
      return true
    }
    guard hasFailed.withLock({ $0 }) else { return }
    forgetHang(of: test)
    try await function()
  }
}

extension Trait where Self == CompleteFormTrait {
  /// A test of the complete form alone: the short form shows its guarantee elsewhere, or it is about time.
  ///
  /// - Parameter reason: why the short form leaves it out, as a short clause. One with "about time" makes the test run once more when it
  ///   fails.
  public static func onlyInAll(_ reason: String) -> CompleteFormTrait {
    CompleteFormTrait(
      condition: .enabled(if: isComplete, "only with Deploy/test --all: \(reason)"), isAboutTime: reason.contains("about time"))
  }
}

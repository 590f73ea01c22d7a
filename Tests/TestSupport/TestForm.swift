import Foundation
public import Testing

extension Trait where Self == ConditionTrait {
  /// A test of the complete form alone, `Deploy/test --all`: the short form shows its guarantee elsewhere, or it is about time.
  ///
  /// - Parameter reason: why the short form leaves it out, as a short clause.
  public static func onlyInAll(_ reason: String) -> ConditionTrait {
    .enabled(if: isComplete, "only with Deploy/test --all: \(reason)")
  }
}

/// Whether the tests run in the complete form: `CARILLON_TEST_ALL` is set.
public let isComplete = ProcessInfo.processInfo.environment["CARILLON_TEST_ALL"] != nil

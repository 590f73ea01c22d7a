import Foundation
import JSON
import Notifications
import TestSupport
import Testing

/// The rulebook of Tests/Conformance: what a device in any language does with a frame.
@Suite struct ConformanceTests {
  @Test(arguments: ConformanceCases.files)
  func `the library does what the cases say`(file: String) throws {
    let cases = try ConformanceCases.cases(file)
    let differences = try ConformanceCases.differences(cases)
    #expect(!cases.isEmpty && differences.isEmpty, "\(differences.count) differences:\n\(differences.prefix(20).joined(separator: "\n"))")
  }
}

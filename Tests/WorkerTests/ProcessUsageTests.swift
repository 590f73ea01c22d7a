import Foundation
import Testing

@testable import Worker

@Suite(.serialized) struct ProcessUsageTests {
  @Test func aNameThatLooksLikeFieldsMisleadsNobody() {
    let rest = "S 1 2 3 4 5 6 7 8 9 10 200 300 16 17 18 19 20 21 22 4096 7 25"
    let usage = ProcessUsage.reading(of: "42 (a) 9 (b c) \(rest)\n")
    #expect(usage.processorSeconds == 500 / Double(sysconf(Int32(_SC_CLK_TCK))))
    #expect(usage.virtualBytes == 4096 && usage.residentBytes == 7 * Double(sysconf(Int32(_SC_PAGESIZE))))
    #expect(ProcessUsage.reading(of: "42 (a) S 1").residentBytes.isNaN)
  }

  @Test func whatTheProcessUsesIsShown() {
    let usage = ProcessUsage.now()
    #expect(usage.residentBytes > Double(1 << 20) && usage.virtualBytes > usage.residentBytes && usage.processorSeconds >= 0)
    let before = ProcessUsage.openDescriptors
    // Others open and close some at the same time, and now and then many.
    let isCounted = (0..<20).contains { _ in
      let before = ProcessUsage.openDescriptors
      let held = (0..<200).map { _ in FileHandle(forReadingAtPath: "/dev/null") }
      return withExtendedLifetime(held) { (150.0...250.0).contains(ProcessUsage.openDescriptors - before) }
    }
    #expect(isCounted)
    #expect(ProcessUsage.maximumDescriptors > before)
  }
}

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
    // Others open and close some, too, but not as many.
    let before = ProcessUsage.openDescriptors
    let held = (0..<200).map { _ in FileHandle(forReadingAtPath: "/dev/null") }
    #expect((150.0...1_000.0).contains(ProcessUsage.openDescriptors - before) && held.count == 200)
    #expect(ProcessUsage.maximumDescriptors > before)
  }
}

import TestSupport
import Testing

@Suite struct AllocatorTests {
  /// What is linked in the wrong order is there and takes no call.
  @Test func theProgramAllocatesWithJemallocUnlessItIsBuiltWithout() async throws {
    let result = try await CarillonCommand.with { try await $0.run(["settings"], environment: ["MALLOC_CONF": "stats_interval:10000000"]) }
    #expect(result.status == 0)
    let allocated = result.errors.split(separator: "\n").last { $0.hasPrefix("Allocated: ") }
    let bytes = allocated?.dropFirst("Allocated: ".count).prefix { $0.isNumber }
    #if Jemalloc
      #expect(bytes.flatMap { Int($0) } ?? 0 > 100_000, "\(result.errors.prefix(500))")
    #else
      #expect(bytes == nil)
    #endif
  }
}

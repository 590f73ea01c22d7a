import Testing

@testable import Redis

@Suite struct CommandBufferTests {
  private static let kept = 1 << 20

  @Test func memoryThatIsUsedAgainAtOnceStaysAndWhatABurstTookGoesBackByAndBy() {
    var buffer = CommandBuffer(capacity: 64)
    func use(_ bytes: Int) -> Int {
      [UInt8](repeating: 7, count: bytes).withUnsafeBytes { buffer.append($0) }
      buffer.removeAll(keeping: Self.kept)
      return buffer.capacity
    }
    let burst = (0..<5).map { _ in use(8 * Self.kept) }
    #expect(burst == Array(repeating: 8 * Self.kept, count: 5))
    #expect(use(3 * Self.kept) == 8 * Self.kept, "more than a quarter was of use")
    #expect((0..<5).map { _ in use(100) } == [4, 2, 1, 1, 1].map { $0 * Self.kept })
    #expect(use(2 * Self.kept) == 2 * Self.kept)
  }

  @Test func whatIsAppendedBehindAReturnOfMemoryIsWhole() {
    var buffer = CommandBuffer(capacity: 64)
    let bytes = (0..<(5 << 20)).map { UInt8(truncatingIfNeeded: $0) }
    bytes.withUnsafeBytes { buffer.append($0) }
    buffer.removeAll(keeping: Self.kept)
    buffer.removeAll(keeping: Self.kept)
    bytes.withUnsafeBytes { buffer.append($0) }
    #expect(Array(buffer.bytes) == bytes)
  }
}

import Testing

@testable import Transform

@Suite struct HeldBackTests {
  @Test func `a transaction that stays open is told once, and its end`() {
    var held = HeldBack()
    #expect(held.observe(7, records: 0, at: 0) == nil)
    #expect(held.observe(7, records: 3, at: 1_000) == nil)
    #expect(held.observe(7, records: 4, at: 10_999) == nil)
    #expect(held.observe(7, records: 5, at: 11_000) == .found(offset: 7, records: 5))
    #expect(held.observe(7, records: 6, at: 60_000) == nil)
    #expect(held.observe(12, records: 0, at: 61_000) == .ended)
    #expect(held.observe(12, records: 0, at: 62_000) == nil)
  }

  @Test func `transactions that follow each other are none that stays open`() {
    var held = HeldBack()
    for second in Int64(0)..<60 { #expect(held.observe(second / 5, records: 1, at: second * 1_000) == nil) }
  }
}

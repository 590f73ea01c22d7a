import Testing
import Worker

@Suite struct SilentEndsTests {
  @Test func `only a partition that stands still short of its end gets a record, and the next one later`() {
    var silent = SilentEnds()
    func look(_ reached: [Int32: Int64], at second: Int64) -> [Int32] {
      silent.look(reached, ends: [0: 10, 1: 10, 2: 10], at: second * 1_000)
    }
    #expect(look([0: 10, 1: 4], at: 0) == [])
    #expect(look([0: 10, 1: 5], at: 5) == [])
    #expect(look([0: 10, 1: 5], at: 9) == [])
    #expect(look([0: 10, 1: 5], at: 10) == [2], "nothing was read of it")
    #expect(look([0: 10, 1: 5], at: 15) == [1], "it has come on after five seconds")
    #expect(look([0: 10, 1: 5], at: 60) == [], "a record was written to both")
    #expect(look([0: 10, 1: 5], at: 75) == [1, 2])
    #expect(look([0: 10, 1: 10, 2: 11], at: 200) == [])
  }
}

import Testing

@testable import Transform

/// Whose turn it is to look for the devices of a request.
@Suite struct VariantTurnsTests {
  /// A connection that is gone fails what is asked of it at once; thousands that wait must not do so inside each other.
  @Test func thoseThatEndAtOnceBeginOneAfterTheOther() {
    let turns = VariantPassages.Turns()
    var begun: [Int] = []
    for number in 0..<40 { turns.find { begun.append(number) } }
    #expect(begun == Array(0..<32))
    for number in 40..<100_000 {
      turns.find {
        begun.append(number)
        turns.found()
      }
    }
    for _ in 0..<8 { turns.found() }
    #expect(begun.count == 40)
    turns.found()
    #expect(begun == Array(0..<100_000), "in their order")
  }
}

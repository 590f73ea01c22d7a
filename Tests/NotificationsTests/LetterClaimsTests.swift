import Notifications
import Testing

/// Runs that claim the dead letters, in one partition that all of them read.
@Suite struct LetterClaimsTests {
  /// Which claims count, each at the offset of its number, and who has the letters then.
  private static func taken(_ all: [(kind: LetterClaim.Kind, run: String)]) -> (counts: [Bool], holder: String?) {
    var claims = LetterClaims()
    let counts = all.enumerated().map { offset, each in
      claims.take(LetterClaim(each.kind, run: each.run, by: "ada", at: 0), at: Int64(offset))
    }
    return (counts, claims.holder?.run)
  }

  @Test func `of runs that begin at once the first in the partition gets the letters`() {
    let begun = Self.taken([(.begins(after: nil), "a"), (.begins(after: nil), "b"), (.goesOn, "b")])
    #expect(begun.counts == [true, false, false] && begun.holder == "a")
    let next = Self.taken([
      (.begins(after: nil), "a"), (.ends, "a"), (.begins(after: 1), "c"), (.begins(after: 1), "b"),
    ])
    #expect(next.counts == [true, true, true, false] && next.holder == "c")
    #expect(Self.taken([(.begins(after: nil), "a"), (.ends, "a")]).holder == nil)
  }

  @Test func `a run that was taken for dead and was taken over has the letters no more`() {
    let taken = Self.taken([(.begins(after: nil), "a"), (.begins(after: 0), "b"), (.goesOn, "a"), (.ends, "a")])
    #expect(taken.counts == [true, true, false, false] && taken.holder == "b")
  }

  @Test func `a sign of life keeps the letters from a run that had given it up`() {
    let taken = Self.taken([(.begins(after: nil), "a"), (.goesOn, "a"), (.begins(after: 0), "b")])
    #expect(taken.counts == [true, true, false] && taken.holder == "a")
  }
}

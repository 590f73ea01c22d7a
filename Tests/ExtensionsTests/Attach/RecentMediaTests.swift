import Notifications
import Testing

@testable import Extensions

@Suite struct RecentMediaTests {
  private static func media(_ number: Int) -> RecentMedia.Outcome {
    let hash = MediaHash(String(repeating: String(number % 10), count: 64))!
    return .success(Media(hash: hash, type: .gif, size: number))
  }

  @Test func `URLs that only look alike are two files`() {
    var recent = RecentMedia(milliseconds: 1_000)
    recent.remember("http://a/é.gif", Self.media(1), at: 1)
    #expect(recent.outcome("http://a/e\u{301}.gif", at: 2) == nil && recent.outcome("http://a/é.gif", at: 2) == Self.media(1))
  }

  /// Random histories beside a list of all that came.
  @Test func whatCameIsKnownForItsTimeAndNoLonger() {
    for _ in 0..<200 {
      let lifetime = Int.random(in: 0...50)
      var recent = RecentMedia(maximum: 1_000, milliseconds: lifetime)
      var all: [Name: (outcome: RecentMedia.Outcome, at: UInt64)] = [:]
      var now: UInt64 = 1_000
      for number in 0..<100 {
        now += .random(in: 0...10)
        let url: Name = "\(Int.random(in: 0..<5))"
        switch Int.random(in: 0..<4) {
        case 0:
          let outcome = Bool.random() ? Self.media(number) : .failure(ExtensionFailure("\(number)"))
          recent.remember(url, outcome, at: now)
          all[url] = (outcome, now)
        case 1:
          recent.forget(url)
          all[url] = nil
        default:
          let known = all[url].flatMap { now < $0.at + UInt64(lifetime) ? $0.outcome : nil }
          #expect(recent.outcome(url, at: now) == known)
        }
      }
    }
  }

  @Test func aFailureIsTriedAgainSoonerThanAFileIsFetchedAgain() {
    var recent = RecentMedia(milliseconds: 60_000)
    recent.remember("a", .failure(ExtensionFailure("no")), at: 0)
    recent.remember("b", Self.media(1), at: 0)
    #expect(recent.outcome("a", at: RecentMedia.failureMilliseconds - 1) != nil)
    #expect(recent.outcome("a", at: RecentMedia.failureMilliseconds) == nil)
    #expect(recent.outcome("b", at: 59_999) == Self.media(1))
  }

  @Test func itIsBounded() {
    var recent = RecentMedia(maximum: 10, milliseconds: 100)
    for number in 0..<10 { recent.remember("\(number)", Self.media(number), at: number < 9 ? 0 : 50) }
    recent.remember("more", Self.media(1), at: 120)
    #expect(recent.outcome("9", at: 120) == Self.media(9), "those go first whose time is up")
    for number in 0..<30 { recent.remember("x\(number)", Self.media(number), at: 120) }
    #expect((0..<30).count { recent.outcome("x\($0)", at: 120) != nil } <= 10)
  }
}

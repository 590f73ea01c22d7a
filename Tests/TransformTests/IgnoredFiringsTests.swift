import Notifications
import TestSupport
import Testing

@testable import Transform

@Suite struct IgnoredFiringsTests {
  @Test func `a schedule whose firings stay ignored fires ever more rarely, until one takes effect`() throws {
    let key = try #require(ScheduleKey(application: "a.b", target: "user:ada", identifier: "x"))
    let place = DueTable.Place(partition: 1, bucket: 2)
    var (ignored, now, firings, slower) = (IgnoredFirings(), Int64(0), 0, 0)
    while now < 3_600_000 {
      let next = ignored.judged(isIgnored: true, isOwn: true, key, due: 0, at: place, now: now)
      firings += 1
      if next.isSlower { slower += 1 }
      #expect((IgnoredFirings.shortest...IgnoredFirings.longest).contains(next.until - now) && ignored.pause(of: key) == next.until)
      // A broker whose clock is two seconds behind delays no occurrence by more.
      if now < 2_000 { #expect(next.until - now == IgnoredFirings.shortest) }
      now = next.until
    }
    #expect(firings < 150 && slower == 1)
    ignored.took(key)
    #expect(ignored.pause(of: key) == nil)
    #expect(ignored.judged(isIgnored: true, isOwn: true, key, due: 0, at: place, now: 0).until == IgnoredFirings.shortest)
  }

  @Test func `a newer program's schedule pauses until it is looked at again`() throws {
    let key = try #require(ScheduleKey(application: "a.b", target: "user:ada", identifier: "x"))
    let place = DueTable.Place(partition: 1, bucket: 2)
    var ignored = IgnoredFirings()
    ignored.leaveToNewer(key, at: place, now: 1_000)
    #expect(ignored.pause(of: key) == 1_000 + IgnoredFirings.newer)
    ignored.keep([key], at: place)
    #expect(ignored.pause(of: key) != nil)
    ignored.keep([], at: place)
    #expect(ignored.pause(of: key) == nil)
  }

  @Test func `what another program writes makes no pause and ends none`() throws {
    let key = try #require(ScheduleKey(application: "a.b", target: "user:ada", identifier: "x"))
    var ignored = IgnoredFirings()
    func judged(isIgnored: Bool, isOwn: Bool, due: Int64 = 0) -> Int64 {
      ignored.judged(isIgnored: isIgnored, isOwn: isOwn, key, due: due, at: DueTable.Place(partition: 1, bucket: 2), now: 1_000).until
    }
    for _ in 0..<100 { #expect(judged(isIgnored: true, isOwn: false) == 0) }
    #expect(judged(isIgnored: true, isOwn: true) == 1_000 + IgnoredFirings.shortest)
    #expect(judged(isIgnored: true, isOwn: false) == 1_000 + IgnoredFirings.shortest)
    // One that took effect ends the pause, and so does one after which nothing is due yet.
    #expect(judged(isIgnored: false, isOwn: true) == 0 && ignored.pause(of: key) == nil)
    _ = judged(isIgnored: true, isOwn: true)
    #expect(judged(isIgnored: true, isOwn: true, due: 2_000) == 0 && ignored.pause(of: key) == nil)
  }

  @Test func `the pause of a schedule that is not due any more is forgotten`() throws {
    let keys = try ["x", "y"].map { try #require(ScheduleKey(application: "a.b", target: "user:ada", identifier: Name($0))) }
    var ignored = IgnoredFirings()
    let places = [DueTable.Place(partition: 1, bucket: 2), DueTable.Place(partition: 2, bucket: 2)]
    for (key, place) in zip(keys, places) { _ = ignored.judged(isIgnored: true, isOwn: true, key, due: 0, at: place, now: 0) }
    ignored.keep([], at: places[0])
    #expect(ignored.pause(of: keys[0]) == nil && ignored.pause(of: keys[1]) != nil)
    ignored.keep([1])
    #expect(ignored.pause(of: keys[1]) == nil)
  }
}

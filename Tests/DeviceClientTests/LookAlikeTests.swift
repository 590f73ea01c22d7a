import JSON
import Notifications
import TestSupport
import Testing

@testable import DeviceClient

/// Ids that Unicode considers equal are two: a cluster, a watch and a state file may send any bytes.
@Suite struct LookAlikeTests {
  private static let (composed, decomposed) = ("\u{e9}", "e\u{301}")
  private static let now: Int64 = 1_700_000_000_000

  @Test func `two revisions that look alike are two, and the newer one by its bytes is shown`() throws {
    var store = NotificationStore()
    _ = store.take(try notifyFrame(notify(1, id: "one", "a", revision: Self.decomposed)), now: Self.now)
    let second = store.take(try notifyFrame(notify(2, id: "two", "a", revision: Self.composed)), now: Self.now)
    guard case .updated = second else { return #expect(Bool(false), "\(second)") }
    #expect(store.take(try notifyFrame(notify(3, id: "three", "a", revision: Self.decomposed)), now: Self.now) == .dropped(.stale))
    #expect(store.remove(["b"], revision: Name(Self.decomposed), now: Self.now) == .removed([]))
    #expect(store.remove(["b"], revision: Name(Self.composed), now: Self.now) == .removed([]))
    #expect(store.removeAll(revision: Name(Self.decomposed), now: Self.now) == .removed([]))
    guard case .removed = store.removeAll(revision: Name(Self.composed), now: Self.now) else { return #expect(Bool(false)) }
    #expect(store.remove(["b"], revision: Name(Self.decomposed), now: Self.now) == .dropped(.stale))
    #expect(store.removeAll(revision: Name(Self.decomposed), now: Self.now) == .dropped(.stale))
  }

  @Test func `an answer settles the response with its bytes`() {
    var outbox = ResponseOutbox()
    for id in [Self.composed, Self.decomposed] {
      outbox.restore(ResponseFrame(response: id, receipt: "r", identifier: "a", action: "open"))
    }
    #expect(outbox.waiting.count == 2)
    #expect(outbox.settle(Name(Self.decomposed)).map { Name($0.response) } == Name(Self.decomposed))
    #expect(outbox.waiting.map { Name($0.response) } == [Name(Self.composed)])
  }

  @Test func `a claim that looks like the granted one is granted nothing`() throws {
    let showing = NotificationShowing(identifier: "a", id: "one", takenAt: 1)
    let frame = try notifyFrame(notify(1, id: "one", "a", revision: "1"))
    var phone = WatchLeases<Int>(milliseconds: 5_000)
    _ = phone.offer(showing, frame, 1, now: 0)
    #expect(phone.received(.claim(showing, claim: Name(Self.composed)), now: 1).count == 1)
    #expect(phone.received(.claim(showing, claim: Name(Self.composed)), now: 2).count == 1, "a repetition")
    #expect(phone.received(.claim(showing, claim: Name(Self.decomposed)), now: 3).isEmpty)
    var watch = WatchClaims()
    _ = watch.received(.offer(showing, frame, milliseconds: 5_000), now: 0, newID: Name(Self.composed)) { _ in false }
    let actions = watch.received(.grant(showing, claim: Name(Self.decomposed)), now: 1, newID: "c") { _ in false }
    #expect(actions == [.send(.never(showing))])
  }

  @Test func `a content extension's answer leaves a newer notification whose id looks like the former one's`() throws {
    let token = try #require(DeviceToken(DeviceUnderTest.token))
    let memory = DeviceMemory(
      DeviceConfiguration(
        url: "ws://h/", hello: Hello(device: token, application: "com.example.shop", authorization: Authorization(status: .authorized))),
      commit: nil)
    memory.take(try notifyFrame(notify(1, id: Self.composed, "a", revision: "1")), now: Self.now) { _, _ in }
    let former = try #require(memory.store.notification("a"))
    try memory.hold(ResponseFrame(response: "r", receipt: "x", identifier: "a", action: "like"), to: former, []) { _ in }
    memory.take(try notifyFrame(notify(2, id: Self.decomposed, "a", revision: "2")), now: Self.now) { _, _ in }
    memory.end("r", .dismissed) { _ in }
    #expect(memory.store.delivered.map { Name($0.id) } == [Name(Self.decomposed)])
  }
}

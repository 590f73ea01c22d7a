import JSON
import Notifications
import TestSupport
import Testing

@testable import DeviceClient

/// What decides where a notification is shown, phone or watch.
@Suite struct WatchLeaseTests {
  private static let lease: UInt64 = 5_000

  private static func showing(_ number: Int) -> NotificationShowing {
    NotificationShowing(identifier: Name("n\(number)"), id: Name("id-\(number)"), takenAt: Int64(number))
  }

  private static func frame(_ number: Int) throws -> NotifyFrame {
    try notifyFrame(notify(0, id: "id-\(number)", "n\(number)", revision: "1"))
  }

  /// The messages, and what was shown and told.
  private static func story(_ actions: [WatchLeases<Int>.Action]?) -> [String] {
    (actions ?? []).map { action in
      switch action {
      case .send(let message): "\(message)".prefix { $0 != "(" }.description
      case .show(let number): "show \(number)"
      case .forwarded(let number): "forwarded \(number)"
      }
    }
  }

  // MARK: One notification

  @Test func `the watch shows a claimed notification, and the phone does not`() throws {
    var phone = WatchLeases<Int>(milliseconds: Self.lease)
    var watch = WatchClaims()
    let showing = Self.showing(1)
    #expect(Self.story(phone.offer(showing, try Self.frame(1), 1, now: 0)) == ["offer"])
    let offer = WatchMessage.offer(showing, try Self.frame(1), milliseconds: Self.lease)
    #expect(watch.received(offer, now: 70, newID: "c") { _ in false } == [.send(.claim(showing, claim: "c"))])
    // A repetition is the same claim, from the same moment on.
    #expect(watch.received(offer, now: 4_000, newID: "d") { _ in false } == [.send(.claim(showing, claim: "c"))])
    #expect(Self.story(phone.received(.claim(showing, claim: "c"), now: 20)) == ["grant"])
    #expect(watch.received(.grant(showing, claim: "c"), now: 5_069, newID: "d") { _ in false } == [.show(showing, try Self.frame(1))])
    // Until it is stored nothing is said of it.
    #expect(watch.received(.ask(showing), now: 5_069, newID: "d") { _ in false } == [])
    watch.stored(showing)
    #expect(watch.received(.ask(showing), now: 5_069, newID: "d") { _ in true } == [])
    #expect(watch.ended(showing, isShown: true) == .shown(showing) && watch.ended(showing, isShown: true) == nil)
    #expect(Self.story(phone.received(.shown(showing), now: 30)) == ["forwarded 1"])
    #expect(phone.deadline == nil)
    #expect(Self.story(phone.keep { _ in false }) == ["remove"] && phone.isEmpty)
  }

  @Test func `what the watch does not claim in time is shown on the phone, and a later claim gets nothing`() throws {
    var phone = WatchLeases<Int>(milliseconds: Self.lease)
    _ = phone.offer(Self.showing(1), try Self.frame(1), 1, now: 0)
    #expect(Self.story(phone.takeTime(1_000)) == ["offer"] && Self.story(phone.takeTime(1_999)) == [])
    #expect(Self.story(phone.takeTime(4_999)) == ["offer"])
    #expect(Self.story(phone.received(.claim(Self.showing(1), claim: "c"), now: 5_000)) == ["gone", "show 1", "gone"])
  }

  @Test func `a watch whose lease is over says that it never shows it, and the phone does`() throws {
    var phone = WatchLeases<Int>(milliseconds: Self.lease)
    var watch = WatchClaims()
    let showing = Self.showing(1)
    _ = phone.offer(showing, try Self.frame(1), 1, now: 0)
    _ = watch.received(.offer(showing, try Self.frame(1), milliseconds: Self.lease), now: 100, newID: "c") { _ in false }
    _ = phone.received(.claim(showing, claim: "c"), now: 50)
    #expect(watch.received(.grant(showing, claim: "c"), now: 5_100, newID: "d") { _ in false } == [.send(.never(showing))])
    // The answer is lost: the phone asks when its own lease is over, and shows nothing before the answer.
    #expect(Self.story(phone.takeTime(5_050)) == ["ask"])
    #expect(Self.story(phone.takeTime(6_050)) == ["ask"] && Self.story(phone.takeTime(7_000)) == [])
    #expect(watch.received(.ask(showing), now: 5_200, newID: "d") { _ in false } == [.send(.never(showing))])
    #expect(Self.story(phone.received(.never(showing), now: 8_000)) == ["show 1"])
    #expect(Self.story(phone.received(.never(showing), now: 8_000)) == [] && phone.isEmpty)
  }

  @Test func `the unlocking shows what is not claimed, and leaves the watch what it has`() throws {
    var phone = WatchLeases<Int>(milliseconds: Self.lease)
    for number in 1...2 { _ = phone.offer(Self.showing(number), try Self.frame(number), number, now: 0) }
    _ = phone.received(.claim(Self.showing(2), claim: "c"), now: 1)
    #expect(Self.story(phone.recall()) == ["gone", "show 1"])
    #expect(Self.story(phone.received(.shown(Self.showing(2)), now: 2)) == ["forwarded 2"])
  }

  @Test func `more than the watch may have at a time is shown on the phone`() throws {
    var phone = WatchLeases<Int>(milliseconds: Self.lease)
    for number in 0..<WatchLeases<Int>.maximum { #expect(phone.offer(Self.showing(number), try Self.frame(number), number, now: 0) != nil) }
    #expect(phone.offer(Self.showing(64), try Self.frame(64), 64, now: 0) == nil)
  }

  @Test func `a watch claims no more than it may while its disk does not write`() throws {
    var watch = WatchClaims()
    var claimed = 0
    for number in 0..<1_000 {
      let offer = WatchMessage.offer(Self.showing(number), try Self.frame(number), milliseconds: Self.lease)
      guard case .send(.claim(_, let claim))? = watch.received(offer, now: 0, newID: "c", isShown: { _ in false }).first else { continue }
      claimed += 1
      let grant = WatchMessage.grant(Self.showing(number), claim: claim)
      #expect(watch.received(grant, now: 0, newID: "d") { _ in false }.count == 1)
    }
    #expect(claimed == WatchClaims.maximum)
    _ = watch.ended(Self.showing(0), isShown: true)
    let offer = WatchMessage.offer(Self.showing(1_000), try Self.frame(1_000), milliseconds: Self.lease)
    #expect(watch.received(offer, now: 0, newID: "c") { _ in false }.count == 1)
  }

  @Test func `what is stored on the watch has one answer, whether it is shown, expires before, or leaves the list`() throws {
    func granted(_ watch: inout WatchClaims, _ number: Int) throws -> NotificationShowing {
      let (showing, frame) = (Self.showing(number), try Self.frame(number))
      _ = watch.received(.offer(showing, frame, milliseconds: Self.lease), now: 0, newID: "c") { _ in false }
      #expect(watch.received(.grant(showing, claim: "c"), now: 1, newID: "d") { _ in false } == [.show(showing, frame)])
      return showing
    }
    var watch = WatchClaims()
    let expired = try granted(&watch, 1)
    watch.stored(expired)
    #expect(watch.ended(expired, isShown: false) == .never(expired) && watch.ended(expired, isShown: false) == nil)
    // The store has it, and the phone asks again.
    #expect(watch.received(.ask(expired), now: 2, newID: "d") { _ in true } == [.send(.never(expired))])
    let gone = try granted(&watch, 2)
    #expect(watch.keep { _ in false }.isEmpty, "it is not stored yet")
    watch.stored(gone)
    #expect(watch.keep { _ in true }.isEmpty && watch.keep { _ in false } == [.shown(gone)] && watch.keep { _ in false }.isEmpty)
    #expect(watch.ended(gone, isShown: true) == nil)
  }

  @Test func `a message is read as it was written, and other bytes are none`() throws {
    let (showing, frame) = (
      NotificationShowing(identifier: "e\u{301}\n\"", id: "\u{0}", takenAt: .max),
      try notifyFrame(notify(0, id: "a", revision: "r", aps: ["alert": "a\nb"]))
    )
    let response = ResponseFrame(response: "r", receipt: "x", identifier: "e\u{301}", action: "like", userText: "\u{1F600}\n", at: 5)
    let messages: [WatchMessage] = [
      .offer(showing, frame, milliseconds: 7), .grant(showing, claim: "c"), .ask(showing), .gone(showing), .remove(showing),
      .taken(response: "r"), .claim(showing, claim: "c"), .shown(showing), .never(showing), .response(response, showing, frame),
      .hours(nil), .hours(QuietHours(from: 1, to: 1_439, days: 5, timeZone: "Europe/Rome")), .cleared(showing), .askHours,
    ]
    for message in messages {
      #expect(WatchMessage(message.bytes) == message)
      for count in 0..<message.bytes.count { #expect(WatchMessage(Array(message.bytes.prefix(count))) == nil) }
    }
    let long = String(decoding: WatchMessage.offer(showing, frame, milliseconds: 7).bytes, as: UTF8.self)
    #expect(WatchMessage(Array(long.replacing("\"milliseconds\":7", with: "\"milliseconds\":-1").utf8)) == nil)
    #expect(WatchMessage(Array(long.replacing("\"milliseconds\":7", with: "\"milliseconds\":9223372036854775807").utf8)) == nil)
  }

  // MARK: Histories

  /// A phone and a watch with a channel that loses, repeats and reorders. Their clocks begin and run differently, and both are killed.
  @Test(arguments: 0..<(isComplete ? 400 : 80)) func `in every history a notification is shown on one of them, once, and none is lost`(
    _ seed: UInt64
  ) throws {
    var random = SeededRandom(seed: seed)
    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
    var (phone, watch) = (WatchLeases<Int>(milliseconds: Self.lease), WatchClaims())
    var (toWatch, toPhone): ([WatchMessage], [WatchMessage]) = ([], [])
    // Milliseconds of each clock; the watch's began another time.
    var (phoneTime, watchTime) = (0.0, Double.random(in: 0...1e9, using: &random))
    let speed = Double.random(in: 0.5...2, using: &random)
    var shownOnPhone: [Int: Int] = [:]
    var (shownOnWatch, durable, storing): ([NotificationShowing: Int], Set<NotificationShowing>, [NotificationShowing]) = ([:], [], [])
    /// Offered in the present life of the phone, or settled.
    var offered: Set<Int> = []
    var forwarded: Set<Int> = []
    var claims = 0
    var (number, loss, repetition) = (0, Int.random(in: 0...60, using: &random), Int.random(in: 0...30, using: &random))
    let kills = chance(50)

    func perform(_ actions: [WatchLeases<Int>.Action]) {
      for action in actions {
        switch action {
        case .send(let message): toWatch.append(message)
        case .show(let number): shownOnPhone[number, default: 0] += 1
        case .forwarded(let number): forwarded.insert(number)
        }
      }
    }
    func perform(_ actions: [WatchClaims.Action]) {
      for action in actions {
        switch action {
        case .send(let message): toPhone.append(message)
        case .show(let showing, _): storing.append(showing)
        case .remove, .settle: break
        }
      }
    }
    /// The watch's disk has written a notification, which is then shown.
    func store() {
      guard !storing.isEmpty else { return }
      let showing = storing.removeFirst()
      durable.insert(showing)
      // Killed after the commit: it is in the list, and counts as shown.
      shownOnWatch[showing, default: 0] += 1
      watch.stored(showing)
      if let answer = watch.ended(showing, isShown: true) { toPhone.append(answer) }
    }
    func deliver() {
      if !toWatch.isEmpty, chance(50) {
        let index = Int.random(in: toWatch.indices, using: &random)
        let message = chance(repetition) ? toWatch[index] : toWatch.remove(at: index)
        guard !chance(loss) else { return }
        claims += 1
        perform(watch.received(message, now: UInt64(watchTime), newID: "claim-\(claims)") { durable.contains($0) })
      } else if !toPhone.isEmpty {
        let index = Int.random(in: toPhone.indices, using: &random)
        let message = chance(repetition) ? toPhone[index] : toPhone.remove(at: index)
        guard !chance(loss) else { return }
        perform(phone.received(message, now: UInt64(phoneTime)))
      }
    }
    func pass(_ milliseconds: Double) {
      (phoneTime, watchTime) = (phoneTime + milliseconds, watchTime + milliseconds * speed)
      perform(phone.takeTime(UInt64(phoneTime)))
    }
    func judge(_ step: Int) {
      for (showing, count) in shownOnWatch {
        let number = Int(showing.takenAt)
        #expect(
          count == 1 && shownOnPhone[number] == nil,
          "step \(step): \(number) is shown \(count) times there, \(shownOnPhone[number] ?? 0) here")
      }
      #expect(shownOnPhone.values.allSatisfy { $0 == 1 }, "step \(step)")
      #expect(forwarded.allSatisfy { shownOnWatch[Self.showing($0)] == 1 }, "step \(step)")
    }

    for step in 0..<500 {
      switch Int.random(in: 0..<20, using: &random) {
      case 0:
        number += 1
        offered.insert(number)
        if let actions = phone.offer(Self.showing(number), try Self.frame(number), number, now: UInt64(phoneTime)) {
          perform(actions)
        } else {
          perform([.show(number)])
        }
      case 1 where kills && chance(20):
        // Killed: the notifications are in its list, and are not shown by its next life.
        phone = WatchLeases(milliseconds: Self.lease)
        offered = []
      case 2 where kills && chance(40):
        // Killed: what is granted and not stored is gone.
        (watch, storing) = (WatchClaims(), [])
      case 3 where chance(20): perform(phone.recall())
      case 4...7: pass(Double.random(in: 0...2_000, using: &random))
      case 8, 9: store()
      default: deliver()
      }
      judge(step)
    }
    // The channel is whole again, and nobody is killed.
    (loss, repetition) = (0, 0)
    for _ in 0..<5_000 where phone.deadline != nil || !toWatch.isEmpty || !toPhone.isEmpty {
      for _ in 0..<4 { deliver() }
      store()
      pass(1_000)
    }
    judge(-1)
    for number in offered { #expect(shownOnPhone[number] == 1 || shownOnWatch[Self.showing(number)] == 1, "\(number) is lost") }
  }
}

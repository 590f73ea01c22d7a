@testable import DeviceClient
import Extensions
import JSON
import Notifications
import Testing
import TestSupport

@Suite struct NotificationStoreTests {
  private static let now: Int64 = 1_700_000_000_000

  /// What is kept is what came: the list is the same after a restart, and with other extensions it is shown otherwise.
  @Test func mutableNotificationsAreShownAsTheDevicesExtensionsLeaveThem() throws {
    let place = try #require(JSONPointer("/aps/alert/body"))
    let mark = ExtensionChain(
      application: "com.example.shop", steps: [.init(name: "mark", work: SetAndCopy([(place: place, change: .prefix("> "))]))])
    var store = NotificationStore(extensions: mark)
    let ids = (1...2).map { "00000000-0000-4000-8000-00000000000\($0)" }
    let mutable = try notifyFrame(
      notify(1, id: ids[0], revision: Self.revision(1), aps: ["alert": "Hello", "mutable-content": 1]))
    let plain = try notifyFrame(notify(2, id: ids[1], revision: Self.revision(2), aps: ["alert": "Hello"]))
    for frame in [mutable, plain] { _ = store.take(frame, now: Self.now) }
    #expect(store.delivered.map(\.content.body) == ["Hello", "> Hello"])
    #expect(store.delivered.map(\.frame.payload) == [plain.payload, mutable.payload])
    var restored = NotificationStore()
    restored.restore(StoredState(delivered: [DeviceDatabase.listed(mutable, at: Self.now)]))
    #expect(restored.delivered.map(\.content.body) == ["Hello"])
  }

  /// Frames in any order, repeated, stale, expired, with removals, dismissals and kills between them.
  @Test(arguments: 0..<(isComplete ? 100 : 20))
  func eachIdIsShownAtMostOnceAndTheLastShownRevisionIsTheNewest(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var store = NotificationStore()
    var stored = NaiveState()
    var shownIDs: [String: Int] = [:]
    var lastShown: [Name: String] = [:]
    var newestSeen: [Name: String] = [:]
    var now = Self.now
    for step in 0..<200 {
      now += Int64.random(in: 0...2_000, using: &random)
      let identifier: Name = "thread-\(Int.random(in: 0..<6, using: &random))"
      let number = Int.random(in: 0..<40, using: &random)
      let revision = Self.revision(number)
      switch Int.random(in: 0..<10, using: &random) {
      case 0:
        _ = store.remove([identifier], revision: Name(revision), now: now)
        newestSeen[identifier] = max(newestSeen[identifier] ?? "", revision)
      case 1:
        _ = store.clear([identifier])
      case 2 where step % 5 == 0:
        // Killed, and started again from its database.
        let former = store
        store = NotificationStore()
        store.restore(stored.state)
        #expect(store.delivered == former.delivered && store.badge == former.badge)
        #expect(store.ids.count == former.ids.count && store.revisions.count == former.revisions.count)
      default:
        // An id may be published again as a newer revision: that is no other notification.
        let id = "\(identifier)-\(number % 25)"
        let expiration = Int.random(in: 0..<4, using: &random) == 0 ? now / 1000 + Int64.random(in: -3...3, using: &random) : 0
        let frame = try notifyFrame(notify(1, id: id, identifier.text, revision: revision, expiration: expiration))
        let outcome = store.take(frame, now: now)
        switch outcome {
        case .shown, .updated:
          shownIDs[id, default: 0] += 1
          #expect(revision > (newestSeen[identifier] ?? ""), "a stale revision was shown")
          #expect(expiration == 0 || expiration > now / 1000, "shown after its expiration")
          lastShown[identifier] = revision
        case .dropped(.known): continue
        case .dropped, .silent, .held, .extending, .asking: break
        }
        newestSeen[identifier] = max(newestSeen[identifier] ?? "", revision)
      }
      stored.apply(store.takeChanges())
    }
    #expect(shownIDs.values.allSatisfy { $0 == 1 })
    for notification in store.delivered { #expect(notification.frame.revision == lastShown[notification.identifier]) }
    #expect(Set(store.delivered.map(\.identifier)).count == store.delivered.count, "an identifier stands in the list twice")
  }

  @Test func updateReplacesInPlaceAndIsPromotedToTheTop() throws {
    var store = NotificationStore()
    for (index, identifier) in ["a", "b", "c"].enumerated() {
      _ = store.take(try notifyFrame(notify(1, id: "id-\(identifier)", identifier, revision: Self.revision(index))), now: Self.now)
    }
    let outcome = store.take(try notifyFrame(notify(2, id: "id-a2", "a", revision: Self.revision(9))), now: Self.now)
    guard case .updated = outcome else { return #expect(Bool(false), "\(outcome)") }
    #expect(store.delivered.map(\.identifier) == ["a", "c", "b"])
    #expect(store.delivered.first?.content.body == Self.revision(9))
  }

  @Test func `two collapse ids that only look alike are two notifications`() throws {
    var store = NotificationStore()
    let (short, long) = ("é", "e\u{301}")
    _ = store.take(try notifyFrame(notify(1, id: "one", short, revision: Self.revision(1))), now: Self.now)
    let second = store.take(try notifyFrame(notify(2, id: "two", long, revision: Self.revision(2))), now: Self.now)
    guard case .shown = second else { return #expect(Bool(false), "\(second)") }
    #expect(store.delivered.map(\.identifier) == [Name(long), Name(short)])
    // The older revision of the other one is not stale.
    let third = store.take(try notifyFrame(notify(3, id: "three", long, revision: Self.revision(9))), now: Self.now)
    guard case .updated = third else { return #expect(Bool(false), "\(third)") }
    let fourth = store.take(try notifyFrame(notify(4, id: "four", short, revision: Self.revision(3))), now: Self.now)
    guard case .updated = fourth else { return #expect(Bool(false), "\(fourth)") }
    guard case .removed(let gone) = store.remove([Name(long)], revision: Name(Self.revision(10)), now: Self.now) else {
      return #expect(Bool(false))
    }
    #expect(gone.map(\.identifier) == [Name(long)] && store.delivered.map(\.identifier) == [Name(short)])
    // And so they are after a restart.
    var stored = NaiveState()
    stored.apply(store.takeChanges())
    var restored = NotificationStore()
    restored.restore(stored.state)
    let fifth = restored.take(try notifyFrame(notify(5, id: "five", short, revision: Self.revision(4))), now: Self.now)
    guard case .updated = fifth else { return #expect(Bool(false), "\(fifth)") }
  }

  @Test func `the list is grouped by thread, and the group with the newest notification comes first`() throws {
    var store = NotificationStore()
    #expect(NotificationGroup.groups(of: store.delivered).isEmpty)
    let threads: [String?] = ["chat", nil, "e\u{301}", "\u{e9}", "", "chat", nil]
    for (number, thread) in threads.enumerated() {
      var aps: JSONValue = ["alert": "Hello"]
      aps.set("thread-id", thread.map { .string($0) })
      _ = store.take(try notifyFrame(notify(1, id: "n\(number)", revision: Self.revision(number), aps: aps)), now: Self.now)
    }
    let groups = NotificationGroup.groups(of: store.delivered)
    #expect(groups.map(\.threadIdentifier) == [nil, "chat", "\u{e9}", "e\u{301}"])
    #expect(groups.map { $0.notifications.map(\.identifier) } == [["n6", "n4", "n1"], ["n5", "n0"], ["n3"], ["n2"]])
    // An update moves its notification to the top, and its group with it.
    _ = store.take(
      try notifyFrame(notify(1, id: "new", "n2", revision: Self.revision(9), aps: ["alert": "x", "thread-id": "chat"])), now: Self.now)
    let updated = NotificationGroup.groups(of: store.delivered)
    #expect(updated.map { $0.notifications.map(\.identifier) } == [["n2", "n5", "n0"], ["n6", "n4", "n1"], ["n3"]])
  }

  @Test func dismissedAndRemovedOnesStayAway() throws {
    var store = NotificationStore()
    _ = store.take(try notifyFrame(notify(1, id: "one", "a", revision: Self.revision(2))), now: Self.now)
    _ = store.clear(["a"])
    #expect(store.take(try notifyFrame(notify(2, id: "one", "a", revision: Self.revision(2))), now: Self.now) == .dropped(.known))
    #expect(store.take(try notifyFrame(notify(3, id: "zero", "a", revision: Self.revision(1))), now: Self.now) == .dropped(.stale))
    guard case .removed(let gone) = store.remove(["a", "b"], revision: Name(Self.revision(5)), now: Self.now) else {
      return #expect(Bool(false))
    }
    #expect(gone.isEmpty)
    #expect(store.take(try notifyFrame(notify(4, id: "four", "b", revision: Self.revision(4))), now: Self.now) == .dropped(.stale))
    #expect(store.remove(["a", "b"], revision: Name(Self.revision(5)), now: Self.now) == .dropped(.known))
    #expect(store.remove(["a", "b"], revision: Name(Self.revision(4)), now: Self.now) == .dropped(.stale))
    #expect(store.delivered.isEmpty)
  }

  @Test func `a removal takes what was delivered or what waits for a place, never both`() throws {
    let trigger: JSONValue = ["type": "location", "region": ["identifier": "shop", "latitude": 1, "longitude": 1, "radius": 5]]
    for isOfPending in [true, false] {
      var store = NotificationStore()
      for (identifier, trigger) in [("shown", nil), ("waits", trigger)] as [(String, JSONValue?)] {
        _ = store.take(try notifyFrame(notify(1, id: identifier, identifier, revision: Self.revision(1), trigger: trigger)), now: Self.now)
      }
      _ = store.remove(["shown", "waits"], revision: Name(Self.revision(2)), isOfPending: isOfPending, now: Self.now)
      #expect(store.delivered.map(\.identifier) == (isOfPending ? ["shown"] : []))
      #expect(store.pending.map(\.identifier) == (isOfPending ? [] : ["waits"]))
      // The removal counts for an older one that comes later.
      let late = try notifyFrame(notify(2, id: "late", "waits", revision: Self.revision(1), trigger: trigger))
      #expect(store.take(late, now: Self.now) == .dropped(.stale))
    }
  }

  @Test func removalLeavesWhatIsNewer() throws {
    var store = NotificationStore()
    _ = store.take(try notifyFrame(notify(1, id: "one", "a", revision: Self.revision(7))), now: Self.now)
    #expect(store.remove(["a"], revision: Name(Self.revision(6)), now: Self.now) == .dropped(.stale))
    #expect(store.delivered.map(\.identifier) == ["a"])
  }

  @Test func `one that has expired is so again, and the same revision of another one is stale`() throws {
    var store = NotificationStore()
    let late = try notifyFrame(notify(1, id: "one", "a", revision: Self.revision(3), expiration: Self.now / 1000 - 1))
    for _ in 0..<2 { #expect(store.take(late, now: Self.now) == .dropped(.expired)) }
    let same = try notifyFrame(notify(2, id: "two", "a", revision: Self.revision(3)))
    #expect(store.take(same, now: Self.now) == .dropped(.stale))
  }

  @Test func nothingOlderComesToLightWhenTheNewestCameTooLate() throws {
    var store = NotificationStore()
    let late = try notifyFrame(notify(1, id: "late", "a", revision: Self.revision(5), expiration: Self.now / 1000))
    #expect(store.take(late, now: Self.now) == .dropped(.expired))
    #expect(store.take(late, now: Self.now) == .dropped(.expired), "what was never taken is not known")
    #expect(store.take(try notifyFrame(notify(2, id: "old", "a", revision: Self.revision(4))), now: Self.now) == .dropped(.stale))
  }

  @Test func whatIsForgottenIsBoundedInNumberAndTime() throws {
    var limits = NotificationStore.Limits()
    (limits.ids, limits.identifiers, limits.delivered) = (10, 10, 3)
    var store = NotificationStore(limits: limits)
    store.rememberSeconds = 100
    for index in 0..<50 { _ = store.take(try notifyFrame(notify(1, id: "id-\(index)", revision: Self.revision(index))), now: Self.now) }
    #expect(store.ids.count == 10)
    #expect(store.revisions.count == 10)
    #expect(store.delivered.map(\.id) == ["id-49", "id-48", "id-47"])
    #expect(store.take(try notifyFrame(notify(1, id: "id-45", revision: Self.revision(45))), now: Self.now) == .dropped(.known))
    let later = Self.now + 100_001
    guard case .shown = store.take(try notifyFrame(notify(1, id: "id-45", revision: Self.revision(45))), now: later) else {
      return #expect(Bool(false), "it is remembered for longer than was said")
    }
  }

  @Test func `a watch forgets what it has shown, in its database too`() throws {
    var limits = NotificationStore.Limits()
    limits.ids = 10
    var store = NotificationStore(limits: limits)
    var stored = NaiveState()
    let frame = try notifyFrame(notify(1, id: "one", revision: "1"))
    for number in 0..<3_000 {
      let showing = NotificationShowing(identifier: "one", id: "one", takenAt: Self.now + Int64(number))
      _ = store.takeForwarded(frame, showing, now: Self.now)
      stored.apply(store.takeChanges())
    }
    #expect(store.ids.count == 10 && stored.state.ids.count < 1_100)
  }

  @Test func agedTableForgetsTheOldestWhateverIsSetAnew() {
    var table = AgedTable<Int>(limit: 3)
    for round in 0..<1000 { for name: Name in ["a", "b", "c"] { table.set(round, for: name, at: Int64(round)) } }
    table.set(0, for: "a", at: 2000)
    table.set(0, for: "d", at: 2000)
    var names: [Name] = []
    table.forEach { name, _, _ in names.append(name) }
    #expect(names == ["c", "a", "d"])
    table.forget(before: 2000)
    #expect(table["c"] == nil && table["a"] == 0 && table.count == 2)
    var small = AgedTable<Int>(limit: 2)
    for name: Name in ["a", "b", "a", "c"] { small.set(0, for: name, at: 0) }
    #expect(small["a"] != nil && small["b"] == nil, "set anew, it is not the oldest any more")
  }

  @Test func notificationWithALocationTriggerWaitsUntilTheDeviceIsThere() throws {
    var store = NotificationStore()
    let trigger: JSONValue = ["type": "location", "repeats": false, "region": ["identifier": "shop"]]
    let held = store.take(try notifyFrame(notify(1, id: "one", "a", revision: Self.revision(1), trigger: trigger)), now: Self.now)
    guard case .held = held else { return #expect(Bool(false), "\(held)") }
    #expect(store.delivered.isEmpty && store.pending.count == 1)
    guard case .shown? = store.fire("a", now: Self.now, localTime: Self.now) else { return #expect(Bool(false)) }
    #expect(store.fire("a", now: Self.now, localTime: Self.now) == nil)
    let late = notify(2, id: "two", "b", revision: Self.revision(2), expiration: Self.now / 1000 + 5, trigger: trigger)
    _ = store.take(try notifyFrame(late), now: Self.now)
    #expect(store.fire("b", now: Self.now + 5_000, localTime: Self.now) == .dropped(.expired))
  }

  @Test func `a removal of all takes what is older, now and later, and leaves what waits for a place`() throws {
    var store = NotificationStore()
    let trigger: JSONValue = ["type": "location", "region": ["identifier": "shop", "latitude": 1, "longitude": 1, "radius": 5]]
    _ = store.take(try notifyFrame(notify(1, id: "one", "a", revision: Self.revision(1))), now: Self.now)
    _ = store.take(try notifyFrame(notify(2, id: "two", "b", revision: Self.revision(9))), now: Self.now)
    _ = store.take(try notifyFrame(notify(3, id: "three", "c", revision: Self.revision(2), trigger: trigger)), now: Self.now)
    guard case .removed(let removed) = store.removeAll(revision: Name(Self.revision(5)), now: Self.now) else { return #expect(Bool(false)) }
    #expect(removed.map(\.identifier) == ["a"] && store.delivered.map(\.identifier) == ["b"] && store.pending.map(\.identifier) == ["c"])
    #expect(store.removeAll(revision: Name(Self.revision(5)), now: Self.now) == .dropped(.known))
    #expect(store.removeAll(revision: Name(Self.revision(4)), now: Self.now) == .dropped(.stale))
    let late = store.take(try notifyFrame(notify(4, id: "four", "d", revision: Self.revision(4))), now: Self.now)
    #expect(late == .dropped(.canceled), "it was published before the removal")
    guard case .shown = store.take(try notifyFrame(notify(5, id: "five", "e", revision: Self.revision(6))), now: Self.now) else {
      return #expect(Bool(false))
    }
  }

  @Test func `a text of a Live Activity that is a key is shown as its key`() {
    let alert: JSONValue = ["title": ["loc-key": "SCORE", "loc-args": ["1"]], "body": ["loc-key": nil], "loc-key": "GOAL"]
    let content = NotificationContent(["aps": ["alert": alert]])
    #expect(content.title == "SCORE" && content.body == "GOAL" && content.hasAlert)
  }

  @Test func presentationFollowsTheAuthorization() throws {
    let everything: JSONValue = ["alert": "text", "sound": "bell", "badge": 3]
    let content = NotificationContent(["aps": everything])
    func names(_ status: Authorization.Status, _ content: NotificationContent, _ options: Authorization.Options = [:]) -> [String] {
      PresentationOptions(of: content, under: Authorization(status: status, options: options)).names
    }
    #expect(names(.authorized, content) == ["banner", "lockScreen", "list", "sound", "badge"])
    #expect(names(.authorized, content, [.alert: false, .sound: false]) == ["lockScreen", "list", "badge"])
    #expect(names(.authorized, content, [.scheduledDelivery: true]) == ["list", "badge", "quietly"])
    #expect(names(.provisional, content) == ["list", "quietly"])
    #expect(names(.denied, content) == [])
    #expect(names(.notDetermined, content) == [])
    #expect(
      names(.authorized, NotificationContent(["aps": ["alert": "text", "interruption-level": "passive", "sound": "s"]])) == [
        "lockScreen", "list",
      ])
    #expect(names(.authorized, NotificationContent(["aps": ["badge": 1]])) == ["badge"])
    #expect(NotificationContent(["aps": ["content-available": 1]]).isBackground)
    var store = NotificationStore(authorization: Authorization(status: .denied))
    #expect(store.take(try notifyFrame(notify(1, id: "one", revision: "1")), now: Self.now) == .dropped(.filtered))
    #expect(store.delivered.isEmpty)
    #expect(store.take(try notifyFrame(notify(1, id: "one", revision: "1")), now: Self.now) == .dropped(.known))
  }

  @Test func `a notification is shown in the ways that the cluster, the person, the screen and the program all allow`() throws {
    let ways: [PresentationOptions] = [.banner, .lockScreen, .list, .sound, .badge]
    var random = SeededRandom(seed: 4)
    func some() -> PresentationOptions { ways.filter { _ in Bool.random(using: &random) }.reduce([]) { $0.union($1) } }
    for round in 0..<300 {
      let (cluster, program, isQuiet) = (some(), some(), Bool.random(using: &random))
      var authorization = Authorization(status: .authorized)
      let switches: [(Authorization.Option, PresentationOptions)] = [
        (.alert, .banner), (.lockScreen, .lockScreen), (.notificationCenter, .list), (.sound, .sound), (.badge, .badge),
      ]
      var person: PresentationOptions = []
      for (option, way) in switches {
        let isOn = Bool.random(using: &random)
        authorization.options[option] = isOn
        if isOn { person.insert(way) }
      }
      var store = NotificationStore(authorization: authorization)
      store.asksDelegate = true
      store.state = ApplicationState.allCases[round % 3]
      // Only in the foreground the program chooses.
      let chosen = store.state == .foreground ? program : .all
      let screen: PresentationOptions = store.state == .locked ? [.lockScreen, .list, .sound, .badge] : [.banner, .list, .sound, .badge]
      var frame = try notifyFrame(
        notify(1, id: "one", revision: "1", aps: ["alert": "text", "sound": "bell", "badge": 3]))
      frame.presentation = isQuiet ? cluster.union(.quietly) : cluster
      let expected = cluster.intersection(person).intersection(chosen).intersection(screen)
      var outcome = store.take(frame, now: Self.now)
      if case .asking(let notification) = outcome { outcome = store.present(notification, allowing: program) }
      switch outcome {
      case .shown(let notification):
        #expect(notification.presentation == (isQuiet ? expected.union(.quietly) : expected), "round \(round)")
        #expect(store.delivered.count == (expected.contains(.list) ? 1 : 0) && store.badge == (expected.contains(.badge) ? 3 : 0))
      case .dropped(.filtered): #expect(expected.isEmpty && !cluster.isEmpty && store.delivered.isEmpty, "round \(round)")
      case .silent: #expect(cluster.isEmpty, "round \(round)")
      case let outcome: Issue.record("round \(round): \(outcome)")
      }
    }
  }

  @Test func `a watch shows what its phone forwards as the phone's person decided, and its own only when it has asked`() throws {
    for (status, isShown) in [(Authorization.Status.notDetermined, true), (.denied, false)] {
      var store = NotificationStore(authorization: Authorization(status: status))
      let showing = NotificationShowing(identifier: "a", id: "one", takenAt: 1)
      let outcome = store.takeForwarded(try notifyFrame(notify(1, id: "one", "a", revision: "1")), showing, now: 1)
      #expect((outcome != .dropped(.filtered)) == isShown)
      let own = NotificationRequest(identifier: "own", content: NotificationContent(title: "Tea"))
      #expect(store.add(try own.frame(id: "2"), localTime: LocalTime(1)) == .dropped(.filtered))
    }
  }

  @Test func `a level that the cluster took back counts for the presentation`() throws {
    var store = NotificationStore(authorization: Authorization(status: .authorized, options: [.scheduledDelivery: true]))
    var frame = try notifyFrame(notify(1, id: "one", revision: "1", aps: ["alert": "text", "interruption-level": "time-sensitive"]))
    guard case .shown(let urgent) = store.take(frame, now: Self.now) else { return #expect(Bool(false)) }
    #expect(urgent.presentation.contains(.banner))
    (frame.id, frame.identifier, frame.interruptionLevel) = ("two", "two", .active)
    guard case .shown(let usual) = store.take(frame, now: Self.now) else { return #expect(Bool(false)) }
    #expect(usual.presentation == [.list, .quietly])
  }

  // MARK: Parts

  static func revision(_ number: Int) -> String { Revision(timestamp: UInt64(number), partition: 0, offset: 0).description }
}

import Notifications
import Store
import TestSupport
import Testing
import Worker

@testable import FanOut

@Suite struct HandOverTests {
  /// An entry, its device and the applications, as plain facts: all times in milliseconds.
  struct Facts {
    var occasion: HandOver.Occasion
    var isRemoval: Bool
    var isDamaged: Bool
    /// 0 is nobody.
    var (users, owner): (UInt64, UInt64)
    var (application, ownApplication): (String, String)
    /// In seconds; 0 is one attempt.
    var expiration: Int64
    var (sourceTime, published, now): (Int64, Int64, Int64)
    var oneAttemptSeconds: Int64
    var isDenied: Bool
    /// The offset of a removal of all in the entry's partition, which only a page tells; the entry has the offset 1.
    var floor: Int64?
    var waitsForPlace: Bool
    /// The stops of each application, oldest first.
    var stops: [String: [(from: Int64, to: Int64?)]] = [:]

    /// Small numbers, so that times are often equal.
    init(_ random: inout SeededRandom) {
      func time() -> Int64 { Int64.random(in: 2...12, using: &random) * 500 }
      let applications = ["com.example.shop", "com.example.bank"]
      occasion = [.live, .page, .stopsConfirmed].randomElement(using: &random) ?? .live
      (isRemoval, isDamaged) = (random.next() % 4 == 0, random.next() % 4 == 0)
      (users, owner) = (random.next() % 3, random.next() % 4 == 0 ? 0 : 1)
      ownApplication = applications[0]
      application = random.next() % 6 == 0 ? applications[1] : ownApplication
      expiration = random.next() % 4 == 0 ? 0 : .random(in: 1...8, using: &random)
      sourceTime = time()
      published = random.next() % 4 == 0 ? sourceTime + 1_000 : sourceTime
      now = time()
      isDenied = random.next() % 4 == 0
      floor = occasion == .page && random.next() % 3 == 0 ? .random(in: 0...2, using: &random) : nil
      waitsForPlace = random.next() % 4 == 0
      oneAttemptSeconds = .random(in: 1...3, using: &random)
      for application in applications {
        var times = (0..<Int(random.next() % 5)).map { _ in time() }.sorted()[...]
        while let from = times.popFirst() { stops[application, default: []].append((from, times.popFirst())) }
      }
    }

    // MARK: The naive model

    /// The table of the decision, row by row: whether the row applies, and what it says for a page and for a delivery record.
    private var rows: [(applies: Bool, page: String, live: String)] {
      let isForOthers = users != 0 && users != owner
      let end = expiration == 0 ? (sourceTime / 1_000 + oneAttemptSeconds) * 1_000 : expiration * 1_000
      let lasting = stops[application, default: []].filter { published < $0.to ?? .max }
      let isStopped = !isRemoval && !lasting.isEmpty
      let isHeld = lasting.first.map { $0.to == nil } == true && occasion != .stopsConfirmed
      return [
        (application != ownApplication, "filtered: the device is registered for another application now", "leave: other_owner"),
        (isForOthers, "filtered: the device belongs to another person now", "leave: other_owner"),
        (now / 1_000 * 1_000 >= end, "expired", "leave: expired"),
        (floor == 2 && !waitsForPlace, "canceled: \(Self.removal)", ""),
        (isStopped && isHeld, "hold", "hold"),
        (isStopped, "filtered: stop of \(lasting.first?.from ?? 0)", "filtered: stop of \(lasting.first?.from ?? 0)"),
        (isDamaged && !isRemoval && occasion == .page, "rejected", ""),
        (isDenied && !isRemoval, Self.denied, Self.denied),
        (true, "send", "send"),
      ]
    }

    private static let denied = "filtered: the person does not allow notifications on the device"

    private static let removal = NotificationID(high: 7, low: 7)

    var expected: String { rows.first { $0.applies }.map { occasion == .live ? $0.live : $0.page } ?? "" }

    // MARK: The decision

    func decision() throws -> String {
      var entry = try LaneFixture.entry(for: LaneFixture.token(), offset: 1, application: application, removing: isRemoval) {
        ($0.userHash, $0.expiration, $0.published) = (users, expiration, published)
        $0.source = SourcePosition(partition: 0, offset: 1, timestamp: sourceTime)
        if waitsForPlace { $0.trigger = ("{}" as StaticString).withUTF8Buffer { UnsafeRawBufferPointer($0) } }
      }
      let owner = Owner(user: owner, since: 0, application: NameHash.hash(Name(ownApplication)))
      let stopped = try stoppedApplications()
      let floor = floor.map {
        JournalReference(revision: Revision(timestamp: 1, partition: 0, offset: UInt64($0)), id: Self.removal)
      }
      return try entry.withUnsafeMutableBytes { bytes in
        let payload = try #require(DeliveryEntryView(UnsafeRawBufferPointer(bytes))).payload.count
        if isDamaged, payload > 0 { bytes[bytes.count - 1] ^= 1 }
        let kept = occasion == .stopsConfirmed ? bytes.count - payload : bytes.count
        let view = try #require(DeliveryEntryView(UnsafeRawBufferPointer(rebasing: bytes[..<kept])))
        let handOver = HandOver(
          entry: view, occasion: occasion, revision: Revision(view.source), floor: floor, owner: owner,
          expiration: ExpirationRule(oneAttemptSeconds: oneAttemptSeconds), stopped: stopped,
          presentation: PresentationRule(Registration.of(isDenied ? Authorization(status: .denied) : nil)), isQuiet: false, now: now)
        return Self.text(of: handOver.decision)
      }
    }

    private func stoppedApplications() throws -> StoppedApplications {
      var table = StoppedApplications()
      for (application, stops) in stops {
        var known = ApplicationStops()
        func make(_ change: ApplicationStops.Change, at time: Int64) throws {
          let value = try #require(known.value(change, forgettingBefore: 0))
          var name = application
          try value.withUnsafeBytes { value in
            known = try ApplicationStops(value, timestamp: time)
            name.withUTF8 { _ = table.take(key: UnsafeRawBufferPointer($0), value: value, timestamp: time) }
          }
        }
        for stop in stops {
          try make(.stop(by: "eve", reason: "stop of \(stop.from)"), at: stop.from)
          if let end = stop.to { try make(.start(by: "eve"), at: end) }
        }
      }
      return table
    }

    private static func text(of decision: HandOver.Decision) -> String {
      switch decision {
      case .send: "send"
      case .hold: "hold"
      case .leave(let verdict): "leave: \(verdict.name)"
      case .end(let type, nil), .end(let type, .damagedPayload): "\(type)"
      case .end(let type, .told(let reason)): "\(type): \(reason)"
      case .end(let type, .stopped(let reason)): "\(type): \(reason)"
      case .end(let type, .removed(let id)): "\(type): \(id)"
      }
    }
  }

  @Test func `what becomes of an entry is what the table says`() throws {
    var random = SeededRandom(seed: 1)
    var seen: Set<String> = []
    for number in 0..<4_000 {
      let facts = Facts(&random)
      let decision = try facts.decision()
      #expect(decision == facts.expected, "\(number): \(facts)")
      seen.insert("\(facts.occasion) \(decision.prefix { $0 != ":" })")
    }
    let words = [
      "live": ["send", "hold", "leave", "filtered"], "page": ["send", "hold", "filtered", "expired", "rejected", "canceled"],
      "stopsConfirmed": ["send", "filtered", "expired"],
    ]
    #expect(seen == Set(words.flatMap { occasion, words in words.map { "\(occasion) \($0)" } }))
  }

  /// An entry for a former owner has the same outcome wherever it is found.
  @Test func `the owner decides before the expiration, the expiration before a stop, and the settings last`() throws {
    var random = SeededRandom(seed: 2)
    var facts = Facts(&random)
    (facts.occasion, facts.isRemoval, facts.floor) = (.page, false, nil)
    (facts.users, facts.owner, facts.application) = (2, 1, facts.ownApplication)
    (facts.sourceTime, facts.published, facts.expiration, facts.now) = (1_000, 1_000, 2, 2_000)
    facts.stops = [facts.application: [(1_500, 3_000)]]
    #expect(try facts.decision() == "filtered: the device belongs to another person now")
    facts.users = 1
    #expect(try facts.decision() == "expired")
    facts.now = 1_999
    #expect(try facts.decision() == "filtered: stop of 1500")
    facts.published = 3_000
    (facts.isDamaged, facts.isDenied) = (true, true)
    #expect(try facts.decision() == "rejected")
    facts.isDamaged = false
    #expect(try facts.decision() == "filtered: the person does not allow notifications on the device")
    facts.isDenied = false
    #expect(try facts.decision() == "send")
  }
}

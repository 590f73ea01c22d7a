import JSON
import Notifications
import TestSupport
import Testing

@testable import DeviceClient

/// The changes that the cluster has not answered yet.
@Suite(.timeLimit(.minutes(10))) struct RegistrationChangesTests {
  private typealias Change = RegistrationChanges.Change

  private static func categories(_ number: Int) -> Change { .categories([NotificationCategory(identifier: Name("c\(number)"))]) }

  @Test func `a newer change replaces one that is not sent, and takes its id`() {
    var changes = RegistrationChanges()
    #expect(changes.add(Self.categories(1), request: "a") == "a")
    #expect(changes.add(.locale(locale: "de_AT", timeZone: nil), request: "b") == "b")
    #expect(changes.add(Self.categories(2), request: "c") == "a")
    #expect(changes.add(.locale(locale: nil, timeZone: "UTC"), request: "d") == "b")
    let due = changes.next()
    #expect(due.map(\.request) == ["a", "b"])
    #expect(due.map(\.change) == [Self.categories(2), .locale(locale: "de_AT", timeZone: "UTC")])
    // One that is sent stays as it is, and the newer one of its kind is sent after its answer.
    #expect(changes.add(Self.categories(3), request: "e") == "e")
    #expect(changes.add(Self.categories(4), request: "f") == "e")
    #expect(changes.next().isEmpty)
    #expect(changes.settle("e") == nil, "it is not sent")
    #expect(changes.settle("a") == Self.categories(2))
    #expect(changes.next().map(\.change) == [Self.categories(4)])
  }

  @Test func `the welcome does not answer a change that is newer than its hello`() {
    var changes = RegistrationChanges()
    _ = changes.add(Self.categories(1), request: "a")
    changes.helloSent()
    #expect(changes.add(Self.categories(2), request: "b") == "a")
    #expect(changes.welcomed() == [])
    #expect(changes.next().map(\.change) == [Self.categories(2)])
  }

  @Test func `a sign-out is sent after what was set before, and not when the program has registered again`() {
    var changes = RegistrationChanges()
    _ = changes.add(Self.categories(1), request: "a")
    _ = changes.next()
    _ = changes.add(Self.categories(2), request: "b")
    _ = changes.add(.unregister, request: "c")
    #expect(changes.next().isEmpty)
    #expect(changes.settle("a") != nil)
    #expect(changes.next().map(\.request) == ["b", "c"])
    changes.sessionEnded()
    changes.stay()
    changes.helloSent()
    #expect(changes.welcomed() == ["b"] && changes.count == 0)
  }

  // MARK: Histories

  /// A cluster that has what the frames said, and the frames and answers on their way.
  private struct NaiveCluster {
    struct Values: Equatable {
      var authorization: Authorization?
      var locale: String?
      var timeZone: String?
      var categories: [NotificationCategory]?
      var quietHours: QuietHours?

      func has(_ other: Values, _ kind: Change.Kind) -> Bool {
        switch kind {
        case .settings: authorization == other.authorization
        case .locale: locale == other.locale && timeZone == other.timeZone
        case .categories: categories == other.categories
        case .quietHours: quietHours == other.quietHours
        case .unregister: true
        }
      }
    }

    var values = Values()
    var frames: [(request: Name, change: Change)] = []
    var answers: [Name] = []
    var isOut = false

    mutating func take() -> Bool {
      guard !frames.isEmpty else { return false }
      let (request, change) = frames.removeFirst()
      Self.apply(change, to: &values)
      isOut = isOut || change == .unregister
      answers.append(request)
      return true
    }

    static func apply(_ change: Change, to values: inout Values) {
      switch change {
      case .settings(let authorization): values.authorization = authorization
      case .locale(let locale, let zone): (values.locale, values.timeZone) = (locale ?? values.locale, zone ?? values.timeZone)
      case .categories(let categories): values.categories = categories
      case .quietHours(let hours): values.quietHours = hours
      case .unregister: break
      }
    }
  }

  private static func change(_ random: inout SeededRandom, _ number: Int) -> Change {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: .settings(Authorization(status: .authorized, options: [.sound: number % 2 == 0, .badge: number % 3 == 0]))
    case 1: .locale(locale: "l\(number)", timeZone: nil)
    case 2: .locale(locale: nil, timeZone: "z\(number)")
    case 3: .quietHours(number % 3 == 0 ? nil : QuietHours(from: number, to: 420, timeZone: "Europe/Rome"))
    default: categories(number)
    }
  }

  @Test(arguments: 0..<(isComplete ? 400 : 80))
  func `in every history the cluster has what the program set last, and each id is answered once with its change`(
    _ seed: UInt64
  ) throws {
    var random = SeededRandom(seed: seed)
    var (changes, cluster, set) = (RegistrationChanges(), NaiveCluster(), NaiveCluster.Values())
    // All that the program has set, one after the other.
    var history = [set]
    // For each id the last change that it stands for, and how often it was answered.
    var (promised, answered): ([Name: (place: Int, kind: Change.Kind)], [Name: Int]) = ([:], [:])
    enum Session { case none, greeting(NaiveCluster.Values), open }
    var session = Session.none

    func answer(_ request: Name) {
      answered[request, default: 0] += 1
      #expect(answered[request] == 1, "seed \(seed): \(request) is answered twice")
      guard let (place, kind) = promised[request] else { return }
      // A later change may be there already.
      let isThere = history[place...].contains { cluster.values.has($0, kind) }
      #expect(isThere, "seed \(seed): \(request) is answered before its change is there")
    }
    func send() { if case .open = session { cluster.frames += changes.next() } }
    func step(_ event: Int, _ number: Int) {
      switch event {
      case 0...4:
        let change = Self.change(&random, number)
        NaiveCluster.apply(change, to: &set)
        history.append(set)
        let request = changes.add(change, request: Name("r\(number)"))
        promised[request] = (history.count - 1, change.kind)
        send()
      case 5, 6:
        guard case .none = session else { break }
        changes.helloSent()
        session = .greeting(set)
      case 7, 8:
        guard case .greeting(let hello) = session else { break }
        // A hello has no quiet hours.
        let hours = cluster.values.quietHours
        cluster.values = hello
        cluster.values.quietHours = hours
        session = .open
        for request in changes.welcomed() { answer(request) }
        send()
      case 9...12: _ = cluster.take()
      case 13...16:
        guard case .open = session, !cluster.answers.isEmpty else { break }
        let request = cluster.answers.removeFirst()
        #expect(changes.settle(request) != nil, "seed \(seed)")
        answer(request)
        send()
      default:
        // The connection is lost, with the frames and answers on their way; some frames arrive.
        for _ in 0..<Int.random(in: 0...2, using: &random) { _ = cluster.take() }
        (cluster.frames, cluster.answers) = ([], [])
        changes.sessionEnded()
        session = .none
      }
      #expect(changes.count <= 8, "seed \(seed): \(changes.count) wait")
    }
    for number in 0..<300 { step(Int.random(in: 0..<18, using: &random), number) }
    // The connection stays now.
    for event in [17, 5, 7] { step(event, 300) }
    for _ in 0..<20 { for event in [9, 13] { step(event, 300) } }
    #expect(cluster.values == set && changes.count == 0, "seed \(seed)")
    #expect(Set(answered.keys) == Set(promised.keys), "seed \(seed)")
  }

  // MARK: Devices

  @Test func `a device that is never welcomed takes any number of changes, and the welcome answers them`() async throws {
    try await ScriptedCluster.with { cluster, url in
      await cluster.answer(with: nil)
      let device = DeviceUnderTest(url) { $0.connectMilliseconds = 3_600_000 }
      try await device.device.start()
      await cluster.expect("hello")
      var requests: Set<String> = []
      for number in 0..<1_000 {
        requests.insert(try await device.device.setAuthorization(Authorization(status: number % 2 == 0 ? .denied : .authorized)))
        requests.insert(try await device.device.setLocale("l\(number)", timeZone: nil))
        requests.insert(try await device.device.setCategories([NotificationCategory(identifier: Name("c\(number)"))]))
      }
      #expect(requests.count == 3)
      await cluster.answer(with: ScriptedCluster.welcome())
      await cluster.cut()
      let hello = try #require(await cluster.expect("hello", of: 1).first)
      #expect(
        hello["locale"] == "l999" && hello["categories"]?[0]?["identifier"] == "c999" && hello["authorization"]?["status"] == "authorized")
      await device.expect("accepted request", "accepted request", "accepted request")
      await device.close()
    }
  }

  @Test func `a watch takes any number of changes, and cannot sign out`() async throws {
    let device = DeviceUnderTest("ws://127.0.0.1:1/") {
      $0.urls = []
      $0.watchConnectivity = WatchConnectivity(.watch) { _ in }
    }
    try await device.device.start()
    for number in 0..<1_000 { try await device.device.setCategories([NotificationCategory(identifier: Name("c\(number)"))]) }
    #expect(await device.device.categories.map(\.identifier) == ["c999"])
    let error = await #expect(throws: DeviceError.self) { try await device.device.unregister() }
    #expect(error?.code == .configuration)
    await device.close()
  }
}

import Notifications
import TestSupport
import Testing

@testable import DeviceClient

/// What the device registers, as a value.
@Suite(.timeLimit(.minutes(10))) struct DeviceRegistrationTests {
  private typealias Change = RegistrationChanges.Change

  private static func registration(_ change: (inout DeviceConfiguration) -> Void = { _ in }) -> DeviceRegistration {
    guard let token = DeviceToken(DeviceUnderTest.token) else { preconditionFailure("the token is one") }
    var configuration = DeviceConfiguration(
      url: "", hello: Hello(device: token, application: "com.example.shop", user: "ada", authorization: Authorization(status: .authorized)))
    change(&configuration)
    return DeviceRegistration(configuration)
  }

  private static func hours(_ number: Int) -> QuietHours { QuietHours(from: number % 1_440, to: 420, timeZone: "UTC") }

  private static func categories(_ count: Int) -> Change {
    .categories((0..<count).map { NotificationCategory(identifier: Name("c\($0)")) })
  }

  private static func request(_ number: Int) -> Name { Name("r\(number)") }

  // MARK: Rules

  @Test func `a change that breaks a rule changes nothing`() {
    var registration = Self.registration()
    let (hello, stored) = (registration.hello, registration.stored)
    let broken: [Change] = [
      .categories([NotificationCategory(identifier: "")]), .locale(locale: "", timeZone: nil),
      .quietHours(QuietHours(from: 0, to: 0, days: 0, timeZone: "UTC")),
    ]
    for change in broken {
      #expect(throws: DeviceError.self) { _ = try registration.change(change, request: "a", isStopping: false) }
    }
    #expect(registration.hello == hello && registration.stored == stored && registration.next().isEmpty)
  }

  @Test func `a hello that the cluster would not take may only become smaller`() throws {
    var registration = Self.registration { $0.credential = { "" } }
    func change(_ count: Int) throws { _ = try registration.change(Self.categories(count), request: "a", isStopping: false) }
    try change(100)
    // This cluster takes small frames only. Half of one is for the credential.
    _ = registration.welcomed(nil, frameBytes: 1, now: 0)
    #expect(registration.hello.categories?.count == 100)
    for count in [99, 98] { try change(count) }
    #expect(throws: DeviceError.self) { try change(99) }
    #expect(throws: DeviceError.self) { try registration.greet(with: String(repeating: "x", count: FrameLimits.credentialBytes + 1)) }
    #expect(throws: DeviceError.self) { try change(99) }
    // A short credential takes a part of its half.
    try registration.greet(with: String(repeating: "x", count: 1_000))
    #expect(throws: DeviceError.self) { try change(99) }
    try change(97)
    #expect(registration.hello.categories?.count == 97)
  }

  @Test func `nothing is sent of a watch, and of a device that has signed out`() throws {
    for isWatch in [true, false] {
      var registration = Self.registration { if isWatch { $0.watchConnectivity = WatchConnectivity(.watch) { _ in } } }
      #expect(try registration.change(Self.categories(1), request: "a", isStopping: !isWatch) == "a")
      #expect(registration.next().isEmpty && registration.hello.categories?.count == 1 && registration.stored.categories?.count == 1)
      #expect(throws: DeviceError.self) { _ = try registration.change(.unregister, request: "b", isStopping: !isWatch) }
    }
  }

  @Test func `the person's changes are not sent any more when the cluster has deleted the registration`() throws {
    var registration = Self.registration()
    try registration.register()
    for (request, change) in [("a", .quietHours(Self.hours(1))), ("b", .unregister), ("c", Self.categories(1))] as [(Name, Change)] {
      _ = try registration.change(change, request: request, isStopping: false)
    }
    #expect(registration.next().map(\.request) == ["a", "b", "c"])
    registration.sessionEnded()
    registration.unregistered()
    #expect(!registration.stored.isRegistered && registration.stored.quietHours == nil && registration.stored.signOutRequest == nil)
    #expect(registration.next().map(\.request) == ["c"])
  }

  // MARK: Histories

  /// The cluster, and a model of the device by plain lists.
  private struct Model {
    // The device.
    var hello: Hello
    /// The hours that the person has set here and the cluster has not answered, by their requests.
    var pending: [(request: Name, hours: QuietHours?)] = []
    /// The hours that the cluster has told or accepted last.
    var told: QuietHours?
    var acceptedAt: UInt64?
    /// The sign-outs that the cluster has not answered.
    var signOuts: [Name] = []
    var isRegistered = false
    /// No welcome has come since the registration was deleted.
    var isForgotten = false
    var hours: QuietHours? { pending.last.map(\.hours) ?? (isForgotten ? nil : told) }
    // The cluster.
    var known: Hello?
    var person: QuietHours?
    /// What a worker that is late has of the person.
    var former: QuietHours?
    var frames: [(request: Name, change: Change)] = []
    var answers: [(request: Name, change: Change, isAccepted: Bool)] = []
    /// The cluster has taken the sign-out in this session.
    var isOut = false

    mutating func signedOut() { (pending, isForgotten, signOuts, isRegistered) = ([], true, [], false) }

    mutating func take(refusing isRefused: Bool) {
      guard !frames.isEmpty else { return }
      let (request, change) = frames.removeFirst()
      answers.append((request, change, !isRefused))
      guard !isRefused, var hello = known else { return }
      change.apply(to: &hello)
      known = hello
      if case .quietHours(let hours) = change { person = hours }
      isOut = isOut || change == .unregister
    }
  }

  private enum Session { case none, greeting, open }

  @Test(arguments: 0..<(isComplete ? 300 : 60))
  func `in every history the device has what the person wants, and the cluster hears of it once it can`(
    _ seed: UInt64
  ) throws {
    var random = SeededRandom(seed: seed)
    var registration = Self.registration()
    var model = Model(hello: registration.hello)
    var (session, now) = (Session.none, UInt64(0))

    func end(isGone: Bool) {
      registration.sessionEnded()
      (model.frames, model.answers, model.isOut, session) = ([], [], false, .none)
      guard isGone else { return }
      registration.unregistered()
      model.signedOut()
    }
    func send() {
      guard session == .open else { return }
      for (request, change) in registration.next() {
        switch change {
        case .quietHours(let hours):
          #expect(model.pending.contains { $0.request == request && $0.hours == hours }, "seed \(seed): nobody has set these hours")
        case .unregister: #expect(model.signOuts.contains(request), "seed \(seed): the person stays")
        default: break
        }
        let kinds = (model.frames.map(\.change) + model.answers.map(\.change)).map(\.kind)
        #expect(!kinds.contains(change.kind), "seed \(seed): one of the kind is on its way")
        model.frames.append((request, change))
      }
    }
    func set(_ change: Change, _ number: Int) throws {
      let request = try registration.change(change, request: Self.request(number), isStopping: false)
      change.apply(to: &model.hello)
      switch change {
      case .quietHours(let hours):
        model.pending.removeAll { $0.request == request }
        model.pending.append((request, hours))
      case .unregister:
        model.signOuts.removeAll { $0 == request }
        model.signOuts.append(request)
      default: break
      }
      send()
    }
    func answer() throws {
      guard session == .open, !model.answers.isEmpty else { return }
      let (request, change, isAccepted) = model.answers.removeFirst()
      let settled = registration.settle(request, isAccepted: isAccepted, now: now)
      #expect(settled == change, "seed \(seed)")
      if case .quietHours(let hours) = change {
        model.pending.removeAll { $0.request == request }
        if isAccepted { (model.told, model.acceptedAt) = (hours, now) }
      }
      model.signOuts.removeAll { $0 == request }
      if change == .unregister, isAccepted {
        model.signedOut()
        end(isGone: false)
      }
      send()
    }
    func welcome() throws {
      guard session == .greeting else { return }
      // A late worker does not know what was accepted a moment ago.
      let isLate = model.acceptedAt.map { now < $0 + DeviceRegistration.hoursSpread } ?? false && Bool.random(using: &random)
      let hours = isLate ? model.former : model.person
      if model.acceptedAt.map({ now >= $0 + DeviceRegistration.hoursSpread }) ?? true { model.told = hours }
      (model.isForgotten, session) = (false, .open)
      _ = registration.welcomed(hours, frameBytes: FrameRules.frameBytes, now: now)
      send()
    }
    func greet() throws {
      guard session == .none else { return }
      try registration.greet(with: nil)
      (model.known, session) = (registration.hello, .greeting)
    }
    func step(_ event: Int, _ number: Int) throws {
      now += UInt64.random(in: 0...3_000, using: &random)
      switch event {
      case 0: try set(.settings(Authorization(status: .authorized, options: [.sound: number % 2 == 0])), number)
      case 1: try set(.locale(locale: number % 2 == 0 ? "l\(number)" : nil, timeZone: number % 2 == 0 ? nil : "z\(number)"), number)
      case 2: try set(Self.categories(number % 7), number)
      case 3...5: try set(.quietHours(number % 4 == 0 ? nil : Self.hours(number)), number)
      case 6: try set(.unregister, number)
      case 7...8:
        let isSent = (model.frames.map(\.change) + model.answers.map(\.change)).contains(.unregister)
        do {
          try registration.register()
          #expect(!isSent, "seed \(seed): the sign-out is on its way")
          (model.signOuts, model.isRegistered) = ([], true)
        } catch { #expect(isSent, "seed \(seed): \(error)") }
      case 9...11: try greet()
      case 12...14: try welcome()
      case 15...18:
        model.former = model.person
        model.take(refusing: Int.random(in: 0..<5, using: &random) == 0)
      case 19...22: try answer()
      case 23: (model.former, model.person) = (model.person, Self.hours(number + 700))
      case 24: end(isGone: model.isOut && Bool.random(using: &random))
      default:
        // The program ends, and starts again with what the disk has.
        let stored = registration.stored
        end(isGone: false)
        registration = Self.registration { $0.hello = model.hello }
        registration.restore(stored)
        (model.told, model.acceptedAt, model.isForgotten) = (model.hours, nil, false)
        (model.pending, model.signOuts) = (Array(model.pending.suffix(1)), Array(model.signOuts.suffix(1)))
      }
      #expect(registration.hello == model.hello, "seed \(seed), step \(number)")
      #expect(registration.stored.quietHours == model.hours, "seed \(seed), step \(number): other hours after \(event)")
      #expect(registration.stored.quietRequest == model.pending.last?.request, "seed \(seed), step \(number)")
      #expect(registration.stored.signOutRequest == model.signOuts.last, "seed \(seed), step \(number)")
      #expect(registration.stored.isRegistered == model.isRegistered, "seed \(seed), step \(number)")
    }
    for number in 0..<200 { try step(Int.random(in: 0..<26, using: &random), number) }
    // The person stays, the connection stays now, and the cluster takes all.
    end(isGone: false)
    try registration.register()
    (model.signOuts, model.isRegistered) = ([], true)
    now += DeviceRegistration.hoursSpread
    try greet()
    try welcome()
    for _ in 0..<20 {
      model.take(refusing: false)
      try answer()
    }
    #expect(registration.next().isEmpty && model.pending.isEmpty && registration.stored.quietRequest == nil, "seed \(seed)")
    #expect(model.known == model.hello && registration.stored.quietHours == model.person, "seed \(seed)")
  }
}

import TestSupport
import Testing

@testable import Operations
@testable import Store

/// Which keys are looked at, and what is said of all of them, over stores that are known.
@Suite(.onThreadsOfTheirOwn) struct PopulationSurveyTests {
  /// A store whose every key is known: the naive model.
  private struct Model {
    var keys: [Population.Key] = []
    var devices: [String: Population.Device] = [:]
    var mailboxes: [String: Population.Mailbox] = [:]

    init(devices count: Int, others: Int, seed: UInt64) {
      var random = SeededRandom(seed: seed)
      let (known, present, boxes) = (
        Double.random(in: 0...1, using: &random), Double.random(in: 0...1, using: &random), Double.random(in: 0...1, using: &random)
      )
      for number in 0..<count {
        let token = "\(seed)-\(number)"
        let isRegistered = Double.random(in: 0...1, using: &random) < known
        devices[token] = .init(isRegistered: isRegistered, isConnected: isRegistered && Double.random(in: 0...1, using: &random) < present)
        keys.append(.device(token))
        guard Double.random(in: 0...1, using: &random) < boxes else { continue }
        mailboxes[token] = .init(
          entries: 1 + Int.random(in: 0...9, using: &random) * Int.random(in: 0...9, using: &random), oldest: Int64(number))
        keys.append(.mailbox(token))
      }
      keys += Array(repeating: .other, count: others)
      keys.shuffle(using: &random)
    }

    var registered: Int { devices.values.count { $0.isRegistered } }
    var connected: Int { devices.values.count { $0.isConnected } }
    var notifications: Int { mailboxes.values.reduce(0) { $0 + $1.entries } }

    /// As Redis scans: a number is a place in the table, and a key may come twice.
    func scan(_ place: UInt64, _ count: Int, repeating: Bool) -> (keys: [Population.Key], next: UInt64) {
      guard !keys.isEmpty else { return ([], 0) }
      let start = Int(place % UInt64(keys.count))
      let end = min(start + count, keys.count)
      let found = Array(keys[start..<end]) + (repeating ? keys[start..<min(start + 3, end)].filter { $0 != .other } : [])
      return (found, end == keys.count ? 0 : UInt64(end))
    }

    /// What a survey says, and how many commands it has used.
    func survey(commands: Int, seed: UInt64, repeating: Bool = false) -> (estimate: PopulationEstimate, commands: Int) {
      var survey = PopulationSurvey(keys: Int64(keys.count), commands: commands, random: SeededRandom(seed: seed))
      var used = 0
      while let step = survey.next() {
        used += step.commands
        switch step {
        case .scan(let place, let count):
          let (found, next) = scan(place, count, repeating: repeating)
          survey.take(found, next: next)
        case .device(let token): survey.take(devices[token])
        case .mailbox(let token): survey.take(mailboxes[token], of: token)
        }
      }
      return (survey.result, used)
    }
  }

  @Test func aSmallStoreIsCountedExactly() {
    for seed in 0..<(isComplete ? 60 : 12) as Range<UInt64> {
      let model = Model(devices: Int(seed) * 2, others: Int(seed % 7) * 40, seed: seed)
      let found = model.survey(commands: 500, seed: seed, repeating: true).estimate
      #expect(found.isExact, "\(seed)")
      #expect(found.devices == .counted(Int64(model.registered)) && found.connected == .counted(Int64(model.connected)), "\(seed)")
      #expect(
        found.mailboxes == .counted(Int64(model.mailboxes.count)) && found.notifications == .counted(Int64(model.notifications)), "\(seed)")
      #expect(found.largest.first?.entries == model.mailboxes.values.map(\.entries).max(), "\(seed)")
      #expect(found.oldest.first?.oldest == model.mailboxes.values.compactMap(\.oldest).min(), "\(seed)")
    }
  }

  @Test func thereAreNoMoreCommandsThanAllowed() {
    for (number, commands) in [0, 1, 9, 10, 11, 50, 399, 2_000].enumerated() {
      let model = Model(devices: 900 * number, others: 10, seed: UInt64(number))
      #expect(model.survey(commands: commands, seed: 1).commands <= commands, "\(commands)")
    }
  }

  /// Over many samples of each of some stores: their mean is the true number, and 95 of 100 intervals have it.
  @Test(arguments: [1, 2, 3] as [UInt64]) func anEstimateIsUnbiasedAndItsIntervalHolds(seed: UInt64) {
    let model = Model(devices: 18_000, others: 4_000, seed: seed)
    let samples = (0..<150).map { model.survey(commands: 320, seed: seed * 1_000 + $0).estimate }
    #expect(samples.allSatisfy { !$0.isExact && !$0.devices.isExact && $0.devicesRead < 160 })
    func check(_ name: String, _ truth: Int, _ numbers: [Estimate]) {
      let count = Double(numbers.count)
      let mean = numbers.reduce(0) { $0 + Double($1.value) } / count
      let variance = numbers.reduce(0) { $0 + (Double($1.value) - mean) * (Double($1.value) - mean) } / (count - 1)
      #expect(abs(mean - Double(truth)) <= 4 * (variance / count).squareRoot() + 1, "\(name) of \(seed): \(mean) for \(truth)")
      let held = numbers.count { abs($0.value - Int64(truth)) <= $0.margin }
      #expect(held >= numbers.count * 87 / 100, "\(name) of \(seed): \(held) of \(numbers.count) intervals have \(truth)")
      // An interval that holds because it is wide says nothing: its half width is some two standard deviations.
      let margin = numbers.reduce(0) { $0 + Double($1.margin) } / count
      #expect(margin <= 3 * variance.squareRoot() + 0.05 * Double(truth) + 1, "\(name) of \(seed): ±\(margin), \(variance.squareRoot())")
    }
    check("registered", model.registered, samples.map(\.devices))
    check("connected", model.connected, samples.map(\.connected))
    check("mailboxes", model.mailboxes.count, samples.map(\.mailboxes))
    check("notifications", model.notifications, samples.map(\.notifications))
  }

  @Test func aScanThatIsEndedEarlyLeavesASample() {
    let model = Model(devices: 3_000, others: 0, seed: 9)
    var survey = PopulationSurvey(keys: Int64(model.keys.count), commands: 400, random: SeededRandom(seed: 1))
    var devices = 0
    while let step = survey.next() {
      switch step {
      case .scan(let place, let count):
        let (found, next) = model.scan(place, count, repeating: false)
        survey.take(found, next: next)
        survey.endScanning()
      case .device(let token):
        devices += 1
        survey.take(model.devices[token])
      case .mailbox(let token): survey.take(model.mailboxes[token], of: token)
      }
    }
    let found = survey.result
    #expect(found.keysScanned == 500 && found.devicesRead == devices && devices > 100 && !found.isExact)
    #expect(abs(found.devices.value - Int64(model.registered)) <= 2 * found.devices.margin)
  }

  @Test func whatIsNotInTheSampleIsNotSaidToBeNowhere() {
    let model = Model(devices: 0, others: 30_000, seed: 1)
    let found = model.survey(commands: 100, seed: 1).estimate
    #expect(found.devices.value == 0 && !found.devices.isExact && found.devices.margin >= 3)
    let nothingAsked = PopulationSurvey(keys: 100, commands: 0)
    #expect(nothingAsked.isTooShort && nothingAsked.result.devices == Estimate(value: 0, margin: 100, isExact: false))
    let empty = PopulationSurvey(keys: 0, commands: 0)
    #expect(!empty.isTooShort && empty.result.isExact)
    var onlyNames = PopulationSurvey(keys: 2, commands: 10)
    onlyNames.take([.device("a"), .other], next: 0)
    #expect(onlyNames.isTooShort)
    onlyNames.take(Population.Device(isRegistered: true, isConnected: false))
    #expect(!onlyNames.isTooShort)
  }

  @Test func withinNoSecondThereAreMoreCommandsThanAllowed() {
    for seed in 0..<(isComplete ? 40 : 8) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      let limit = Int.random(in: 4...300, using: &random)
      let largest = Int.random(in: 1...min(4, limit), using: &random)
      var pace = CommandPace(perSecond: limit, largest: largest)
      var now: Int64 = 0
      var sent: [(moment: Int64, commands: Int)] = []
      for _ in 0..<2_000 {
        let commands = Int.random(in: 1...largest, using: &random)
        now += pace.wait(for: commands, at: now)
        sent.append((now, commands))
        // At times the server is slow, at times the machine stands still.
        now += [0, 100_000, 7_000_000, 2_500_000_000].randomElement(using: &random) ?? 0
      }
      var (first, within, most) = (0, 0, 0)
      for each in sent {
        within += each.commands
        while each.moment - sent[first].moment >= 1_000_000_000 {
          within -= sent[first].commands
          first += 1
        }
        most = max(most, within)
      }
      #expect(most <= limit, "\(seed)")
    }
  }
}

/// The load of one run: its devices, its requests, and how they are spread. A value; each run of one plan and seed sends the same requests.
package struct LoadPlan: Sendable, Hashable {
  /// The devices of a run.
  package struct Devices: Sendable, Hashable {
    /// The number of devices.
    package var count = 100
    /// The devices of each person.
    package var perUser = 2
    /// New connections in a second.
    package var connectRate = 200
    /// The share of the devices that reconnect in a minute.
    package var churn = 0.0
    /// The share of the devices that reconnect at once, in the middle of the run.
    package var storm = 0.0
    /// The share of slow devices, which take ``LoadPlan/slowMilliseconds`` to acknowledge a notification.
    package var slow = 0.0
    /// The share of the notifications that a person opens.
    package var responding = 0.0
  }

  /// The requests of a run.
  package struct Requests: Sendable, Hashable {
    /// Requests in a second.
    package var rate = 50
    /// The time in which the rate rises from 0, in milliseconds. It is a part of the duration.
    package var rampMilliseconds = 0
    /// The time in which requests are due, in milliseconds.
    package var durationMilliseconds = 20_000
    /// The sizes of payloads, in bytes. Each request has one of them.
    package var sizes = [300]
    /// The share of requests for `user:` targets; the others are for `device:` targets.
    package var toUsers = 0.5
    /// The share of requests with a collapse id, of which each target has ``LoadPlan/slots``.
    package var collapsing = 0.0
    /// The share of requests that are published twice with the same apns-id.
    package var duplicate = 0.0
    /// The share of requests that a service extension may change.
    package var mutable = 0.0
    /// The share of requests that are scheduled: each waits in the cluster for ``aheadMilliseconds``. They have no collapse id.
    package var scheduled = 0.0
    /// How long scheduled requests wait in the cluster, in milliseconds.
    package var aheadMilliseconds = 5_000
    /// The lifetime, in seconds; nil for the longest one.
    package var lifetimeSeconds: Int?
  }

  /// The devices.
  package var devices = Devices()
  /// The requests.
  package var requests = Requests()
  /// Chooses targets, sizes and so on.
  package var seed: UInt64 = 1
  /// How long a notification may take to a connected device before it counts as lost, in milliseconds.
  package var patienceMilliseconds = 60_000

  /// A plan with the defaults.
  package init() {}

  /// The most requests of a run.
  package static let maximumRequests = 20_000_000
  /// The most devices of a person, so that a byte tells which of them have a notification.
  package static let maximumPerUser = 8
  /// How long a slow device takes to acknowledge a notification, in milliseconds. Other devices acknowledge at once.
  package static let slowMilliseconds = 2_000
  /// The collapse ids of each target.
  package static let slots = 4

  /// A rule that a plan breaks.
  package struct Problem: Error, Sendable, Hashable {
    /// The setting to change, as its flag without dashes.
    package var flag: String
    /// The rule, as the end of a sentence that begins with the flag.
    package var rule: String
  }

  /// Checks the rules that concern several settings. Ranges of single settings are checked where they are read.
  package func check() throws(Problem) {
    guard requests.rampMilliseconds <= requests.durationMilliseconds else {
      throw Problem(flag: "ramp", rule: "must not be longer than --duration, of which it is a part")
    }
    let total = LoadSchedule(requests).total
    guard total > 0 else { throw Problem(flag: "duration", rule: "is too short for one request at --rate \(requests.rate)") }
    guard total <= Self.maximumRequests else {
      throw Problem(flag: "rate", rule: "makes \(total) requests in --duration, and a run has at most \(Self.maximumRequests)")
    }
    guard devices.count >= devices.perUser else {
      throw Problem(flag: "devices-per-user", rule: "must not be more than --devices")
    }
    guard devices.slow == 0 || Self.slowMilliseconds < patienceMilliseconds else {
      throw Problem(flag: "patience", rule: "must be longer than the 2 s that slow devices take to acknowledge a notification")
    }
  }

  // MARK: People and targets

  /// The number of people.
  package var users: Int { (devices.count + devices.perUser - 1) / devices.perUser }

  /// The person of a device.
  package func user(of device: Int) -> Int { device / devices.perUser }

  /// The number of targets: each person and each device.
  var targets: Int { users + devices.count }

  /// Whether a device is slow.
  package func isSlow(_ device: Int) -> Bool {
    var lot = LoadLot(seed, 1, UInt64(device))
    return lot.share() < devices.slow
  }

  /// Whether the person opens a notification.
  func opens(_ request: Int, at device: Int) -> Bool {
    // The number of another share's request may be negative.
    var lot = LoadLot(seed, 2, UInt64(bitPattern: Int64(request)) << 24 | UInt64(device))
    return lot.share() < devices.responding
  }
}

/// One request of a plan.
package struct LoadRequest: Sendable, Hashable {
  /// For whom it is.
  package enum Target: Sendable, Hashable {
    /// All devices of the person with this number.
    case user(Int)
    /// The device with this number.
    case device(Int)
  }

  /// For whom it is.
  package var target: Target
  /// Which of the target's collapse ids it has; nil for none.
  package var slot: Int?
  /// The bytes of its payload.
  package var size: Int
  /// Whether a service extension may change it.
  package var isMutable: Bool
  /// Whether it is published twice.
  package var isDuplicated: Bool
  /// Whether it waits in the cluster before it goes to its devices.
  package var isScheduled: Bool
}

extension LoadPlan {
  /// The request with a number. It only depends on the plan.
  package func request(_ number: Int) -> LoadRequest {
    var lot = LoadLot(seed, 3, UInt64(number))
    let isToUser = lot.share() < requests.toUsers
    let target: LoadRequest.Target = isToUser ? .user(lot.number(below: users)) : .device(lot.number(below: devices.count))
    let isCollapsing = lot.share() < requests.collapsing
    let slot = lot.number(below: Self.slots)
    let size = requests.sizes[lot.number(below: requests.sizes.count)]
    let (isMutable, isDuplicated) = (lot.share() < requests.mutable, lot.share() < requests.duplicate)
    let isScheduled = lot.share() < requests.scheduled
    return LoadRequest(
      target: target, slot: isCollapsing && !isScheduled ? slot : nil, size: size, isMutable: isMutable, isDuplicated: isDuplicated,
      isScheduled: isScheduled)
  }

  /// How long a request waits in the cluster, in nanoseconds. 0 for one that is not scheduled.
  func ahead(_ number: Int) -> Int64 {
    guard requests.scheduled > 0, request(number).isScheduled else { return 0 }
    return Int64(requests.aheadMilliseconds) * 1_000_000
  }

  /// The devices of a target.
  func devices(of target: LoadRequest.Target) -> Range<Int> {
    switch target {
    case .user(let user): (user * devices.perUser)..<min((user + 1) * devices.perUser, devices.count)
    case .device(let device): device..<(device + 1)
    }
  }

  /// The number of a target among all.
  func index(of target: LoadRequest.Target) -> Int {
    switch target {
    case .user(let user): user
    case .device(let device): users + device
    }
  }
}

/// Random numbers that follow from a seed, a purpose and a number (SplitMix64).
struct LoadLot {
  private var state: UInt64

  init(_ seed: UInt64, _ purpose: UInt64, _ number: UInt64) {
    state = Self.mixed(Self.mixed(seed &+ purpose &* 0x9E37_79B9_7F4A_7C15) ^ number)
  }

  /// Scatters the bits of a number. 0 stays 0.
  static func mixed(_ number: UInt64) -> UInt64 {
    var mixed = number
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  private mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return Self.mixed(state)
  }

  /// A number from 0 to below 1.
  mutating func share() -> Double { Double(next() >> 11) / Double(1 << 53) }

  /// A number from 0 to below a bound.
  mutating func number(below bound: Int) -> Int { Int(next().multipliedFullWidth(by: UInt64(max(bound, 1))).high) }
}

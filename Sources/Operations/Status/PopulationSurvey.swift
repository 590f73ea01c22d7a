package import Store

/// Estimates the devices and notifications of a Redis from a sample of keys. A value.
///
/// It first scans keys, whose names show devices and mailboxes. Then it reads some of each in random order. If the store is small enough,
/// it scans and reads everything, and the numbers are exact.
///
/// Of a larger store it scans a run of the hash table that begins at a random place and wraps around. So each key is equally likely: the
/// server places keys by a hash with a random key. Three errors remain:
///
/// - The number of all keys, which scales the sample, includes expired keys that were not removed yet.
/// - The keys are read at different moments.
/// - Only some mailboxes are read. There may be larger and older ones than those in the result, and the margin of the sum does not know of
///   them.
package struct PopulationSurvey: Sendable {
  /// The next question.
  package enum Step: Sendable, Hashable {
    /// Scan keys from a cursor on.
    case scan(from: UInt64, count: Int)
    /// Read a device.
    case device(String)
    /// Read a mailbox.
    case mailbox(String)

    /// How many commands Redis executes for it.
    package var commands: Int {
      switch self {
      case .scan: 1
      case .device: Population.deviceCommands
      case .mailbox: Population.mailboxCommands
      }
    }
  }

  /// About how many keys one scan answers.
  static let scanCount = 500
  /// The most names that are kept. Then scanning stops.
  static let maximumNames = 100_000

  private let keys: Int
  private var scansLeft: Int
  private var commandsLeft: Int
  /// The cursor of the next scan; nil if scanning is over.
  private var place: UInt64?
  private let beganAtZero: Bool
  private var scanned = 0
  private var isComplete = false
  private var devices: [String] = []
  private var mailboxes: [String] = []
  private var names: Set<Population.Key> = []
  private var random: any RandomNumberGenerator & Sendable
  /// Commands for devices and for mailboxes so far; both kinds get the same share.
  private var (deviceCommands, mailboxCommands) = (0, 0)

  private var registered = KindSample(isShare: true)
  private var connected = KindSample(isShare: true)
  private var entries = KindSample()
  private var filled = KindSample(isShare: true)
  private var seen: [SeenMailbox] = []

  /// A mailbox that was read.
  package struct SeenMailbox: Sendable, Hashable {
    /// The device's token.
    package var token: String
    /// The number of its entries.
    package var entries: Int
    /// When the oldest was published, in milliseconds since 1970.
    package var oldest: Int64?
  }

  /// Makes a survey without answers.
  ///
  /// - Parameters:
  ///   - keys: the number of all keys.
  ///   - commands: the most commands.
  package init(keys: Int64, commands: Int, random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()) {
    self.keys = Int(clamping: max(0, keys))
    self.random = random
    commandsLeft = commands
    scansLeft = commands / 10
    beganAtZero = self.keys <= scansLeft * Self.scanCount * 4 / 5
    // A cursor is any number, of which Redis uses the bits that its table needs. It stays below 2⁴⁸, since some servers take the highest
    // bit for a sign.
    place = beganAtZero ? 0 : self.random.next(upperBound: 1 << 48)
  }

  /// The next question; nil if the survey is over.
  package mutating func next() -> Step? {
    let step = wanted
    guard let step, step.commands <= commandsLeft else { return nil }
    commandsLeft -= step.commands
    return step
  }

  private var wanted: Step? {
    mutating get {
      if let place, scansLeft > 0 {
        scansLeft -= 1
        return .scan(from: place, count: Self.scanCount)
      }
      if !devices.isEmpty, mailboxes.isEmpty || deviceCommands <= mailboxCommands {
        deviceCommands += Population.deviceCommands
        return .device(Self.draw(&devices, &random))
      }
      guard !mailboxes.isEmpty else { return nil }
      mailboxCommands += Population.mailboxCommands
      return .mailbox(Self.draw(&mailboxes, &random))
    }
  }

  /// Removes a random name.
  private static func draw(_ names: inout [String], _ random: inout any RandomNumberGenerator & Sendable) -> String {
    let index = Int(random.next(upperBound: UInt64(names.count)))
    names.swapAt(index, names.count - 1)
    return names.removeLast()
  }

  /// Ends scanning. The rest of the time is for reading.
  package mutating func endScanning() { place = nil }

  // MARK: Answers

  /// Takes the keys of a scan, and the next cursor, which is 0 at the end.
  package mutating func take(_ found: [Population.Key], next: UInt64) {
    for key in found {
      // A table that is being resized may return a key twice.
      switch key {
      case .device(let token) where names.insert(key).inserted: devices.append(token)
      case .mailbox(let token) where names.insert(key).inserted: mailboxes.append(token)
      case .device, .mailbox: continue
      case .other: break
      }
      scanned += 1
    }
    place = next
    if next == 0, beganAtZero {
      isComplete = true
      place = nil
    }
    // A run must not reach its own beginning.
    if names.count >= Self.maximumNames || !beganAtZero && scanned >= keys / 10 * 9 { place = nil }
    (registered.seen, connected.seen) = (deviceNames, deviceNames)
    (entries.seen, filled.seen) = (names.count - deviceNames, names.count - deviceNames)
  }

  private var deviceNames: Int { devices.count + registered.read }

  /// Takes a device; nil if it cannot be read.
  package mutating func take(_ device: Population.Device?) {
    registered.take(device?.isRegistered == true ? 1 : 0)
    connected.take(device?.isRegistered == true && device?.isConnected == true ? 1 : 0)
  }

  /// Takes a mailbox; nil if it cannot be read.
  package mutating func take(_ mailbox: Population.Mailbox?, of token: String) {
    entries.take(Double(mailbox?.entries ?? 0))
    filled.take(mailbox.map { $0.entries > 0 } == true ? 1 : 0)
    guard let mailbox, mailbox.entries > 0 else { return }
    seen.append(SeenMailbox(token: token, entries: mailbox.entries, oldest: mailbox.oldest))
  }

  // MARK: Result

  /// Whether nothing can be said yet. No key was seen, or a kind was seen but never read.
  package var isTooShort: Bool {
    scanned == 0 && keys > 0 || registered.seen > 0 && registered.read == 0 || entries.seen > 0 && entries.read == 0
  }

  /// The most mailboxes in the result.
  static let named = 3

  /// The result of the answers so far.
  package var result: PopulationEstimate {
    let scanned = Double(scanned)
    let keys = isComplete ? scanned : max(Double(keys), scanned)
    func total(_ kind: KindSample) -> Estimate { kind.total(keys: keys, scanned: scanned) }
    return PopulationEstimate(
      devices: total(registered), connected: total(connected), mailboxes: total(filled), notifications: total(entries),
      largest: Array(seen.sorted { ($0.entries, $1.token) > ($1.entries, $0.token) }.prefix(Self.named)),
      oldest: Array(
        seen.filter { $0.oldest != nil }.sorted { ($0.oldest ?? 0, $0.token) < ($1.oldest ?? 0, $1.token) }.prefix(Self.named)),
      keysScanned: Int(scanned), devicesRead: registered.read, mailboxesRead: entries.read)
  }
}

/// The number of devices and notifications.
package struct PopulationEstimate: Sendable, Hashable {
  /// Registered devices.
  package var devices: Estimate
  /// Connected devices, including those whose worker was killed.
  package var connected: Estimate
  /// Mailboxes with entries.
  package var mailboxes: Estimate
  /// Their entries.
  package var notifications: Estimate
  /// The largest mailboxes that were read.
  package var largest: [PopulationSurvey.SeenMailbox]
  /// The mailboxes with the oldest notifications.
  package var oldest: [PopulationSurvey.SeenMailbox]
  /// Keys that were scanned.
  package var keysScanned: Int
  /// Devices that were read.
  package var devicesRead: Int
  /// Mailboxes that were read.
  package var mailboxesRead: Int

  /// Whether everything was counted.
  package var isExact: Bool { devices.isExact && connected.isExact && mailboxes.isExact && notifications.isExact }
}

public import Store

/// Which keys of a Redis are looked at to tell how many devices and notifications there are, and what follows from them. A value: it asks
/// nobody.
///
/// First keys are scanned, for their names tell which are devices and which are mailboxes. Then some of each are read, in random order. A
/// store that is small enough is scanned and read wholly, and the numbers are exact.
///
/// Of a larger one a run of its hash table is scanned that begins at a random place and goes on at the table's beginning behind its end, so
/// each key is as likely to be in it as any other: where a key lies is decided by a hash with a key that the server draws when it starts, and
/// has nothing to do with what the key is of. Three things remain. The number of all keys, by which the sample is scaled up, counts keys
/// that have expired and were not removed yet. What is read is as it was at that moment, not all at the same. And of the mailboxes only some
/// are read, so the largest and the oldest are those that were seen: there may be larger and older ones, which the interval of the sum does
/// not know of either where the sample has none of them.
public struct PopulationSurvey: Sendable {
  /// What is to be asked next.
  public enum Step: Sendable, Hashable {
    /// Keys from a place of the table on.
    case scan(from: UInt64, count: Int)
    /// A device.
    case device(String)
    /// A mailbox.
    case mailbox(String)

    /// How many commands Redis executes for it.
    public var commands: Int {
      switch self {
      case .scan: 1
      case .device: Population.deviceCommands
      case .mailbox: Population.mailboxCommands
      }
    }
  }

  /// About how many keys one scan answers.
  static let scanCount = 500
  /// Names that are kept at most; when there are so many, no more are scanned.
  static let maximumNames = 100_000

  private let keys: Int
  private var scansLeft: Int
  private var commandsLeft: Int
  /// Where the next scan begins; nil: no more are wanted.
  private var place: UInt64?
  private let beganAtZero: Bool
  private var scanned = 0
  private var isComplete = false
  private var devices: [String] = []
  private var mailboxes: [String] = []
  private var names: Set<Population.Key> = []
  private var random: any RandomNumberGenerator & Sendable
  /// Commands for devices and for mailboxes so far: each gets as many as the other.
  private var (deviceCommands, mailboxCommands) = (0, 0)

  private var registered = KindSample(isShare: true)
  private var connected = KindSample(isShare: true)
  private var entries = KindSample()
  private var filled = KindSample(isShare: true)
  private var seen: [SeenMailbox] = []

  /// A mailbox that was read.
  public struct SeenMailbox: Sendable, Hashable {
    /// The device's token.
    public var token: String
    /// What waits in it.
    public var entries: Int
    /// When the oldest was published, in milliseconds since 1970.
    public var oldest: Int64?
  }

  /// Nothing was asked yet.
  ///
  /// - Parameters:
  ///   - keys: how many keys there are.
  ///   - commands: how many commands there may be.
  public init(keys: Int64, commands: Int, random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()) {
    self.keys = Int(clamping: max(0, keys))
    self.random = random
    commandsLeft = commands
    scansLeft = commands / 10
    beganAtZero = self.keys <= scansLeft * Self.scanCount * 4 / 5
    // A cursor is any number: Redis takes of it what its table has. Not all of its bits, which some servers take for a sign.
    place = beganAtZero ? 0 : self.random.next(upperBound: 1 << 48)
  }

  /// What is to be asked next; nil when it is over.
  public mutating func next() -> Step? {
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

  /// Takes one of them out, each as likely as the others.
  private static func draw(_ names: inout [String], _ random: inout any RandomNumberGenerator & Sendable) -> String {
    let index = Int(random.next(upperBound: UInt64(names.count)))
    names.swapAt(index, names.count - 1)
    return names.removeLast()
  }

  /// Scans no more: what is left of the time is for what was found.
  public mutating func endScanning() { place = nil }

  // MARK: Answers

  /// What a scan has found, and where it goes on; 0: it has come to the end of the table.
  public mutating func take(_ found: [Population.Key], next: UInt64) {
    for key in found {
      // A table that is being resized may give a key twice.
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
    // A run must not meet its own beginning.
    if names.count >= Self.maximumNames || !beganAtZero && scanned >= keys / 10 * 9 { place = nil }
    (registered.seen, connected.seen) = (deviceNames, deviceNames)
    (entries.seen, filled.seen) = (names.count - deviceNames, names.count - deviceNames)
  }

  private var deviceNames: Int { devices.count + registered.read }

  /// What a device is; nil: it cannot be read.
  public mutating func take(_ device: Population.Device?) {
    registered.take(device?.isRegistered == true ? 1 : 0)
    connected.take(device?.isRegistered == true && device?.isConnected == true ? 1 : 0)
  }

  /// What a mailbox has; nil: it cannot be read.
  public mutating func take(_ mailbox: Population.Mailbox?, of token: String) {
    entries.take(Double(mailbox?.entries ?? 0))
    filled.take(mailbox.map { $0.entries > 0 } == true ? 1 : 0)
    guard let mailbox, mailbox.entries > 0 else { return }
    seen.append(SeenMailbox(token: token, entries: mailbox.entries, oldest: mailbox.oldest))
  }

  // MARK: What follows

  /// Whether nothing can be said yet: no key was seen, or none of a kind was read.
  public var isTooShort: Bool {
    scanned == 0 && keys > 0 || registered.seen > 0 && registered.read == 0 || entries.seen > 0 && entries.read == 0
  }

  /// Mailboxes that are named at most.
  static let named = 3

  /// What follows from the answers so far.
  public var result: PopulationEstimate {
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

/// How many devices and notifications there are.
public struct PopulationEstimate: Sendable, Hashable {
  /// Devices that are registered.
  public var devices: Estimate
  /// Those of them that are connected, or were when their worker was killed.
  public var connected: Estimate
  /// Mailboxes in which something waits.
  public var mailboxes: Estimate
  /// What waits in them.
  public var notifications: Estimate
  /// The largest mailboxes that were read.
  public var largest: [PopulationSurvey.SeenMailbox]
  /// Those whose oldest notification is the oldest.
  public var oldest: [PopulationSurvey.SeenMailbox]
  /// Keys whose names were seen.
  public var keysScanned: Int
  /// Devices that were read.
  public var devicesRead: Int
  /// Mailboxes that were read.
  public var mailboxesRead: Int

  /// Whether all was counted.
  public var isExact: Bool { devices.isExact && connected.isExact && mailboxes.isExact && notifications.isExact }
}

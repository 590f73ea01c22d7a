public import Notifications
import Redis

/// The time zones, locales and people of devices, from their registrations. Loop-confined.
public final class DeviceFacts {
  /// The facts from a device's registration.
  public struct Device: Sendable {
    /// The name hash of the person; 0: nobody, or the device is not registered.
    public var user: UInt64
    /// The time zone, if it gave one.
    public var zone: Name?
    /// The locale, if it gave one.
    public var locale: String?
    /// Whether it is registered.
    public var isRegistered: Bool

    /// A device without a registration.
    public static let unknown = Device(user: 0, zone: nil, locale: nil, isRegistered: false)
  }

  private let shards: Shards
  private let recipients: Recipients
  private let calls = Calls()

  /// Makes them for these servers.
  public init(_ shards: Shards, _ recipients: Recipients) { (self.shards, self.recipients) = (shards, recipients) }

  /// Reads the facts about a device.
  public func read(_ token: UnsafeRawBufferPointer, _ then: @escaping (Result<Device, StoreError>) -> Void) {
    let collected = CollectedAnswers<Device>(1) { answers in then(answers.map { $0[0] ?? .unknown }) }
    ask(token, 0, collected)
  }

  /// Reads the facts about devices, in their order.
  ///
  /// - Parameter tokens: at least one, each with the arena that contains it.
  public func read(_ tokens: [(span: ArenaSpan, arena: Arena)], _ then: @escaping (Result<[Device], StoreError>) -> Void) {
    let collected = CollectedAnswers<Device>(tokens.count) { answers in then(answers.map { $0.map { $0 ?? .unknown } }) }
    for (number, (token, arena)) in tokens.enumerated() { arena.bytes.withUnsafeBytes { ask($0[token], number, collected) } }
  }

  /// Returns the zones of devices, each once. They are sorted: of too many, each worker takes the same.
  public static func distinctZones(_ devices: [Name: Name]) -> [Name] { Set(devices.values).sorted() }

  /// Reads the time zones of the devices that a schedule is for, by their tokens.
  ///
  /// One is empty where a device has told none. There is none where no device is registered.
  public func read(of key: ScheduleKey, _ then: @escaping (Result<[Name: Name], StoreError>) -> Void) {
    let arena = Arena(capacity: 256)
    let receiver = key.target.withBytes { target in
      key.application.withBytes { application in Target(target).map { Receiver($0, application: application, in: arena) } }
    }
    switch receiver {
    case .device(let token):
      arena.bytes.withUnsafeBytes { bytes in
        let name = Name(bytes[token])
        read(bytes[token]) { then($0.map { $0.isRegistered ? [name: $0.zone ?? ""] : [:] }) }
      }
    case .set(let set): page(of: set, in: arena, after: [], [:], then)
    case nil: then(.success([:]))
    }
  }

  private func page(
    of set: RecipientSet, in arena: Arena, after last: [UInt8], _ found: [Name: Name],
    _ then: @escaping (Result<[Name: Name], StoreError>) -> Void
  ) {
    arena.bytes.withUnsafeBytes { bytes in
      last.withUnsafeBytes { last in
        recipients.page(of: set, in: bytes, after: last) { [self] page in
          if let page = page.value(orFail: then) { came(page, of: set, in: arena, found, then) }
        }
      }
    }
  }

  private func came(
    _ page: Recipients.Page, of set: RecipientSet, in arena: Arena, _ found: [Name: Name],
    _ then: @escaping (Result<[Name: Name], StoreError>) -> Void
  ) {
    var tokens: [[UInt8]] = []
    var last: [UInt8] = []
    page.forEach { member, isToken in
      last = Array(member)
      if isToken { tokens.append(last) }
    }
    let isLast = page.isLast
    guard !tokens.isEmpty else {
      return isLast ? then(.success(found)) : self.page(of: set, in: arena, after: last, found, then)
    }
    let collected = CollectedAnswers<Device>(tokens.count) { [self] devices in
      guard let devices = devices.value(orFail: then) else { return }
      let named = zip(tokens, devices).map { token, device in (token.withUnsafeBytes { Name($0) }, device?.zone ?? "") }
      let zones = found.merging(named) { $1 }
      if isLast { then(.success(zones)) } else { self.page(of: set, in: arena, after: last, zones, then) }
    }
    for (number, token) in tokens.enumerated() { token.withUnsafeBytes { ask($0, number, collected) } }
  }

  private func ask(_ token: UnsafeRawBufferPointer, _ number: Int, _ collected: CollectedAnswers<Device>) {
    let bucket = shards.keys.bucket(of: token)
    calls.command.begin("HMGET")
    calls.command.appendKey("d", bucket, token)
    for field in ["u", "z", "l"] { calls.command.append(field) }
    calls.send(over: shards.shard(of: bucket)) { answer in
      collected.take(
        number,
        answer.map { reply in
          let owner = reply[0]?.bytes.flatMap { Owner(field: Array($0)) }
          return Device(
            user: owner?.user ?? 0, zone: reply[1]?.bytes.map { Name($0) },
            locale: reply[2]?.bytes.map { String(decoding: $0, as: UTF8.self) }, isRegistered: owner != nil)
        })
    }
  }
}

public import Notifications
import Redis

/// The time zones, locales and people of devices, from their registrations.
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
    var isRegistered: Bool

    /// A device without a registration.
    static let unknown = Device(user: 0, zone: nil, locale: nil, isRegistered: false)
  }

  private let shards: Shards
  private let recipients: Recipients
  private let calls = Calls()

  /// Makes them for these servers.
  public init(_ shards: Shards, _ recipients: Recipients) { (self.shards, self.recipients) = (shards, recipients) }

  /// Reads the facts about devices, in their order.
  ///
  /// - Parameter tokens: at least one, each with the arena that contains it.
  public func read(_ tokens: [(span: ArenaSpan, arena: Arena)], _ then: @escaping (Result<[Device], StoreError>) -> Void) {
    var devices = Array(repeating: Device.unknown, count: tokens.count)
    var (left, failure): (Int, StoreError?) = (tokens.count, nil)
    for (number, (token, arena)) in tokens.enumerated() {
      let bucket = arena.bytes.withUnsafeBytes { bytes in
        let bucket = shards.keys.bucket(of: bytes[token])
        calls.command.begin("HMGET")
        calls.command.appendKey("d", bucket, bytes[token])
        return bucket
      }
      calls.command.append("u")
      calls.command.append("z")
      calls.command.append("l")
      calls.send(over: shards.shard(of: bucket)) { answer in
        switch answer {
        case .success(let reply): devices[number] = Device(reply)
        // Another call, which needs the device itself, reports that it cannot be read.
        case .failure(let error) where error.code == .faulty: break
        case .failure(let error): failure = failure ?? error
        }
        left -= 1
        if left == 0 { then(failure.map { .failure($0) } ?? .success(devices)) }
      }
    }
  }

  /// A device with its token.
  public typealias Named = (token: Name, facts: Device)

  /// Reads the facts about the devices of a receiver, in the order of their tokens.
  ///
  /// - Parameters:
  ///   - arena: contains the names of the receiver.
  ///   - maximum: with so many devices no further page of a person's is read.
  ///   - then: called within this call if the call cannot be sent.
  public func read(
    of receiver: Receiver, in arena: Arena, upTo maximum: Int = .max, _ then: @escaping (Result<[Named], StoreError>) -> Void
  ) {
    let tokens = Arena(capacity: 256)
    switch receiver {
    case .device(let token):
      let span = arena.bytes.withUnsafeBytes { tokens.keep($0[token]) }
      read(named: [span], in: tokens, then)
    case .set(let set): page(of: set, in: arena, [], upTo: maximum, after: ArenaSpan(), in: tokens, then)
    }
  }

  private func read(named spans: [ArenaSpan], in tokens: Arena, _ then: @escaping (Result<[Named], StoreError>) -> Void) {
    guard !spans.isEmpty else { return then(.success([])) }
    read(spans.map { ($0, tokens) }) { devices in
      then(devices.map { zip(spans, $0).map { span, device in (tokens.bytes.withUnsafeBytes { Name($0[span]) }, device) } })
    }
  }

  private func page(
    of set: RecipientSet, in arena: Arena, _ found: [Named], upTo maximum: Int, after last: ArenaSpan, in tokens: Arena,
    _ then: @escaping (Result<[Named], StoreError>) -> Void
  ) {
    arena.bytes.withUnsafeBytes { bytes in
      tokens.bytes.withUnsafeBytes { former in
        recipients.page(of: set, in: bytes, after: former[last]) { [self] page in
          guard let page = page.value(orFail: then) else { return }
          var (spans, last): ([ArenaSpan], ArenaSpan) = ([], last)
          page.forEach { member, isToken in
            last = tokens.keep(member)
            if isToken { spans.append(last) }
          }
          let isLast = page.isLast
          read(named: spans, in: tokens) { [self, last] devices in
            guard let devices = devices.value(orFail: then) else { return }
            let found = found + devices
            if isLast || found.count >= maximum { return then(.success(found)) }
            self.page(of: set, in: arena, found, upTo: maximum, after: last, in: tokens, then)
          }
        }
      }
    }
  }

  /// Returns the zones of devices, each once. They are sorted: of too many, each worker takes the same.
  public static func distinctZones(_ devices: [Name: Name]) -> [Name] { Set(devices.values).sorted() }

  /// Reads the time zones of the devices that a schedule is for, by their tokens.
  ///
  /// One is empty where a device has told none. There is none where no device is registered.
  public func zones(of key: ScheduleKey, _ then: @escaping (Result<[Name: Name], StoreError>) -> Void) {
    let arena = Arena(capacity: 256)
    let receiver = key.target.withBytes { target in
      key.application.withBytes { application in Target(target).map { Receiver($0, application: application, in: arena) } }
    }
    guard let receiver else { return then(.success([:])) }
    read(of: receiver, in: arena) { answer in
      then(
        answer.map { devices in
          let present = devices.filter { $0.facts.isRegistered || receiver.device == nil }
          return Dictionary(present.map { ($0.token, $0.facts.zone ?? "") }) { $1 }
        })
    }
  }
}

extension DeviceFacts.Device {
  fileprivate init(_ reply: RedisReplyView) {
    let owner = reply[0]?.bytes.flatMap { Owner(field: Array($0)) }
    self.init(
      user: owner?.user ?? 0, zone: reply[1]?.bytes.map { Name($0) },
      locale: reply[2]?.bytes.map { String(decoding: $0, as: UTF8.self) }, isRegistered: owner != nil)
  }
}

public import Notifications
import Redis

/// How a registration that Kafka has taken gets into Redis, by the lane that has published it and by the worker that reads `devices`.
/// Loop-confined.
///
/// The lane has mostly done so before the worker, and then nothing changes; a lane that was killed between Kafka and Redis has not, nor has
/// one whose writing Redis has lost.
public final class Registrations {
  private let shards: Shards
  private let recipients: Recipients
  private let calls = Calls()
  private let rememberedMilliseconds: Int64

  /// - Parameter rememberedMilliseconds: how long an unregistered device is remembered.
  public init(_ shards: Shards, _ recipients: Recipients, rememberedMilliseconds: Int64) {
    (self.shards, self.recipients, self.rememberedMilliseconds) = (shards, recipients, rememberedMilliseconds)
  }

  /// Applies a registration, unless one from a later record stands.
  static let script = RedisScript(file: PackageResources.registration_lua)

  /// A record of `devices`.
  public struct Record: Sendable {
    /// The device.
    public let token: String
    /// Nil: the device is registered no more.
    public let registration: Registration?
    /// Where the record lies.
    public let partition: Int32
    /// Where the record lies in the partition.
    public let offset: Int64

    /// A record from its parts.
    public init(token: String, _ registration: Registration?, partition: Int32, offset: Int64) {
      (self.token, self.registration, self.partition, self.offset) = (token, registration, partition, offset)
    }

    /// Which record it is, as the device's hash says it.
    public var stamp: RegistrationStamp {
      RegistrationStamp(digest: registration?.digest ?? 0, partition: partition, offset: offset)
    }
  }

  /// What came of a record.
  public enum Outcome: Sendable {
    /// It stands now, with the person's sets; whose the device was before.
    case applied(former: Owner?)
    /// A later one stands.
    case superseded
  }

  /// Applies a record: to the device's hash, and then to the sets of its person and of its former one.
  public func apply(_ record: Record, _ then: @escaping (Result<Outcome, StoreError>) -> Void) {
    let (keys, token) = (shards.keys, record.token)
    let set = record.registration.flatMap { registration in
      registration.user.map { keys.recipients(user: $0, application: registration.application) }
    }
    calls.command.begin(Self.script, keys: 3)
    calls.command.append(keys.device(token))
    calls.command.append(keys.mailbox(token))
    calls.command.append(keys.guardKey(ofDevice: token))
    calls.command.append(record.registration.map { Owner($0).bytes } ?? [])
    calls.command.append(record.stamp.bytes)
    calls.command.append(rememberedMilliseconds)
    calls.command.append(set ?? "")
    calls.command.append(record.registration?.locale ?? "")
    calls.send(over: shards.shard(ofDevice: token)) { [self] answer in
      switch answer {
      case .failure(let error): then(.failure(error.about(keys.device(token))))
      case .success(let reply):
        guard reply[0]?.integer == 1 else { return then(.success(.superseded)) }
        let outcome = Outcome.applied(former: reply[1]?.bytes.flatMap { Owner($0) })
        move(token, from: reply[2]?.text ?? "", to: set ?? "") { error in then(error.map { .failure($0) } ?? .success(outcome)) }
      }
    }
  }

  /// The same from a task on the loop.
  public func apply(_ record: Record) async throws(StoreError) -> Outcome {
    try await withCheckedContinuation { continuation in apply(record) { continuation.resume(returning: $0) } }.get()
  }

  /// Puts a device into a person's set and takes it out of another's; either may be none.
  private func move(_ token: String, from former: String, to set: String, _ then: @escaping (StoreError?) -> Void) {
    let leave = { [recipients] in
      // What is no key of a person's set was put there by somebody else.
      guard former.utf8.starts(with: "u{".utf8), former != set else { return then(nil) }
      recipients.remove(token, from: former) { then($0?.code == .faulty ? nil : $0) }
    }
    if set.isEmpty { return leave() }
    recipients.add(token, to: set) { error in
      if let error { then(error) } else { leave() }
    }
  }
}

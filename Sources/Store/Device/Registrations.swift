public import Notifications
import Redis

/// Applies registrations that Kafka has to Redis.
///
/// The lane that published a registration applies it first. The transform worker that reads `devices` applies it again, and usually changes
/// nothing. It repairs the case that the lane was killed between Kafka and Redis, or that Redis lost the write.
public final class Registrations {
  private let shards: Shards
  private let recipients: Recipients
  private let calls = Calls()
  private let rememberedMilliseconds: Int64

  /// - Parameter rememberedMilliseconds: how long Redis remembers an unregistered device.
  public init(_ shards: Shards, _ recipients: Recipients, rememberedMilliseconds: Int64) {
    (self.shards, self.recipients, self.rememberedMilliseconds) = (shards, recipients, rememberedMilliseconds)
  }

  /// Applies a registration, unless a later record was applied.
  static let script = RedisScript(file: "registration")

  /// A record of `devices`.
  public struct Record: Sendable {
    /// The device.
    let token: String
    /// Nil if the device is unregistered.
    public let registration: Registration?
    /// The record's partition.
    let partition: Int32
    /// The record's offset.
    let offset: Int64

    /// A record of its parts.
    public init(token: String, _ registration: Registration?, partition: Int32, offset: Int64) {
      (self.token, self.registration, self.partition, self.offset) = (token, registration, partition, offset)
    }

    /// The stamp of the record, as the device's hash keeps it.
    var stamp: RegistrationStamp {
      RegistrationStamp(digest: registration?.digest ?? 0, partition: partition, offset: offset)
    }
  }

  /// The result of applying a record.
  public enum Outcome: Sendable {
    /// It was applied, to the device, to its sets and to its former ones. `former` is the owner before.
    case applied(former: Owner?)
    /// A later record was applied before.
    case superseded
  }

  /// Applies a record. To the device's hash, then to the sets that it belongs to now, and to those that it belonged to.
  public func apply(_ record: Record, _ then: @escaping (Result<Outcome, StoreError>) -> Void) {
    let (keys, token) = (shards.keys, record.token)
    let sets = record.registration.map(keys.sets(of:)) ?? []
    calls.command.begin(Self.script, keys: keys.ofDevice(token))
    calls.command.append(all: [
      .bytes(record.registration.map { Owner($0).bytes } ?? []), .bytes(record.stamp.bytes), .integer(rememberedMilliseconds),
      .text(sets.map(\.text).joined(separator: "\n")), .text(record.registration?.locale ?? ""),
      .text(record.registration?.timeZone ?? ""),
    ])
    calls.send(over: shards.shard(ofDevice: token)) { [self] answer in
      guard let reply = answer.mapError({ $0.about(keys.device(token)) }).value(orFail: then) else { return }
      guard reply[0]?.integer == 1 else { return then(.success(.superseded)) }
      let outcome = Outcome.applied(former: reply[1]?.bytes.flatMap { Owner($0) })
      let former = (reply[2]?.text ?? "").split(separator: "\n").map { Name(String($0)) }
      // A value that is no set's key was not written by Carillon.
      let left = former.filter { keys.isSet($0) && !sets.contains($0) }
      move(token, to: sets[...], from: left[...]) { error in then(error.map { .failure($0) } ?? .success(outcome)) }
    }
  }

  /// Applies a record, from a task on the loop.
  public func apply(_ record: Record) async throws(StoreError) -> Outcome {
    try await withCheckedContinuation { continuation in apply(record) { continuation.resume(returning: $0) } }.get()
  }

  /// Asks whether a record of a device, or a later one of its partition, was applied.
  public func stands(_ token: String, partition: Int32, offset: Int64, _ then: @escaping (Result<Bool, StoreError>) -> Void) {
    let key = shards.keys.device(token)
    calls.command.begin("HGET")
    calls.command.append(key)
    calls.command.append("r")
    calls.send(over: shards.shard(ofDevice: token)) { answer in
      then(
        answer.map { reply in
          reply.bytes.flatMap { RegistrationStamp(Array($0)) }.map { $0.partition == partition && $0.offset >= offset } ?? false
        }.mapError { $0.about(key) })
    }
  }

  /// Adds a device to sets, and then removes it from others.
  private func move(
    _ token: String, to sets: ArraySlice<Name>, from left: ArraySlice<Name>, _ then: @escaping (StoreError?) -> Void
  ) {
    if let set = sets.first {
      recipients.add(token, to: set) { [self] error in
        if let error { then(error) } else { move(token, to: sets.dropFirst(), from: left, then) }
      }
    } else if let set = left.first {
      recipients.remove(token, from: set) { [self] error in
        if let error, error.code != .faulty { then(error) } else { move(token, to: [], from: left.dropFirst(), then) }
      }
    } else {
      then(nil)
    }
  }
}

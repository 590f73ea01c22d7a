import Kafka
import Notifications
import Redis
import Worker

/// Applies the records of `devices` to the registry in Redis: the device's hash, and the audiences of its people.
///
/// A lane has mostly done so already, and then nothing changes; a lane that was killed between Kafka and Redis has not, nor has one whose
/// writing Redis has lost.
struct RegistryCalls: ~Copyable {
  /// What came of a record.
  enum Sending {
    case sent
    /// The connection takes no calls now.
    case notTaken
    /// It is no registration.
    case unreadable(String)
  }

  private let keys: RedisKeys
  private let rememberedMilliseconds: Int64
  private var command = RedisCommand()

  init(_ settings: TransformSettings) {
    keys = settings.keys
    rememberedMilliseconds = settings.longestLifetime * 1000
  }

  /// Sends a record's registration; the answer comes under the token.
  mutating func send(_ record: RecordView, over redis: RedisConnection, to handler: any RedisReplyHandler, token: UInt64) -> Sending {
    guard let device = Self.device(record) else { return .unreadable("its key is no device token") }
    var owner: [UInt8] = []
    var audience = ""
    var digest: UInt64 = 0
    if let value = record.value {
      do {
        let registration = try Registration(json: value)
        guard registration.device.text == device else { return .unreadable("its key is not the device that its value names") }
        owner = Owner(registration).bytes
        digest = registration.digest
        audience = self.audience(registration)
      } catch {
        return .unreadable("\(error)")
      }
    }
    command.begin(RegistryScript.apply, keys: 3)
    command.append(keys.device(device))
    command.append(keys.mailbox(device))
    command.append(keys.guardKey(ofDevice: device))
    command.append(owner)
    command.append(Registration.field(digest: digest, partition: record.partition, offset: record.offset))
    command.append(rememberedMilliseconds)
    command.append(audience)
    return redis.send(command, to: handler, token: token) == .accepted ? .sent : .notTaken
  }

  /// Puts the device into its audience and takes it out of its former one; answers how many calls that were.
  mutating func follow(
    _ record: RecordView, former: UnsafeRawBufferPointer?, over redis: RedisConnection, to handler: any RedisReplyHandler, token: UInt64
  ) -> (count: Int, isWhole: Bool) {
    guard let device = Self.device(record) else { return (0, true) }
    let audience = record.value.flatMap { try? Registration(json: $0) }.map { self.audience($0) } ?? ""
    var (count, isWhole) = (0, true)
    func note(_ admission: RedisAdmission) { if admission == .accepted { count += 1 } else { isWhole = false } }
    if !audience.isEmpty {
      command.begin("ZADD")
      command.append(audience)
      command.append(0)
      command.append(device)
      note(redis.send(command, to: handler, token: token))
    }
    if let former, !former.isEmpty, !former.elementsEqual(audience.utf8) {
      command.begin("ZREM")
      command.append(former)
      command.append(device)
      note(redis.send(command, to: handler, token: token))
    }
    return (count, isWhole)
  }

  private static func device(_ record: RecordView) -> String? {
    record.key.flatMap { DeviceToken(String(decoding: $0, as: UTF8.self)) }?.text
  }

  private func audience(_ registration: Registration) -> String {
    registration.user.map { keys.audience(user: $0, application: registration.application) } ?? ""
  }
}

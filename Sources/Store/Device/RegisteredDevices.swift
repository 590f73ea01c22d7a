public import Notifications
import Redis

/// What Redis has of single devices and of a person's devices, for an operator who looks. Nothing is changed. Loop-confined.
public final class RegisteredDevices {
  private let shards: Shards
  private let population: Population

  /// Of these servers.
  public init(_ shards: Shards) { (self.shards, population) = (shards, Population(shards)) }

  /// A device as it stands.
  public struct Device: Sendable {
    /// Its token.
    public var token: String
    /// Whose it is; nil where it is not registered.
    public var owner: Owner?
    /// Its application and its person, by their names; nil where nobody is signed in, since Redis has the application's hash only.
    public var membership: (application: Name, user: Name)?
    /// The record of `devices` that stands for it.
    public var registration: RegistrationStamp?
    /// Its locale, as it registered it.
    public var locale: String?
    /// Where it is connected, or was when its worker was killed.
    public var presence: Presence?
    /// What was evicted from its mailbox since the device was told of that last.
    public var gap: MailboxGap?
    /// What waits for it; nil where that cannot be read.
    public var mailbox: Population.Mailbox?
  }

  /// Reads a device with its mailbox.
  public func device(_ token: String) async throws(StoreError) -> Device {
    let key = shards.keys.device(token)
    let answer: RedisValue
    do throws(StoreError) {
      answer = try await shards.shard(ofDevice: token).answer("HMGET", .text(key), "u", "a", "r", "l", "p", "g")
    } catch { throw error.about(key) }
    guard let fields = answer.array, fields.count == 6 else { throw StoreError(.faulty, "what Redis has of the device cannot be read") }
    return Device(
      token: token, owner: fields[0].bytes.flatMap { Owner($0) }, membership: fields[1].text.flatMap { shards.keys.membership(of: $0) },
      registration: fields[2].bytes.flatMap { RegistrationStamp($0) }, locale: fields[3].text,
      presence: fields[4].bytes.flatMap { Presence($0) }, gap: fields[5].bytes.flatMap { MailboxGap($0) },
      mailbox: try await population.mailbox(token))
  }

  // MARK: A person's

  /// Devices to a page.
  public static let pageSize = Recipients.pageSize

  /// The tokens of a person's devices for an application, in their order; a page of fewer than ``pageSize`` is the last.
  ///
  /// The set may also have devices that are another person's by now: what each of them says itself counts.
  ///
  /// - Parameter last: the last one of the page before; nil for the first page.
  public func page(of user: Name, _ application: Name, after last: String?) async throws(StoreError) -> [String] {
    let key = shards.keys.recipients(user: user, application: application)
    do throws(StoreError) {
      let answer = try await shards.shard(of: user.withBytes(shards.keys.bucket)).answer(
        "ZRANGEBYLEX", .text(key), .text(last.map { "(\($0)" } ?? "-"), "+", "LIMIT", 0, .integer(Int64(Self.pageSize)))
      return answer.array?.compactMap(\.text) ?? []
    } catch { throw error.about(key) }
  }

  /// Looks at keys of the whole table from a place on, for the applications that a person has devices for.
  ///
  /// - Returns: what was found among them, and the place where it goes on: 0 behind the end.
  public func applications(of user: Name, from place: UInt64, keys count: Int) async throws(StoreError) -> (next: UInt64, found: [Name]) {
    let pattern = "u{\(user.withBytes(shards.keys.bucket))}*/" + Self.escaped(user.text)
    let answer = try await shards.common.answer(
      "SCAN", .text(String(place)), "MATCH", .text(pattern), "COUNT", .integer(Int64(count)))
    guard let parts = answer.array, parts.count == 2, let next = parts[0].text.flatMap({ UInt64($0) }), let names = parts[1].array else {
      throw StoreError(.faulty, "Redis answered SCAN with something else")
    }
    let members = names.compactMap { $0.text.flatMap { shards.keys.membership(of: $0) } }
    return (next, members.filter { $0.user == user }.map(\.application))
  }

  /// A text that matches itself alone in a pattern of Redis.
  static func escaped(_ text: String) -> String {
    var escaped = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      if ["*", "?", "[", "]", "\\", "^"].contains(scalar) { escaped.append("\\") }
      escaped.append(scalar)
    }
    return String(escaped)
  }

  // MARK: What may be missing

  /// Whether somebody is rebuilding Redis, so that registrations are missing.
  public func isBeingRebuilt() async throws(StoreError) -> Bool {
    try await shards.common.answer("EXISTS", .text(Keys.rebuild)).integer == 1
  }

  /// Whether Redis has lost, or has never had, the bucket of a device's token or a person's id.
  public func hasLost(bucketOf name: Name) async throws(StoreError) -> Bool {
    let bucket = name.withBytes(shards.keys.bucket)
    return try await shards.shard(of: bucket).answer("EXISTS", .text(shards.keys.markers(bucket))).integer != 1
  }
}

extension Keys {
  /// The application and the person whose set of devices a key is; nil for any other key.
  fileprivate func membership(of key: String) -> (application: Name, user: Name)? {
    let bytes = key.utf8
    guard bytes.starts(with: "u{".utf8), let end = bytes.firstIndex(of: UInt8(ascii: "}")),
      let slash = bytes[end...].firstIndex(of: UInt8(ascii: "/"))
    else { return nil }
    // No application has a slash in its name, and a person may.
    let (application, user) = (
      Name(String(key[bytes.index(after: end)..<slash])), Name(String(key[bytes.index(after: slash)...]))
    )
    // Whatever else begins like this was put there by somebody else.
    return Name(recipients(user: user, application: application)) == Name(key) ? (application, user) : nil
  }
}

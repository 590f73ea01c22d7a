public import Notifications
import Redis

/// Reads single devices and a person's devices for operators. It changes nothing.
public final class RegisteredDevices {
  private let shards: Shards
  private let population: Population

  /// Makes them for these servers.
  public init(_ shards: Shards) { (self.shards, population) = (shards, Population(shards)) }

  /// A device as Redis has it.
  public struct Device: Sendable {
    /// Its token.
    public var token: String
    /// Its owner; nil if the device is not registered.
    public var owner: Owner?
    /// The names of its application and person; nil if nobody is signed in, since then Redis has only the application's hash.
    public var membership: (application: Name, user: Name)?
    /// The record of `devices` that was applied last.
    public var registration: RegistrationStamp?
    /// Its locale, as it registered it.
    public var locale: String?
    /// Its connection; it may be out of date if a worker was killed.
    public var presence: Presence?
    /// Which entries were evicted since the device was last notified of a gap.
    public var gap: MailboxGap?
    /// The size of its mailbox; nil if it cannot be read.
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
      token: token, owner: fields[0].bytes.flatMap { Owner(field: $0) },
      membership: fields[1].text?.split(separator: "\n").compactMap { shards.keys.membership(of: String($0)) }.first,
      registration: fields[2].bytes.flatMap { RegistrationStamp($0) }, locale: fields[3].text,
      presence: fields[4].bytes.flatMap { Presence($0) }, gap: fields[5].bytes.flatMap { MailboxGap($0) },
      mailbox: try await population.mailbox(token))
  }

  // MARK: The devices of a person

  /// Devices of a page.
  public static let pageSize = Recipients.pageSize

  /// The tokens of a person's devices for an application, in their order; a page of fewer than ``pageSize`` is the last.
  ///
  /// The set may contain devices that belong to another person by now. The hash of each device decides.
  ///
  /// - Parameter last: the last token of the page before; nil for the first page.
  public func page(of user: Name, _ application: Name, after last: String?) async throws(StoreError) -> [String] {
    let key = shards.keys.recipients(user: user, application: application)
    do throws(StoreError) {
      let answer = try await shards.shard(of: user.withBytes(shards.keys.bucket)).answer(
        "ZRANGEBYLEX", .text(key), .text(last.map { "(\($0)" } ?? "-"), "+", "LIMIT", 0, .integer(Int64(Self.pageSize)))
      return answer.array?.compactMap(\.text) ?? []
    } catch { throw error.about(key) }
  }

  /// Scans some keys from a cursor on, for the applications that a person has devices for.
  ///
  /// - Returns: the applications found, and the next cursor: 0 at the end.
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

  /// A text as a pattern of Redis that matches only this text.
  static func escaped(_ text: String) -> String {
    var escaped = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      if ["*", "?", "[", "]", "\\", "^"].contains(scalar) { escaped.append("\\") }
      escaped.append(scalar)
    }
    return String(escaped)
  }

  // MARK: What may be missing

  /// Whether a rebuild is running, so that registrations may be missing.
  public func isBeingRebuilt() async throws(StoreError) -> Bool {
    try await shards.common.answer("EXISTS", .text(Keys.rebuild)).integer == 1
  }

  /// Whether Redis does not have the bucket of a device's token or a person's id.
  public func hasLost(bucketOf name: Name) async throws(StoreError) -> Bool {
    let bucket = name.withBytes(shards.keys.bucket)
    return try await shards.shard(of: bucket).answer("EXISTS", .text(shards.keys.markers(bucket))).integer != 1
  }
}

extension Keys {
  /// The application and person of a key of a person's devices; nil for any other key.
  fileprivate func membership(of key: String) -> (application: Name, user: Name)? {
    let bytes = key.utf8
    guard bytes.starts(with: "u{".utf8), let end = bytes.firstIndex(of: UInt8(ascii: "}")),
      let slash = bytes[end...].firstIndex(of: UInt8(ascii: "/"))
    else { return nil }
    // An application's name has no slash; a person's id may have one.
    let (application, user) = (
      Name(String(key[bytes.index(after: end)..<slash])), Name(String(key[bytes.index(after: slash)...]))
    )
    // Another key with such a beginning was not written by Carillon.
    return Name(recipients(user: user, application: application)) == Name(key) ? (application, user) : nil
  }
}

import Cryptography
import Notifications

/// Every key that Carillon keeps in Redis.
///
/// Who writes the truth of a bucket does so only where the bucket's markers are; while Redis is rebuilt, only the rebuilder writes, and
/// looks for `b{B}` instead.
///
/// | key | type | what |
/// |---|---|---|
/// | `d{B}TOKEN` | hash | a device: `p` presence, `u` owner, `a` audience, `r` registration, `w` window of recent ids, `g` gap, `c…` newest revision per collapse id |
/// | `m{B}TOKEN` | hash | its mailbox: revision → delivery entry |
/// | `u{B}APPLICATION/USER` | sorted set, all scores 0 | the tokens of a person's devices for an application, in the order of their bytes |
/// | `k{B}` | hash | the markers of a bucket: `i` its number, `qN` and `dN` how far partition N of requests and of devices is applied |
/// | `b{B}` | string | a bucket that is being rebuilt, in place of its markers |
/// | `rebuild` | string | who is rebuilding, expiring |
/// | `tries` | hash | how often each partition was begun at its marker, which record is worked on alone, and how many processes ended with which |
/// | `lanes` | sorted set | fan-out lanes: `PARTITION:LANE` → the time of the last heartbeat in milliseconds |
///
/// `B` is the bucket: the hash tag that puts the keys of one script call into one slot of a Redis Cluster. A device's bucket is a
/// hash of its token, a user's one of the user's id. The number of buckets is fixed for the cluster's life.
///
/// A bucket without `k{B}` is one that Redis has lost, or has never had: no script works on it. A marker is an offset 8, below which every
/// outcome is durable, the timestamp 8 of the record below it, and how often the topic was made anew 4.
///
/// Fields of a device, all in network byte order:
///
/// | field | bytes |
/// |---|---|
/// | `p` | partition of `deliveries` 4, session generation 8 |
/// | `u` | hash of the user 8 (zeros: nobody), since when in milliseconds 8, hash of the application 8 |
/// | `a` | the key of the audience that it belongs to, or empty |
/// | `r` | digest of the registration 8, partition 4 and offset 8 of its record in `devices` |
/// | `w` | when its generation began in seconds 4, bytes of the former generation 2, then per id: hash of the apns-id 8, of its source 4 |
/// | `g` | oldest and newest revision that were evicted and not yet told, 20 each |
/// | `c` and the collapse id | newest revision 20, its apns-id 16, and what it displaced in the mailbox: revision 20, apns-id 16 |
public struct RedisKeys: Sendable {
  /// How many buckets the cluster has.
  public let buckets: Int
  /// Whether the keys are used by the one who rebuilds Redis.
  public var isRebuilding = false

  /// Keys for a cluster of `buckets` buckets: 1 to 16384.
  public init(buckets: Int = 256) {
    precondition((1...16384).contains(buckets), "the number of buckets is checked where the settings are read")
    self.buckets = buckets
  }

  /// The sorted set of the fan-out lanes.
  public static let lanes: StaticString = "lanes"

  /// The bucket of a device's token or a user's id.
  public func bucket(of name: UnsafeRawBufferPointer) -> Int { Int(StableHash.hash(name, seed: 0) % UInt64(buckets)) }

  /// The device's hash.
  public func device(_ token: String) -> String { "d{\(bucket(token))}\(token)" }

  /// The device's mailbox.
  public func mailbox(_ token: String) -> String { "m{\(bucket(token))}\(token)" }

  /// The devices of a person for an application.
  public func audience(user: String, application: String) -> String { "u{\(bucket(user))}\(application)/\(user)" }

  /// The markers of a bucket.
  public func markers(_ bucket: Int) -> String { "k{\(bucket)}" }

  /// What must be there when a script writes to a bucket: its markers, except for the rebuilder.
  public func guardKey(_ bucket: Int) -> String { isRebuilding ? "b{\(bucket)}" : markers(bucket) }

  /// The same for the bucket that a device lies in.
  public func guardKey(ofDevice token: String) -> String { guardKey(bucket(token)) }

  /// Held by whoever rebuilds.
  public static let rebuild: StaticString = "rebuild"

  /// The number of a new bucket, its field `i`: the version of this layout, and eight random bytes.
  public static func bucketNumber() -> [UInt8] { [1] + RandomBytes.make(count: 8) }

  private func bucket(_ name: String) -> Int {
    var name = name
    return name.withUTF8 { bucket(of: UnsafeRawBufferPointer($0)) }
  }
}

import Cryptography
import Notifications
import Redis

/// Every key that Carillon keeps in Redis.
///
/// These scripts write to a bucket only if Redis has its markers: those of `Judge`, `Registrations` and `Schedules` but for `removeScript`,
/// `Recipients.pageScript`, `Presences.enterScript` and `Presences.refreshScript`.
/// The script of `Markers` also compares the number of the bucket. During a rebuild, the rebuilder's scripts look for `b{B}` instead.
///
/// These write without that check, and do no harm in a lost bucket. `leaveScript` and `gapScript` change only what still belongs to the
/// session.
/// `evictScript` and the deletions change only entries that exist, and `Schedules.removeScript` removes only a due time, or a key of another
/// type, and notes under an empty name that due times are missing. A result expires soon in any case.
/// A person's set lies in another bucket than the device, so adding and removing a device cannot check. The judge knows whose device it is.
///
/// | key | type | what | written by |
/// |---|---|---|---|
/// | `d{B}TOKEN` | hash | a device: `p` presence, `u` owner, `a` the sets that it belongs to, `r` registration, `l` locale, `z` time zone, `w` window of recent ids, `g` gap, `f` floor, `c…` newest revision per collapse id | `Device` |
/// | `m{B}TOKEN` | hash | its mailbox: revision → delivery entry | `Mailbox` |
/// | `u{B}APPLICATION/USER` | sorted set, all scores 0 | the recipients of a person for an application: the tokens of their devices, in the order of their bytes | `Recipients` |
/// | `x{B}REVISION` | string, expiring | the result of the service extensions for the request with this revision of 20 bytes, or for one of its variants, whose number of 8 bytes follows; the bucket is that of the target | `Results` |
/// | `s{B}APPLICATION/TARGET` | hash | the schedules of a target for an application: identifier → state, as the record in `schedule`; under an empty name the floor: revision 20 and apns-id 16 of the newest request that has canceled all | `Schedules` |
/// | `n{B}APPLICATION/TARGET` | sorted set | the identifiers of those that are pending → the time of the request in milliseconds | `Schedules` |
/// | `e{B}APPLICATION/TARGET` | sorted set | the identifiers of those that have ended → when, in milliseconds, and half of one more until Kafka has all that was told of it | `Schedules` |
/// | `h{B}TOKEN`, `h{B}user:USER` | hash | the applications that have pending ones for a target, or had until lately → nothing: the judge looks whether there is one | `Schedules` |
/// | `t{B}PARTITION` | sorted set | what is due of those that a partition of requests has scheduled: the key of the record → when, in milliseconds | `Schedules` |
/// | `a{B}PARTITION` | hash | whose due times these are: application → how many | `Schedules` |
/// | `w{B}PARTITION` | hash | the due times that no application holds, since no device was registered for the target: the key of the record → nothing | `Schedules` |
/// | `j{B}PARTITION` | sorted set, expiring | the records of requests that there was no room for, at most 4,096: timestamp 8, partition 4, offset 8 → when, in milliseconds | `Schedules` |
/// | `o{B}PARTITION` | sorted set | ended schedules that are to be followed up: the key of the record → when, in milliseconds | `Schedules` |
/// | `y{B}` | hash | by which version of the time zone database the due times were computed: partition → version | `Schedules` |
/// | `k{B}` | hash | the markers of a bucket: `i` its number, `qN` and `dN` how far partition N of requests and of devices is applied, `qN/L` the same but for requests that wait for a schedule in a layout after L | `Markers` |
/// | `b{B}` | string | a bucket that is being rebuilt, in place of its markers | `Rebuild` |
/// | `rebuild` | string | who is rebuilding, expiring | `Rebuild` |
/// | `tries` | hash | how often each partition was begun at its marker, which group of records a process works on, and how many processes ended with which record alone | `CrashLoops` |
/// | `cluster` | hash | `kafka`, `prefix`, `buckets`, `name`: the Kafka cluster and the topics that this Redis belongs to, and the settings that its workers share; `layout`, `needs`: the newest and the oldest layout that may lie here | `ClusterIdentity` |
/// | `lanes` | sorted set | fan-out lanes: `PARTITION:LANE` → the time of the last heartbeat in milliseconds | `Lanes` |
/// | `members/GROUP` | sorted set | the static members of the transform workers' group: `group.instance.id` → the time of the last heartbeat in milliseconds | `GroupHeartbeats` |
/// | `workers` | sorted set | the workers' processes: name → the time of the last heartbeat in milliseconds | `Workers` |
/// | `{workers}reports` | hash | the report of each: name → JSON | `Workers` |
///
/// `B` is the bucket: the hash tag that puts the keys of one script call into one slot of a Redis Cluster. The bucket of a device is a hash
/// of its token, the bucket of a user is a hash of the user's id.
/// The number of buckets is fixed for the cluster's life.
///
/// A bucket without `k{B}` is lost, or was never created: no script that looks for markers changes it.
///
/// Fields of a device, all in network byte order:
///
/// | field | bytes |
/// |---|---|
/// | `p` | partition of `deliveries` 4, session generation 8; empty if the device has left, and `-` if a request was judged for it since then |
/// | `u` | hash of the user 8 (zeros: nobody), since when in milliseconds 8, hash of the application 8; then the horizon 20 of `f`, where there is one |
/// | `a` | the keys of the sets that it belongs to, with a line feed between two: its person's, or none |
/// | `r` | digest of the registration 8, partition 4 and offset 8 of its record in `devices` |
/// | `l`, `z` | the locale and the time zone as it registered them; absent where it has none |
/// | `w` | when its generation began in seconds 4, bytes of the former generation 2, then per id: hash of the apns-id 8, of its source 4 |
/// | `g` | oldest and newest revision that were evicted and that the device does not know of yet, 20 each |
/// | `f` | hash of the application 8; the horizon: newest revision 20 of the removals of all, and of those by an apns-id; and where all were removed the floor: revision 20, apns-id 16 |
/// | `c` and the collapse id | newest revision 20, its apns-id 16, and what it superseded in the mailbox: revision 20, apns-id 16 |
struct Keys: Sendable {
  /// How many buckets the cluster has.
  let buckets: Int
  /// Whether the rebuilder uses the keys.
  let isRebuilding: Bool

  init(buckets: Int, isRebuilding: Bool = false) {
    precondition((1...16384).contains(buckets), "the number of buckets is checked where the settings are read")
    self.buckets = buckets
    self.isRebuilding = isRebuilding
  }

  /// The sorted set of the fan-out lanes.
  static let lanes = "lanes"
  /// The sorted set of the static members of a group.
  static func members(ofGroup group: String) -> String { "members/\(group)" }
  /// The sorted set of the workers.
  static let workers = "workers"
  /// The hash of their reports; its hash tag puts it beside the workers.
  static let reports = "{workers}reports"
  /// Whose Redis it is.
  static let cluster = "cluster"
  /// The lock of the rebuilder.
  static let rebuild = "rebuild"
  /// The counts against crash loops.
  static let tries = "tries"

  /// The bucket of a device's token or a user's id.
  func bucket(of name: UnsafeRawBufferPointer) -> Int { Int(StableHash.hash(name, seed: 0) % UInt64(buckets)) }

  /// The same of a text.
  func bucket(of name: String) -> Int {
    var name = name
    return name.withUTF8 { bucket(of: UnsafeRawBufferPointer($0)) }
  }

  /// The device's hash.
  func device(_ token: String) -> String { "d{\(bucket(of: token))}\(token)" }

  /// The device's mailbox.
  func mailbox(_ token: String) -> String { "m{\(bucket(of: token))}\(token)" }

  /// The bucket of a target: of its device's token, or of its user's id.
  func bucket(ofTarget target: Name) -> Int {
    target.withBytes { bytes in
      let scheme = bytes.firstIndex(of: UInt8(ascii: ":")).map { $0 + 1 } ?? 0
      return bucket(of: UnsafeRawBufferPointer(rebasing: bytes[scheme...]))
    }
  }

  /// The applications that have pending schedules for a target. Of a device it differs in the first letter from the device's hash.
  func applicationsWithSchedules(ofTarget target: Name) -> String {
    "h{\(bucket(ofTarget: target))}\(name(ofTarget: target, "device:") ?? target.text)"
  }

  /// Where it shows whether a device is registered for a target and an application: the device's hash, or the recipients of the person.
  func registrations(ofTarget target: Name, application: Name) -> String {
    name(ofTarget: target, "device:").map(device)
      ?? recipients(user: Name(name(ofTarget: target, RecipientSet.scheme) ?? target.text), application: application)
  }

  /// What follows the scheme of a target, by bytes: a mark at the beginning of the name would belong to the colon's character. Nil if the
  /// target has another scheme.
  func name(ofTarget target: Name, _ scheme: String) -> String? {
    target.utf8.starts(with: scheme.utf8) ? String(decoding: target.utf8.dropFirst(scheme.utf8.count), as: UTF8.self) : nil
  }

  /// What there is of the schedules of one target for one application.
  enum ScheduleSet: String, CaseIterable {
    case all = "s"
    case pending = "n"
    case ended = "e"
  }

  /// A set of the schedules of a target for an application.
  func schedules(_ kind: ScheduleSet, of key: ScheduleKey) -> String {
    "\(kind.rawValue){\(bucket(ofTarget: key.target))}\(key.application)/\(key.target)"
  }

  /// The due times of the schedules of a partition of requests.
  func dueTimes(_ bucket: Int, partition: UInt32) -> String { "t{\(bucket)}\(partition)" }

  /// The ended schedules that are to be followed up: those whose newest request lies in a partition of requests.
  func followUps(_ bucket: Int, partition: UInt32) -> String { "o{\(bucket)}\(partition)" }

  /// The version of the time zone database by which each partition's due times were computed.
  func zoneData(_ bucket: Int) -> String { "y{\(bucket)}" }

  /// The markers of a bucket.
  func markers(_ bucket: Int) -> String { "k{\(bucket)}" }

  /// The guard of a bucket during a rebuild.
  func rebuilt(_ bucket: Int) -> String { "b{\(bucket)}" }

  /// The key that shows that a bucket is not lost. Its markers, or the guard during a rebuild.
  func guardKey(_ bucket: Int) -> String { isRebuilding ? rebuilt(bucket) : markers(bucket) }

  /// What scripts about a device get: its hash, its mailbox, and the guard of their bucket.
  func ofDevice(_ token: String) -> [String] { [device(token), mailbox(token), guardKey(ofDevice: token)] }

  /// The guard of the bucket that a device lies in.
  func guardKey(ofDevice token: String) -> String { guardKey(bucket(of: token)) }

  /// The number of a new bucket, its field `i`. The version of this layout, and eight random bytes.
  static func bucketNumber() -> [UInt8] { [UInt8(Layout.bucket.newest)] + RandomBytes.make(count: bucketNumberBytes - 1) }

  /// The length of such a number.
  static let bucketNumberBytes = 9
}

extension RedisCommand {
  /// Begins an argument that is a key in a bucket. The caller appends the name and ends the argument.
  mutating func beginKey(_ kind: String, _ bucket: Int) {
    beginArgument()
    extend(kind)
    extend("{")
    extend(bucket)
    extend("}")
  }

  /// Appends a key in a bucket.
  mutating func appendKey(_ kind: String, _ bucket: Int, _ name: UnsafeRawBufferPointer) {
    beginKey(kind, bucket)
    extend(name)
    endArgument()
  }

  /// Begins a call of a script with its keys.
  mutating func begin(_ script: RedisScript, keys: [String]) {
    begin(script, keys: keys.count)
    for key in keys { append(key) }
  }
}

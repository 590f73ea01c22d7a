public import Cryptography
public import Extensions
public import Kafka
public import Notifications
public import Store
public import Worker

/// The settings of a transform lane.
public struct TransformSettings: Sendable {
  /// The defaults, also those of the command's settings.
  public enum Defaults {
    /// The consumer group.
    public static let group = "carillon-transform"
    /// Maximum number of records in flight.
    public static let inFlight = 100_000
    /// The session timeout, in milliseconds.
    public static let sessionMilliseconds = 6_000
    /// Tries of a record that cannot be processed.
    public static let tries = 5
    /// Entries that a mailbox keeps.
    public static let mailboxBound = 100
    /// Entries that the mailbox of a connected device keeps.
    public static let connectedMailboxBound = 1_000
    /// Recent apns-ids of a device.
    public static let rememberedIDs = 32
    /// How late an occurrence of a repeating trigger may fire, in milliseconds: 15 minutes, as on a phone.
    public static let lateMilliseconds: Int64 = 900_000
    /// Schedules of a partition in a bucket.
    public static let scheduledInBucket = 20_000
    /// Newest revisions of a device.
    public static let rememberedRevisions = 256
  }

  /// The cluster's topics.
  public var topics: Topics
  /// Where Kafka is.
  public var kafka: KafkaConfiguration
  /// Where Redis is, and how its keys are spread.
  public var store: StoreConfiguration
  /// The consumer group.
  public var group = Defaults.group
  /// The longest lifetime of a notification, in seconds.
  public var longestLifetime = RequestLimits().longestLifetime
  /// The largest payload, in bytes.
  public var payloadBytes = RequestLimits().payloadBytes
  /// How many seconds after its publication a request with `apns-expiration: 0` may still be tried.
  public var oneAttemptSeconds = ExpirationRule.oneAttemptSeconds
  /// Entries that a mailbox keeps.
  public var mailboxBound = Defaults.mailboxBound
  /// Entries that the mailbox of a connected device keeps; at least as many as that of another one.
  public var connectedMailboxBound = Defaults.connectedMailboxBound
  /// Recent apns-ids that are remembered for each device.
  public var rememberedIDs = Defaults.rememberedIDs
  /// Newest revisions that are remembered for each device, one for each collapse id.
  public var rememberedRevisions = Defaults.rememberedRevisions
  /// Maximum number of records in flight; at the limit partitions wait.
  public var inFlight = Defaults.inFlight
  /// Maximum bytes that records in flight and their results retain; at the limit partitions wait.
  ///
  /// A record counts 2 · (value + 256) bytes until only the journal is outstanding for its batch. With values of more than some 245 bytes
  /// this limit is reached before the default of `inFlight`, unless many records wait for the journal.
  public var inFlightBytes = 96 << 20
  /// After this time without a sign of life from a worker its partitions go to others, in milliseconds. Brokers may require more. With
  /// `members` it takes less.
  public var sessionMilliseconds = Defaults.sessionMilliseconds
  /// When a partition is checked after it began or resumed, in milliseconds. If none of its records is in flight then, none crashes its
  /// worker: the crash would have happened by then.
  public var healthyMilliseconds = 15_000
  /// The permit to try a group of records that may end the process: one for all its lanes.
  public var permit = CrashLoopPermit()
  /// Beats for the lanes of the process, and removes silent members from the group; nil where that is left to Kafka.
  public var members: MemberWatch?
  /// Tries of a record that cannot be processed, before it goes to the dead letters.
  public var tries = Defaults.tries
  /// How late an occurrence of a repeating trigger may fire, in milliseconds, unless the trigger says otherwise.
  public var lateMilliseconds = Defaults.lateMilliseconds
  /// How far ahead of the worker's clock the record of a firing may be, in milliseconds. Other producers may write one with any time, so only
  /// tests allow more than 0.
  public var clockToleranceMilliseconds: Int64 = 0
  /// How many schedules may be due that one partition of requests has scheduled in one bucket of Redis.
  public var scheduledInBucket = Defaults.scheduledInBucket
  /// How long Redis may take to answer at the start, in milliseconds.
  public var startMilliseconds = 30_000
  /// How long Kafka may take to answer a question about topics, groups or offsets, in milliseconds.
  public var askMilliseconds = Admin.standardMilliseconds
  /// The service extensions that mutable notifications pass.
  public var extensions = InForce(ExtensionsFile())
  /// The cluster's name, which is in the source of events: `/carillon/NAME`.
  public var cluster: String
  /// The worker's name in events.
  public var worker: Name

  /// Settings with their defaults.
  public init(topics: Topics, kafka: KafkaConfiguration, store: StoreConfiguration, cluster: String, worker: Name) {
    (self.topics, self.kafka, self.store, self.cluster, self.worker) = (topics, kafka, store, cluster, worker)
  }

  /// The rules for requests.
  var limits: RequestLimits {
    let standard = RequestLimits()
    return RequestLimits(
      payloadBytes: payloadBytes, voipPayloadBytes: max(payloadBytes, standard.voipPayloadBytes), longestLifetime: longestLifetime)
  }

  /// How many entries mailboxes keep.
  var mailboxBounds: MailboxBounds { MailboxBounds(mailboxBound, connected: connectedMailboxBound) }

  /// How much is remembered of a device.
  var judgeLimits: Judge.Limits {
    Judge.Limits(lifetimeMilliseconds: longestLifetime * 1000, mailbox: mailboxBounds, ids: rememberedIDs, revisions: rememberedRevisions)
  }
}

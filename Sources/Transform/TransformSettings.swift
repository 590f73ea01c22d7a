public import Kafka
import Notifications
public import Store
public import Worker

/// What a transform lane needs to know.
public struct TransformSettings: Sendable {
  /// The cluster's topics.
  public var topics: Topics
  /// Where Kafka is.
  public var kafka: KafkaConfiguration
  /// Where Redis is, and how its keys are spread.
  public var store: StoreConfiguration
  /// The consumer group.
  public var group: String
  /// The longest lifetime of a notification, in seconds.
  public var longestLifetime: Int64
  /// The largest payload, in bytes.
  public var payloadBytes: Int
  /// How many seconds after its publication a request with `apns-expiration: 0` may still be tried.
  public var oneAttemptSeconds: Int64
  /// Entries that a mailbox keeps.
  public var mailboxBound: Int
  /// Recent apns-ids that are remembered for each device.
  public var rememberedIDs: Int
  /// Newest revisions that are remembered for each device, one for each collapse id.
  public var rememberedRevisions: Int
  /// Unfinished records at most; beyond it partitions wait.
  public var inFlight: Int
  /// After this long without a word from a worker its partitions go to others, in milliseconds; more where the brokers ask for more.
  public var sessionMilliseconds = 2_000
  /// Tries of a record that cannot be processed, before it goes to the dead letters.
  public var tries = 5
  /// How long Redis may take to answer at the start, in milliseconds.
  public var startMilliseconds: Int
  /// What events call the place they come from: `/carillon/NAME`.
  public var cluster: String
  /// What events call the worker.
  public var worker: String

  /// Settings with the defaults of the command line.
  public init(
    topics: Topics, kafka: KafkaConfiguration, store: StoreConfiguration, group: String = "carillon-transform",
    longestLifetime: Int64 = 30 * 86400, payloadBytes: Int = 4096, oneAttemptSeconds: Int64 = 30, mailboxBound: Int = 100,
    rememberedIDs: Int = 32, rememberedRevisions: Int = 256, inFlight: Int = 50_000, startMilliseconds: Int = 30_000,
    cluster: String = "carillon", worker: String = "transform"
  ) {
    self.topics = topics
    self.kafka = kafka
    self.store = store
    self.group = group
    self.longestLifetime = longestLifetime
    self.payloadBytes = payloadBytes
    self.oneAttemptSeconds = oneAttemptSeconds
    self.mailboxBound = mailboxBound
    self.rememberedIDs = rememberedIDs
    self.rememberedRevisions = rememberedRevisions
    self.inFlight = inFlight
    self.startMilliseconds = startMilliseconds
    self.cluster = cluster
    self.worker = worker
  }

  /// The rules for requests.
  var limits: RequestLimits {
    RequestLimits(payloadBytes: payloadBytes, voipPayloadBytes: max(payloadBytes, 5120), longestLifetime: longestLifetime)
  }

  /// How much is remembered of a device.
  var judgeLimits: Judge.Limits {
    Judge.Limits(lifetimeMilliseconds: longestLifetime * 1000, mailbox: mailboxBound, ids: rememberedIDs, revisions: rememberedRevisions)
  }
}

package import Cryptography
package import Extensions
package import Kafka
package import Notifications
package import Store
package import Worker

/// The settings of a transform lane.
package struct TransformSettings: Sendable {
  /// The defaults, also those of the command's settings.
  package enum Defaults {
    /// The consumer group.
    package static let group = "carillon-transform"
    /// Maximum number of records in flight.
    package static let inFlight = 100_000
    /// The session timeout, in milliseconds.
    package static let sessionMilliseconds = 6_000
    /// Tries of a record that cannot be processed.
    package static let tries = 5
    /// Entries that a mailbox keeps.
    package static let mailboxBound = 100
    /// Entries that the mailbox of a connected device keeps.
    package static let connectedMailboxBound = 1_000
    /// Recent apns-ids of a device.
    package static let rememberedIDs = 32
    /// How late an occurrence of a repeating trigger may fire, in milliseconds: 15 minutes, as on a phone.
    package static let lateMilliseconds: Int64 = 900_000
    /// Schedules of a partition in a bucket.
    package static let scheduledInBucket = 20_000
    /// Newest revisions of a device.
    package static let rememberedRevisions = 256
  }

  /// The cluster's topics.
  var topics: Topics
  /// Where Kafka is.
  package var kafka: KafkaConfiguration
  /// Where Redis is, and how its keys are spread.
  var store: StoreConfiguration
  /// The consumer group.
  package var group = Defaults.group
  /// The longest lifetime of a notification, in seconds.
  package var longestLifetime = RequestLimits().longestLifetime
  /// The largest payload, in bytes.
  package var payloadBytes = RequestLimits().payloadBytes
  /// How many seconds after its publication a request with `apns-expiration: 0` may still be tried.
  package var oneAttemptSeconds = ExpirationRule.oneAttemptSeconds
  /// Entries that a mailbox keeps.
  package var mailboxBound = Defaults.mailboxBound
  /// Entries that the mailbox of a connected device keeps; at least as many as that of another one.
  package var connectedMailboxBound = Defaults.connectedMailboxBound
  /// Recent apns-ids that are remembered for each device.
  package var rememberedIDs = Defaults.rememberedIDs
  /// Newest revisions that are remembered for each device, one for each collapse id.
  package var rememberedRevisions = Defaults.rememberedRevisions
  /// Maximum number of records in flight; at the limit partitions wait.
  package var inFlight = Defaults.inFlight
  /// Maximum bytes that records in flight and their results retain; at the limit partitions wait.
  ///
  /// A record counts 2 · (value + 256) bytes until only the journal is outstanding for its batch. With values of more than some 245 bytes
  /// this limit is reached before the default of `inFlight`, unless many records wait for the journal.
  var inFlightBytes = 96 << 20
  /// After this time without a sign of life from a worker its partitions go to others, in milliseconds. Brokers may require more. With
  /// `members` it takes less.
  package var sessionMilliseconds = Defaults.sessionMilliseconds
  /// When a partition is checked after it began or resumed, in milliseconds. If none of its records is in flight then, none crashes its
  /// worker: the crash would have happened by then.
  var healthyMilliseconds = 15_000
  /// The permit to try a group of records that may end the process: one for all its lanes.
  package var permit = CrashLoopPermit()
  /// Beats for the lanes of the process, and removes silent members from the group; nil where that is left to Kafka.
  package var members: MemberWatch?
  /// Tries of a record that cannot be processed, before it goes to the dead letters.
  package var tries = Defaults.tries
  /// How late an occurrence of a repeating trigger may fire, in milliseconds, unless the trigger says otherwise.
  package var lateMilliseconds = Defaults.lateMilliseconds
  /// How far ahead of the worker's clock the record of a firing may be, in milliseconds. Other producers may write one with any time, so only
  /// tests allow more than 0.
  var clockToleranceMilliseconds: Int64 = 0
  /// How many schedules may be due that one partition of requests has scheduled in one bucket of Redis.
  package var scheduledInBucket = Defaults.scheduledInBucket
  /// How long Redis may take to answer at the start, in milliseconds.
  var startMilliseconds = 30_000
  /// How long Kafka may take to answer a question about topics, groups or offsets, in milliseconds.
  var askMilliseconds = Admin.standardMilliseconds
  /// The service extensions that mutable notifications pass.
  package var extensions = InForce(ExtensionsFile())
  /// The cluster's name, which is in the source of events: `/carillon/NAME`.
  var cluster: String
  /// The worker's name in events.
  var worker: Name

  /// Settings with their defaults.
  package init(topics: Topics, kafka: KafkaConfiguration, store: StoreConfiguration, cluster: String, worker: Name) {
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

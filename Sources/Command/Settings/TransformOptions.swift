import Cryptography
import Extensions
import Kafka
import Notifications
import Transform
import Worker

/// The settings of the transform stage.
enum TransformOptions {
  static let group = Setting(
    "transform.group", .string("NAME"), default: TransformSettings.Defaults.group,
    "The consumer group: workers of one group share the requests.")
  static let inFlight = Setting(
    "transform.in-flight", .integer(1...1_000_000), default: TransformSettings.Defaults.inFlight,
    "Maximum number of a lane's records in flight; at the limit its partitions wait. 100,000 requests a second, with a round trip to Kafka "
      + "of 200 ms, need 60,000: each waits for its events, and then for the journal.")
  static let mailbox = Setting(
    "mailbox.bound", flag: "mailbox-bound", .integer(1...10_000), default: TransformSettings.Defaults.mailboxBound,
    "Notifications that a mailbox keeps for its device. Further ones evict the oldest, several at a time, so there may be up to 16 more. "
      + "There may be still more until Kafka has the events of evicted ones, and after a rebuild until the next notifications come.")
  static let connectedMailbox = Setting(
    "mailbox.connected-bound", flag: "mailbox-connected-bound", .integer(1...10_000),
    default: TransformSettings.Defaults.connectedMailboxBound,
    "As mailbox.bound, for a device that is connected, so that a burst does not evict what the device is about to take; at least mailbox.bound. "
      + "When the device leaves, the next notifications for it evict what is beyond mailbox.bound.")
  static let rememberedIDs = Setting(
    "device.remembered-ids", .integer(4...1024), default: TransformSettings.Defaults.rememberedIDs,
    "The recent apns-ids that are kept for each device, against duplicates.")
  static let rememberedRevisions = Setting(
    "device.remembered-revisions", .integer(1...10_000), default: TransformSettings.Defaults.rememberedRevisions,
    "The newest revisions that are kept for each device, one for each collapse id, against stale updates.")

  static let late = Setting(
    "schedules.late", flag: "late", .duration(.seconds(1)...(.seconds(30 * 86_400))),
    default: .milliseconds(TransformSettings.Defaults.lateMilliseconds),
    "How late an occurrence of a trigger that repeats may fire, unless the trigger says otherwise: a later one is skipped.")
  static let scheduled = Setting(
    "schedules.bound", flag: "scheduled-bound", .integer(1...10_000_000), default: TransformSettings.Defaults.scheduledInBucket,
    "How many requests may wait for their time of those that one partition has scheduled in one bucket of Redis. When all of it is used, an application has room up to an equal share of it. A sixteenth of it is for applications and people that no device is registered for. Further ones are rejected with TooManyRequests."
  )

  static let tries = Setting(
    "transform.tries", .integer(1...100), default: TransformSettings.Defaults.tries,
    "Attempts to process a record before it goes to the dead letters. Failures of a dependency do not count.")

  static let session = Setting(
    "transform.session-timeout", .duration(.milliseconds(500)...(.seconds(300))),
    default: .milliseconds(TransformSettings.Defaults.sessionMilliseconds),
    "A worker that is silent for this long loses its partitions to others, if no other worker has noticed that before: they take one to two seconds, as long as Redis answers. Brokers allow less than 6 s only with a lower group.min.session.timeout.ms; otherwise their minimum applies. A kafka.session.timeout.ms goes before it."
  )

  static let extensions = Setting<String?>(
    "transform.extensions", .file,
    "The file of the service extensions for applications' mutable notifications: see 'carillon extensions check'. It is read again when it changes, and on SIGHUP."
  )

  static let stage = SettingGroup(
    "Transform", [extensions],
    advanced: [group, inFlight, tries, session, mailbox, connectedMailbox, rememberedIDs, rememberedRevisions, late, scheduled])
}

extension TransformSettings {
  /// Reads the settings for the lane of this name.
  ///
  /// - Parameters:
  ///   - permit: that of the process, if its lanes read requests.
  ///   - members: that of the process, where workers remove silent ones from their group.
  init(
    _ values: SettingValues, _ place: ClusterPlace, worker: Name, extensions: InForce<ExtensionsFile>,
    permit: CrashLoopPermit = CrashLoopPermit(),
    members: MemberWatch? = nil
  ) {
    self.init(topics: place.topics, kafka: place.kafka, store: place.store, cluster: place.name, worker: worker)
    group = values[TransformOptions.group]
    longestLifetime = Int64(values[RequestSettings.longestLifetime].wholeMilliseconds / 1000)
    payloadBytes = values[RequestSettings.payloadBytes]
    oneAttemptSeconds = Int64(values[RequestSettings.oneAttempt].wholeMilliseconds / 1000)
    mailboxBound = values[TransformOptions.mailbox]
    connectedMailboxBound = values[TransformOptions.connectedMailbox]
    rememberedIDs = values[TransformOptions.rememberedIDs]
    rememberedRevisions = values[TransformOptions.rememberedRevisions]
    lateMilliseconds = Int64(values[TransformOptions.late].wholeMilliseconds)
    scheduledInBucket = values[TransformOptions.scheduled]
    inFlight = values[TransformOptions.inFlight]
    // librdkafka's own property goes before, and what removes silent members has to know it.
    sessionMilliseconds = kafka.properties["session.timeout.ms"].flatMap { Int($0) } ?? values[TransformOptions.session].wholeMilliseconds
    tries = values[TransformOptions.tries]
    self.extensions = extensions
    self.permit = permit
    self.members = members
    // The group shows this name of each member, so two workers of one host can be told apart.
    kafka.clientID = worker.text
  }
}

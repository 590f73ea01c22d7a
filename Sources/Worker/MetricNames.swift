import EventLoop

/// Every metric that Carillon shows, as a table for operators.
public enum MetricNames {
  /// When the process began.
  public static let processStart = Metric<Gauge>("process_start_time_seconds", "When the process began, in seconds since 1970.")
  /// Seconds of processor time.
  public static let processCPU = Metric<Counter>(
    "process_cpu_seconds_total", "Processor time that the process has used, its own and the system's for it, in seconds.")
  /// Memory that lies in the machine's.
  public static let processResidentMemory = Metric<Gauge>(
    "process_resident_memory_bytes", "Memory of the process that lies in the machine's, in bytes.")
  /// Memory that is reserved.
  public static let processVirtualMemory = Metric<Gauge>(
    "process_virtual_memory_bytes", "Memory that the process has reserved, used or not, in bytes.")
  /// Open descriptors.
  public static let processOpenDescriptors = Metric<Gauge>("process_open_fds", "Descriptors that the process has open: connections, files.")
  /// Their bound.
  public static let processMaximumDescriptors = Metric<Gauge>("process_max_fds", "Descriptors that the process may have open.")
  /// Whether the process is ready.
  public static let ready = Metric<Gauge>("carillon_ready", "1 when the process is ready as /readyz says, else 0.")
  /// Why it is not.
  public static let conditions = Metric<Gauge>(
    "carillon_ready_condition", "Each condition that /readyz lists: 1 when it is ready, else 0.", labels: ["lane", "condition"])
  /// What was built.
  public static let build = Metric<Gauge>("carillon_build_info", "Always 1; the labels say what was built.", labels: ["version", "role"])
  /// Lines that the log had no room for.
  public static let logLinesDropped = Metric<Counter>(
    "carillon_log_lines_dropped_total", "Log lines dropped because they were not read as fast as they were written.")
  /// Lanes that started again.
  public static let laneRestarts = Metric<Counter>(
    "carillon_lane_restarts_total", "Lanes that started again because a client of Kafka had failed for good.")
  /// Settings that differ from those of other workers.
  public static let settingsDiffering = Metric<Gauge>(
    "carillon_settings_differing", "Settings that should be the same in all workers and have another value in some than here.")
  /// Requests that web pages may have made.
  public static let adminRefused = Metric<Counter>(
    "carillon_admin_refused_total", "Requests to the admin port that were refused because a web page may have made them, by the field.",
    labels: ["field"])

  // What every stage has of Redis and Kafka.

  /// Redis' errors.
  public static let redisErrors = Metric<Counter>(
    "carillon_redis_errors_total", "Calls to Redis and attempts to connect to it that failed, by the kind of error.", labels: ["kind"])
  /// Kafka's errors.
  public static let kafkaErrors = Metric<Counter>(
    "carillon_kafka_errors_total", "Errors of Kafka clients and records that Kafka did not take, by the kind of error.",
    labels: ["kind"])
  /// Records that wait in a producer.
  public static let producerRecords = Metric<Gauge>(
    "carillon_producer_queue_records", "Records that a lane has given to a producer and that Kafka has not acknowledged.",
    labels: ["lane", "producer"])
  /// Their bound.
  public static let producerRecordsLimit = Metric<Gauge>(
    "carillon_producer_queue_records_limit", "Records that may wait in a producer.", labels: ["lane", "producer"])
  /// Bytes that wait in a producer.
  public static let producerBytes = Metric<Gauge>(
    "carillon_producer_queue_bytes", "Bytes of the keys and values of those records.", labels: ["lane", "producer"])
  /// Their bound.
  public static let producerBytesLimit = Metric<Gauge>(
    "carillon_producer_queue_limit_bytes", "Bytes of keys and values that may wait in a producer.", labels: ["lane", "producer"])
  /// How long a record has waited in a producer.
  public static let producerSeconds = Metric<Gauge>(
    "carillon_producer_queue_seconds", "For how long the oldest of those records has waited, at least; 0 where none does.",
    labels: ["lane", "producer"])
  /// Events, by what happened.
  public static let events = Metric<Counter>(
    "carillon_events_total", "Events given to Kafka, those emitted again included, by what happened.", labels: ["type"])
  /// Their bytes.
  public static let eventBytes = Metric<Counter>("carillon_event_bytes_total", "Bytes of those events' values.")

  // How long a request takes. The clocks of two machines may differ: what would be negative counts as 0.

  /// From the publication to durable outcomes.
  public static let transformed = Metric<Histogram>(
    "carillon_published_to_transformed_seconds",
    "From a request's publication until its outcomes are durable; one that comes again counts from then.", buckets: .ages)
  /// From the publication to the device's socket.
  public static let sentAfter = Metric<Histogram>(
    "carillon_published_to_sent_seconds",
    "From a request's publication until it was sent to a device, live or out of its mailbox; those that come again are left out.",
    labels: ["path"], buckets: .ages)
  /// From the publication to the device's acknowledgement.
  public static let acknowledgedAfter = Metric<Histogram>(
    "carillon_published_to_acknowledged_seconds",
    "From a request's publication until a device acknowledged it, sent live or out of its mailbox; those that come again are left out.",
    labels: ["path"], buckets: .ages)

  // Redis, as it tells of itself; looked at every ten seconds.

  /// What Redis has in memory.
  public static let redisMemory = Metric<Gauge>("carillon_redis_memory_bytes", "Memory that Redis takes.")
  /// What it may have.
  public static let redisMemoryLimit = Metric<Gauge>(
    "carillon_redis_memory_limit_bytes", "Memory that Redis may take; 0 where it sets itself no bound.")
  /// What it threw away.
  public static let redisEvictedKeys = Metric<Gauge>(
    "carillon_redis_evicted_keys", "Keys that Redis has thrown away for want of memory since it was started.")
  /// Whether it may be relied on.
  public static let redisSuitable = Metric<Gauge>(
    "carillon_redis_suitable", "1 where Redis keeps what it is given; 0 where its settings let it throw that away, or it just has.")
  /// How the clocks differ.
  public static let clockOffset = Metric<Gauge>(
    "carillon_clock_offset_seconds", "Seconds by which the machine's clock is ahead of that of Redis; below 0: behind it.")

  // The transform stage.

  /// Requests taken.
  public static let requests = Metric<Counter>("carillon_transform_requests_total", "Requests taken from Kafka.")
  /// What became of them.
  public static let verdicts = Metric<Counter>(
    "carillon_transform_verdicts_total",
    "What became of requests: each that was taken is counted once when it is done, also one for all devices of a person.",
    labels: ["verdict"])
  /// How requests were judged.
  public static let deviceVerdicts = Metric<Counter>(
    "carillon_transform_device_verdicts_total", "How requests were judged for each device that they were for, those done again included.",
    labels: ["verdict"])
  /// What service extensions made of notifications.
  public static let extensions = Metric<Counter>(
    "carillon_transform_extensions_total", "How mutable notifications fared at service extensions, each at each of its extensions.",
    labels: ["state"])
  /// Registrations taken.
  public static let registrations = Metric<Counter>(
    "carillon_transform_registrations_total", "Records of the devices topic taken from Kafka.")
  /// What became of them.
  public static let registrationVerdicts = Metric<Counter>(
    "carillon_transform_registration_verdicts_total",
    "What became of records of the devices topic: each that was taken is counted once when it is done.", labels: ["verdict"])
  /// Notifications evicted.
  public static let evicted = Metric<Counter>(
    "carillon_transform_evicted_total", "Notifications that full mailboxes gave up, those whose event was emitted again included.")
  /// Notifications canceled.
  public static let canceled = Metric<Counter>(
    "carillon_transform_canceled_total",
    "Notifications that a removal of all took out of mailboxes, those whose event was emitted again included.")
  /// What was found in Redis and is not ours.
  public static let unreadable = Metric<Counter>(
    "carillon_transform_unreadable_total", "What could not be read in Redis, and was removed there or written over.", labels: ["kind"])
  /// Offsets of batches that could not be read.
  public static let unreadableOffsets = Metric<Counter>(
    "carillon_transform_unreadable_offsets_total",
    "Offsets of requests and registrations passed over, since their batch cannot be decompressed or its checksum is wrong.")
  /// Requests with a field that has no effect.
  public static let unknownFields = Metric<Counter>(
    "carillon_transform_unknown_fields_total",
    "Accepted requests with a field that no rule knows, most likely a misspelt one, those done again included: a header that begins with apns-, or a member of aps or its alert.",
    labels: ["kind"])
  /// Records done again.
  public static let retries = Metric<Counter>(
    "carillon_transform_retries_total", "Records done again because Redis or Kafka failed meanwhile.")
  /// Records in the dead letters.
  public static let deadLetters = Metric<Counter>(
    "carillon_transform_dead_letters_total",
    "Records given to the dead letters, those given again included, by the letter's reason in lower case: bad_topic is BadTopic.",
    labels: ["reason"])
  /// Firings that were written.
  public static let firings = Metric<Counter>(
    "carillon_transform_firings_total", "Firings of schedules that were written to requests, those that came to nothing included.")
  /// Calls to Redis that failed.
  public static let redisFailures = Metric<Counter>("carillon_transform_redis_failures_total", "Calls to Redis that failed.")
  /// Delivery records that did not reach Kafka.
  public static let deliveriesLost = Metric<Counter>(
    "carillon_transform_deliveries_lost_total", "Delivery records that Kafka did not take; their devices find them in the mailbox.")
  /// Records of the journal.
  public static let journalRecords = Metric<Counter>(
    "carillon_transform_journal_records_total", "Records given to Kafka for the journal, those sent again included.")
  /// Their bytes.
  public static let journalBytes = Metric<Counter>("carillon_transform_journal_bytes_total", "Bytes of those records' values.")
  /// Markers raised.
  public static let markersRaised = Metric<Counter>(
    "carillon_transform_markers_raised_total", "Partitions whose markers were raised in all buckets of Redis.")
  /// Partitions that rewound.
  public static let rewinds = Metric<Counter>(
    "carillon_transform_rewinds_total", "Partitions that rewound to an earlier offset because Redis had lost something.")
  /// From arrival to durable outcomes.
  public static let latency = Metric<Histogram>(
    "carillon_transform_record_seconds", "From a record's arrival at the worker until its outcomes are durable.")

  /// How old the oldest unfinished record is.
  public static let lagSeconds = Metric<Gauge>(
    "carillon_lag_seconds",
    "How old the oldest record of a partition is that is not finished, 0 at the end; of the partitions that this worker has.",
    labels: ["topic", "partition"])
  /// Unfinished records of each partition.
  public static let lagRecords = Metric<Gauge>(
    "carillon_lag_records", "Records of a partition that are not finished; of the partitions that this worker has.",
    labels: ["topic", "partition"])
  /// Partitions that a lane works through.
  public static let assignedPartitions = Metric<Gauge>(
    "carillon_transform_assigned_partitions", "Partitions of requests and devices that this worker works through.")
  /// Partitions that there are.
  public static let partitions = Metric<Gauge>(
    "carillon_transform_partitions", "Partitions of requests and devices that there are, for all workers together.")
  /// Partitions of requests that wait for the journal.
  public static let unjournaledPartitions = Metric<Gauge>(
    "carillon_transform_partitions_without_journal",
    "Partitions of requests that wait, since the journal has no partition of their number.")
  /// How long a topic keeps its records.
  public static let retention = Metric<Gauge>(
    "carillon_topic_retention_seconds",
    "How long a topic keeps its records, as it was when the worker began; 0 where for ever, or where Kafka does not tell.",
    labels: ["topic"])
  /// Unfinished records that were begun.
  public static let inFlight = Metric<Gauge>(
    "carillon_transform_in_flight", "Records that were begun and are not finished, of all partitions.")
  /// Their bound.
  public static let inFlightLimit = Metric<Gauge>(
    "carillon_transform_in_flight_limit", "Records that may be in flight; beyond it partitions wait.")
  /// What unfinished records retain.
  public static let inFlightBytes = Metric<Gauge>(
    "carillon_transform_in_flight_bytes",
    "Bytes that the records in flight retain, with what was made from them, and what Kafka does not have of the journal.")
  /// Their bound.
  public static let inFlightBytesLimit = Metric<Gauge>(
    "carillon_transform_in_flight_bytes_limit", "Bytes that the records in flight may retain; beyond it partitions wait.")
  /// Records that were gone before they were read.
  public static let missed = Metric<Counter>(
    "carillon_transform_missed_total", "Offsets that were gone before they were read: the log began behind what was wanted next.")

  // The media that notifications come with.

  /// Bytes in the media folder.
  public static let mediaStoredBytes = Metric<Gauge>(
    "carillon_media_stored_bytes", "What the media folder had when this worker last looked through it, in bytes.")
  /// Files in the media folder.
  public static let mediaStoredFiles = Metric<Gauge>(
    "carillon_media_stored_files", "Files that the media folder had when this worker last looked through it.")
  /// Requests for media.
  public static let mediaServed = Metric<Counter>(
    "carillon_media_served_total", "Requests for media, by the status that they were answered with.", labels: ["status"])
  /// Bytes of media that were sent.
  public static let mediaServedBytes = Metric<Counter>("carillon_media_served_bytes_total", "Bytes of media that were read to be sent.")

  // The fan-out stage.

  /// Connections now.
  public static let connections = Metric<Gauge>("carillon_fanout_connections", "Connections that stand now.")
  /// Their bound.
  public static let connectionsLimit = Metric<Gauge>("carillon_fanout_connections_limit", "Connections that this worker takes.")
  /// How full mailboxes are.
  public static let mailboxEntries = Metric<Histogram>(
    "carillon_fanout_mailbox_entries", "Entries that a device's mailbox had whenever it was read.", buckets: .counts)
  /// Sessions opened.
  public static let sessions = Metric<Counter>("carillon_fanout_sessions_total", "Sessions whose hello was welcomed.")
  /// Sessions closed by the worker.
  public static let closed = Metric<Counter>(
    "carillon_fanout_closed_total", "Sessions that this worker closed, by the name of the close code.", labels: ["code"])
  /// Connections ended.
  public static let ended = Metric<Counter>("carillon_fanout_ended_total", "Connections that ended, by cause.", labels: ["cause"])
  /// Hellos that wait for their turn.
  public static let waitingHellos = Metric<Gauge>("carillon_fanout_waiting_hellos", "Hellos that wait for their turn.")
  /// Acknowledgements on their way to Kafka.
  public static let acknowledgements = Metric<Gauge>(
    "carillon_fanout_acknowledgements", "Acknowledgements whose events are on their way to Kafka.")
  /// What was turned away at a bound.
  public static let limited = Metric<Counter>(
    "carillon_fanout_limited_total", "What was turned away or put off because a bound was reached, by bound.", labels: ["limit"])
  /// Frames to and from devices.
  public static let frames = Metric<Counter>(
    "carillon_fanout_frames_total", "What was sent to devices and came from them.", labels: ["what"])
  /// Records of the lane's partition.
  public static let records = Metric<Counter>(
    "carillon_fanout_records_total", "Delivery records that were read, by what became of them: each is counted once.", labels: ["verdict"])
  /// How old the oldest record is that a lane has not taken.
  public static let fanOutLagSeconds = Metric<Gauge>(
    "carillon_fanout_lag_seconds",
    "How old the oldest record of a lane's partition of deliveries is that the lane has not taken, 0 at the end.",
    labels: ["lane", "partition"])
  /// Records that a lane has not taken.
  public static let fanOutLagRecords = Metric<Gauge>(
    "carillon_fanout_lag_records", "Records of a lane's partition of deliveries that the lane has not taken.",
    labels: ["lane", "partition"])
  /// What mailboxes had that is not as it was written.
  public static let mailboxDamage = Metric<Counter>(
    "carillon_fanout_mailbox_damage_total",
    "Fields of mailboxes that are not as they were written: an entry that cannot be read is removed, for a payload an event tells.",
    labels: ["part"])
}

extension MetricRegistry {
  /// Shows what every process has.
  public func showProcess(version: String, role: String, log: LogWriter) {
    make(MetricNames.processStart).set(Double(WallClock.milliseconds()) / 1000)
    show(MetricNames.processCPU) { ProcessUsage.now().processorSeconds }
    show(MetricNames.processResidentMemory) { ProcessUsage.now().residentBytes }
    show(MetricNames.processVirtualMemory) { ProcessUsage.now().virtualBytes }
    show(MetricNames.processOpenDescriptors) { ProcessUsage.openDescriptors }
    show(MetricNames.processMaximumDescriptors) { ProcessUsage.maximumDescriptors }
    make(MetricNames.build, version, MetricLabel.snakeCase(role)).set(1)
    show(MetricNames.logLinesDropped) { Double(log.dropped) }
  }

  /// Shows whether the process is ready, and what stands in the way.
  public func show(_ health: Health) {
    show(MetricNames.ready) { health.isReady ? 1 : 0 }
    showSet(MetricNames.conditions) {
      health.states.map { state in
        let lane = state.lane.isEmpty ? "process" : MetricLabel.snakeCase(state.lane)
        return (labels: [lane, MetricLabel.snakeCase(state.name)], value: state.isReady ? 1 : 0)
      }
    }
  }
}

import EventLoop

/// Every metric that Carillon shows, as a table for operators.
public enum MetricNames {
  /// When the process began.
  public static let processStart = Metric<Gauge>("process_start_time_seconds", "When the process began, in seconds since 1970.")
  /// Processor time.
  public static let processCPU = Metric<Counter>(
    "process_cpu_seconds_total", "Processor time that the process has used, in user and system mode, in seconds.")
  /// Resident memory.
  static let processResidentMemory = Metric<Gauge>(
    "process_resident_memory_bytes", "Resident memory of the process, in bytes.")
  /// Reserved memory.
  static let processVirtualMemory = Metric<Gauge>(
    "process_virtual_memory_bytes", "Memory that the process has reserved, used or not, in bytes.")
  /// Open descriptors.
  static let processOpenDescriptors = Metric<Gauge>("process_open_fds", "Open descriptors of the process: connections, files.")
  /// The limit of open descriptors.
  static let processMaximumDescriptors = Metric<Gauge>("process_max_fds", "Limit of the process's open descriptors.")
  /// Whether the process is ready.
  static let ready = Metric<Gauge>("carillon_ready", "1 if the process is ready, as /readyz says, else 0.")
  /// The conditions of readiness.
  static let conditions = Metric<Gauge>(
    "carillon_ready_condition", "Each condition that /readyz lists: 1 if it is ready, else 0.", labels: ["lane", "condition"])
  /// What was built.
  public static let build = Metric<Gauge>(
    "carillon_build_info", "Always 1; the labels name the version and the role.", labels: ["version", "role"])
  /// Lines that the log had no room for.
  static let logLinesDropped = Metric<Counter>(
    "carillon_log_lines_dropped_total", "Log lines dropped because they were not read as fast as they were written.")
  /// Lanes that started again.
  public static let laneRestarts = Metric<Counter>(
    "carillon_lane_restarts_total", "Restarts of lanes because a Kafka client had failed for good.")
  /// Settings that differ from those of other workers.
  public static let settingsDiffering = Metric<Gauge>(
    "carillon_settings_differing", "Settings that should be the same in all workers, and differ in some other worker.")
  /// The end of the certificate.
  public static let certificateExpiry = Metric<Gauge>(
    "carillon_tls_certificate_expiry_timestamp_seconds",
    "When the first of the certificate in force and those that have signed it expires, in seconds since 1970. Only with --tls-certificate.")
  /// Whether changed files cannot be used.
  public static let refusedFiles = Metric<Gauge>(
    "carillon_changed_files_refused",
    "1 while changed files cannot be used, so that what they held before stays in force, else 0: keys, certificate, extensions.",
    labels: ["files"])
  /// Requests that web pages may have made.
  static let adminRefused = Metric<Counter>(
    "carillon_admin_refused_total",
    "Requests to the admin port that were refused because a web page may have sent them, by the header field that shows it.",
    labels: ["field"])

  // Redis and Kafka, in both stages.

  /// Redis' errors.
  static let redisErrors = Metric<Counter>(
    "carillon_redis_errors_total", "Failed calls to Redis and failed attempts to connect, by the kind of error.", labels: ["kind"])
  /// Kafka's errors.
  public static let kafkaErrors = Metric<Counter>(
    "carillon_kafka_errors_total", "Errors of Kafka clients, and records that Kafka did not accept, by the kind of error.",
    labels: ["kind"])
  /// Records that wait in a producer.
  static let producerRecords = Metric<Gauge>(
    "carillon_producer_queue_records", "Records that wait in a lane's producer until Kafka acknowledges them.",
    labels: ["lane", "producer"])
  /// The limit of records in a producer.
  static let producerRecordsLimit = Metric<Gauge>(
    "carillon_producer_queue_records_limit", "Records that may wait in a producer.", labels: ["lane", "producer"])
  /// Bytes that wait in a producer.
  static let producerBytes = Metric<Gauge>(
    "carillon_producer_queue_bytes", "Bytes of the keys and values of the records that wait in a producer.", labels: ["lane", "producer"])
  /// The limit of bytes in a producer.
  static let producerBytesLimit = Metric<Gauge>(
    "carillon_producer_queue_limit_bytes", "Bytes of keys and values that may wait in a producer.", labels: ["lane", "producer"])
  /// How long a record has waited in a producer.
  static let producerSeconds = Metric<Gauge>(
    "carillon_producer_queue_seconds", "Least time that the oldest record has waited in a producer, in seconds; 0 if none waits.",
    labels: ["lane", "producer"])
  /// Events, by type.
  static let events = Metric<Counter>(
    "carillon_events_total", "Events produced to Kafka, repeated ones included, by type.", labels: ["type"])
  /// Bytes of events.
  static let eventBytes = Metric<Counter>("carillon_event_bytes_total", "Bytes of the produced events' values.")

  // How long a request takes. The clocks of two machines may differ: a negative time counts as 0.

  /// From the publication to durable outcomes.
  public static let transformed = Metric<Histogram>(
    "carillon_published_to_transformed_seconds",
    "Time from a request's publication until its outcomes are durable; a replayed one counts from its replay.", buckets: .ages)
  /// From the publication to the device's socket.
  public static let sentAfter = Metric<Histogram>(
    "carillon_published_to_sent_seconds",
    "Time from a request's publication until it was sent to a device, live or out of the mailbox; without replayed ones.",
    labels: ["path"], buckets: .ages)
  /// From the publication to the device's acknowledgement.
  public static let acknowledgedAfter = Metric<Histogram>(
    "carillon_published_to_acknowledged_seconds",
    "Time from a request's publication until a device acknowledged it, sent live or out of the mailbox; without replayed ones.",
    labels: ["path"], buckets: .ages)

  // Facts that Redis reports, read every ten seconds.

  /// Memory of Redis.
  static let redisMemory = Metric<Gauge>("carillon_redis_memory_bytes", "Memory that Redis uses, in bytes.")
  /// The limit of Redis' memory.
  static let redisMemoryLimit = Metric<Gauge>(
    "carillon_redis_memory_limit_bytes", "Memory that Redis may use (maxmemory), in bytes; 0 without a limit.")
  /// Keys that Redis evicted.
  static let redisEvictedKeys = Metric<Gauge>(
    "carillon_redis_evicted_keys", "Keys that Redis has evicted for lack of memory since it started.")
  /// Whether Redis keeps its data.
  static let redisSuitable = Metric<Gauge>(
    "carillon_redis_suitable", "1 if Redis keeps its data; 0 if its policy lets it evict keys, or it has just evicted some.")
  /// How the clocks differ.
  public static let clockOffset = Metric<Gauge>(
    "carillon_clock_offset_seconds", "Seconds by which the machine's clock is ahead of the clock of Redis; negative if it is behind.")

  // The transform stage.

  /// Requests taken.
  public static let requests = Metric<Counter>("carillon_transform_requests_total", "Requests taken from Kafka.")
  /// How requests ended.
  public static let verdicts = Metric<Counter>(
    "carillon_transform_verdicts_total",
    "Finished requests, by verdict: each is counted once, also a request for all devices of a person.",
    labels: ["verdict"])
  /// How requests were judged.
  public static let deviceVerdicts = Metric<Counter>(
    "carillon_transform_device_verdicts_total", "Verdicts of requests at each of their devices, retries included.",
    labels: ["verdict"])
  /// How calls of service extensions ended.
  public static let extensions = Metric<Counter>(
    "carillon_transform_extensions_total", "Service extensions that a mutable notification went through, by how each ended.",
    labels: ["state"])
  /// Registrations taken.
  public static let registrations = Metric<Counter>(
    "carillon_transform_registrations_total", "Records of the devices topic taken from Kafka.")
  /// How registrations ended.
  public static let registrationVerdicts = Metric<Counter>(
    "carillon_transform_registration_verdicts_total",
    "Finished records of the devices topic, by verdict: each is counted once.", labels: ["verdict"])
  /// Notifications evicted.
  public static let evicted = Metric<Counter>(
    "carillon_transform_evicted_total", "Notifications evicted from full mailboxes, repeated events included.")
  /// Notifications canceled.
  public static let canceled = Metric<Counter>(
    "carillon_transform_canceled_total",
    "Notifications that a removal of all canceled in mailboxes, repeated events included.")
  /// Unreadable values in Redis.
  public static let unreadable = Metric<Counter>(
    "carillon_transform_unreadable_total", "Unreadable values in Redis that were removed or overwritten.", labels: ["kind"])
  /// Offsets of batches that could not be read.
  public static let unreadableOffsets = Metric<Counter>(
    "carillon_transform_unreadable_offsets_total",
    "Offsets of requests and registrations skipped because their batch cannot be decompressed or its checksum is wrong.")
  /// Requests with a field that has no effect.
  public static let unknownFields = Metric<Counter>(
    "carillon_transform_unknown_fields_total",
    "Accepted requests with an unknown field, most likely a misspelt one, retries included: a header that begins with apns-, or a member of aps, its alert or its sound.",
    labels: ["kind"])
  /// Retried records.
  public static let retries = Metric<Counter>(
    "carillon_transform_retries_total", "Retries of records because Redis or Kafka had failed.")
  /// Dead letters, by reason.
  public static let deadLetters = Metric<Counter>(
    "carillon_transform_dead_letters_total",
    "Records produced to the dead letters, repeated ones included, by the letter's reason in lower case: bad_topic is BadTopic.",
    labels: ["reason"])
  /// Requests beyond a rate limit.
  public static let rateLimited = Metric<Counter>(
    "carillon_transform_rate_limited_total",
    "Requests rejected with TooManyRequests because they were beyond a rate limit of their application, by what had too many.",
    labels: ["scope"])
  /// Firings that were written.
  public static let firings = Metric<Counter>(
    "carillon_transform_firings_total", "Firings of schedules that were written to requests, those without an effect included.")
  /// Calls to Redis that failed.
  public static let redisFailures = Metric<Counter>("carillon_transform_redis_failures_total", "Failed calls to Redis.")
  /// Delivery records that did not reach Kafka.
  public static let deliveriesLost = Metric<Counter>(
    "carillon_transform_deliveries_lost_total",
    "Delivery records that Kafka did not accept; their devices find the notifications in the mailbox.")
  /// Records of the journal.
  public static let journalRecords = Metric<Counter>(
    "carillon_transform_journal_records_total", "Records produced to the journal, repeated ones included.")
  /// Bytes of the journal.
  public static let journalBytes = Metric<Counter>("carillon_transform_journal_bytes_total", "Bytes of the journal records' values.")
  /// Markers raised.
  public static let markersRaised = Metric<Counter>(
    "carillon_transform_markers_raised_total", "Partitions whose markers were raised in all buckets of Redis.")
  /// Partitions that rewound.
  public static let rewinds = Metric<Counter>(
    "carillon_transform_rewinds_total", "Partitions that rewound to an earlier offset because Redis had lost something.")
  /// From arrival to durable outcomes.
  public static let latency = Metric<Histogram>(
    "carillon_transform_record_seconds", "Time from a record's arrival at the worker until its outcomes are durable.")

  /// Age of the oldest unfinished record.
  public static let lagSeconds = Metric<Gauge>(
    "carillon_lag_seconds",
    "Age of the oldest unfinished record of each partition that this worker owns; 0 at the end.",
    labels: ["topic", "partition"])
  /// Unfinished records of each partition.
  public static let lagRecords = Metric<Gauge>(
    "carillon_lag_records", "Unfinished records of each partition that this worker owns.",
    labels: ["topic", "partition"])
  /// Partitions that the lanes own.
  public static let assignedPartitions = Metric<Gauge>(
    "carillon_transform_assigned_partitions", "Partitions of requests and devices that this worker owns.")
  /// All partitions.
  public static let partitions = Metric<Gauge>(
    "carillon_transform_partitions", "All partitions of requests and devices, whichever worker owns them.")
  /// Partitions of requests that wait for the journal.
  public static let unjournaledPartitions = Metric<Gauge>(
    "carillon_transform_partitions_without_journal",
    "Partitions of requests that wait because the journal has no partition of the same number.")
  /// How long a topic keeps its records.
  public static let retention = Metric<Gauge>(
    "carillon_topic_retention_seconds",
    "Retention of a topic when the worker started, in seconds; 0 if it keeps records for ever, or if it is unknown.",
    labels: ["topic"])
  /// Records in flight.
  public static let inFlight = Metric<Gauge>(
    "carillon_transform_in_flight", "Records in flight, begun and not finished, of all partitions.")
  /// The limit of records in flight.
  public static let inFlightLimit = Metric<Gauge>(
    "carillon_transform_in_flight_limit", "Limit of the records in flight; at the limit partitions wait.")
  /// Bytes that records in flight retain.
  public static let inFlightBytes = Metric<Gauge>(
    "carillon_transform_in_flight_bytes",
    "Bytes that the records in flight and their results retain, and of the journal those that Kafka does not have yet.")
  /// The limit of those bytes.
  public static let inFlightBytesLimit = Metric<Gauge>(
    "carillon_transform_in_flight_bytes_limit", "Limit of the bytes that the records in flight retain; at the limit partitions wait.")
  /// Records that were gone before they were read.
  public static let missed = Metric<Counter>(
    "carillon_transform_missed_total", "Offsets that Kafka deleted before they were read.")

  // Media of notifications.

  /// Bytes in the media folder.
  public static let mediaStoredBytes = Metric<Gauge>(
    "carillon_media_stored_bytes", "Bytes in the media folder when this worker last counted them.")
  /// Files in the media folder.
  public static let mediaStoredFiles = Metric<Gauge>(
    "carillon_media_stored_files", "Files in the media folder when this worker last counted them.")
  /// Requests for media.
  public static let mediaServed = Metric<Counter>(
    "carillon_media_served_total", "Requests for media, by the status of the answer.", labels: ["status"])
  /// Bytes of media that were sent.
  public static let mediaServedBytes = Metric<Counter>("carillon_media_served_bytes_total", "Bytes of media that were read for sending.")

  // The fan-out stage.

  /// Connections now.
  public static let connections = Metric<Gauge>("carillon_fanout_connections", "Open connections of devices.")
  /// The limit of connections.
  public static let connectionsLimit = Metric<Gauge>("carillon_fanout_connections_limit", "Limit of this worker's connections.")
  /// How full mailboxes are.
  public static let mailboxEntries = Metric<Histogram>(
    "carillon_fanout_mailbox_entries", "Entries of a device's mailbox, at each reading.", buckets: .counts)
  /// Sessions opened.
  public static let sessions = Metric<Counter>("carillon_fanout_sessions_total", "Sessions whose hello was welcomed.")
  /// Accepted credentials.
  public static let credentials = Metric<Counter>(
    "carillon_fanout_credentials_total", "Accepted credentials of devices, by the id (kid) of the key that has signed them.",
    labels: ["key"])
  /// Sessions closed by the worker.
  public static let closed = Metric<Counter>(
    "carillon_fanout_closed_total", "Sessions that this worker closed, by the name of the close code.", labels: ["code"])
  /// Connections ended.
  public static let ended = Metric<Counter>("carillon_fanout_ended_total", "Connections that ended, by cause.", labels: ["cause"])
  /// Hellos that wait for admission.
  public static let waitingHellos = Metric<Gauge>("carillon_fanout_waiting_hellos", "Hellos that wait for admission.")
  /// Acknowledgements on their way to Kafka.
  public static let acknowledgements = Metric<Gauge>(
    "carillon_fanout_acknowledgements", "Acknowledgements whose events are on their way to Kafka.")
  /// Refusals and delays, by limit.
  public static let limited = Metric<Counter>(
    "carillon_fanout_limited_total", "Refusals and delays because a limit was reached, by limit.", labels: ["limit"])
  /// TLS sessions, by what became of their handshake.
  public static let tlsSessions = Metric<Counter>(
    "carillon_fanout_tls_sessions_total",
    "TLS sessions of devices: full and resumed handshakes, and those that have failed, by reason.", labels: ["outcome"])
  /// Frames to and from devices.
  public static let frames = Metric<Counter>(
    "carillon_fanout_frames_total", "Frames to and from devices, and what they led to, by kind.", labels: ["what"])
  /// Delivery records, by verdict.
  public static let records = Metric<Counter>(
    "carillon_fanout_records_total", "Delivery records that were read, by verdict: each is counted once.", labels: ["verdict"])
  /// Age of the oldest record that a lane has not taken.
  public static let fanOutLagSeconds = Metric<Gauge>(
    "carillon_fanout_lag_seconds",
    "Age of the oldest record of a lane's partition of deliveries that the lane has not taken; 0 at the end.",
    labels: ["lane", "partition"])
  /// Records that a lane has not taken.
  public static let fanOutLagRecords = Metric<Gauge>(
    "carillon_fanout_lag_records", "Records of a lane's partition of deliveries that the lane has not taken.",
    labels: ["lane", "partition"])
  /// What a newer program has written, by layout.
  static let newerLayouts = Metric<Counter>(
    "carillon_newer_layouts_total",
    "How often a worker met something in a layout newer than it reads, and left it alone for a newer worker.", labels: ["layout"])
  /// Damaged fields of mailboxes.
  public static let mailboxDamage = Metric<Counter>(
    "carillon_fanout_mailbox_damage_total",
    "Damaged fields of mailboxes: an unreadable entry is removed, and for a damaged payload there is an event.",
    labels: ["part"])

  // The ingress.

  /// Answers to publishers.
  public static let ingressRequests = Metric<Counter>(
    "carillon_ingress_requests_total",
    "Requests of publishers, by the status of the answer and by application; each line of a body of many counts.",
    labels: ["status", "application"])
  /// How long an answer takes.
  public static let ingressSeconds = Metric<Histogram>(
    "carillon_ingress_answer_seconds", "Time from a publisher's complete HTTP request until its answer.")
  /// Connections of publishers.
  public static let ingressConnections = Metric<Gauge>("carillon_ingress_connections", "Open connections of publishers.")
  /// Requests that wait for Kafka.
  public static let ingressWaiting = Metric<Gauge>(
    "carillon_ingress_waiting", "HTTP requests of publishers that are not answered yet.")
  /// Times without reading.
  public static let ingressPauses = Metric<Counter>(
    "carillon_ingress_pauses_total", "Times that the ingress stopped reading because Kafka was too slow.")
}

extension MetricRegistry {
  /// Shows the metrics of every process.
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

  /// Shows whether the process is ready, and each condition of that.
  public func show(_ health: Health) {
    show(MetricNames.ready) { health.isReady ? 1 : 0 }
    showSet(MetricNames.conditions) {
      health.conditions.map { state in
        let lane = state.lane.isEmpty ? "process" : MetricLabel.snakeCase(state.lane)
        return (labels: [lane, MetricLabel.snakeCase(state.name)], value: state.isReady ? 1 : 0)
      }
    }
  }
}

import CRdKafka

/// An error of Kafka or of the connection to it.
public struct KafkaError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A reason by librdkafka's number: positive ones are error codes of the protocol, negative ones librdkafka's own.
  public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The number.
    public let rawValue: Int32
    /// A code of any number; `name` describes it.
    public init(rawValue: Int32) { self.rawValue = rawValue }
    /// The name that librdkafka prints, such as `_MSG_TIMED_OUT`.
    public var name: String { String(cString: rd_kafka_err2name(rd_kafka_resp_err_t(rawValue))) }
    /// The name.
    public var description: String { name }

    /// A property is unknown, or its value is not allowed.
    public static let invalidConfiguration = Code(RD_KAFKA_RESP_ERR__INVALID_ARG)
    /// The local queue of records is full.
    public static let queueFull = Code(RD_KAFKA_RESP_ERR__QUEUE_FULL)
    /// A record was not acknowledged within `message.timeout.ms`.
    public static let messageTimedOut = Code(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
    /// A request was not answered in time.
    public static let timedOut = Code(RD_KAFKA_RESP_ERR__TIMED_OUT)
    /// The connection to a broker broke.
    public static let transport = Code(RD_KAFKA_RESP_ERR__TRANSPORT)
    /// No broker can be reached.
    public static let allBrokersDown = Code(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
    /// The broker refuses the login.
    static let authentication = Code(RD_KAFKA_RESP_ERR__AUTHENTICATION)
    /// TLS does not come about.
    static let tls = Code(RD_KAFKA_RESP_ERR__SSL)
    /// The broker does not know the topic or partition.
    public static let unknownTopicOrPartition = Code(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    /// librdkafka does not know the topic.
    public static let unknownTopic = Code(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)
    /// librdkafka does not know the partition.
    public static let unknownPartition = Code(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
    /// The topic to be created exists.
    static let topicExists = Code(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    /// The broker does not know this request.
    static let unsupported = Code(RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE)
    /// This client lacks the right to do that with the topic.
    static let topicNotAuthorized = Code(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
    /// This client lacks the right to do that with the cluster.
    static let clusterNotAuthorized = Code(RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED)
    /// The record or its batch is larger than the broker or the configuration allows.
    public static let messageTooLarge = Code(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
    /// `Producer.close` dropped the record before it was sent.
    public static let purged = Code(RD_KAFKA_RESP_ERR__PURGE_QUEUE)
    /// The record was dropped while a broker had it. It may or may not be in the topic.
    public static let purgedInFlight = Code(RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
    /// Only a later record's success suggests that the record is written: it may or may not be in the topic.
    public static let unconfirmed = Code(RD_KAFKA_RESP_ERR__NO_OFFSET)
    /// The group has continued without this member's generation.
    static let illegalGeneration = Code(RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION)
    /// The group does not know this member, or no longer does.
    static let unknownMember = Code(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID)
    /// Another member has taken this static member's place.
    public static let fencedInstance = Code(RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID)
    /// The partition does not belong to this consumer, or no longer does.
    static let notOwned = Code(RD_KAFKA_RESP_ERR__STATE)
    /// The partition's log ends before the consumer's position. It was truncated, or the topic was made again.
    public static let logTruncated = Code(RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
    /// The records to read were deleted, and `auto.offset.reset=error` gives no other position.
    public static let offsetsGone = Code(RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET)
    /// A batch cannot be decompressed.
    static let badCompression = Code(RD_KAFKA_RESP_ERR__BAD_COMPRESSION)
    /// A batch's checksum is wrong, or its bytes are not a batch.
    static let badMessage = Code(RD_KAFKA_RESP_ERR__BAD_MSG)
    /// The consumer, producer or administration was closed.
    public static let closed = Code(RD_KAFKA_RESP_ERR__DESTROY)
    /// An error that makes the client useless; its message has the cause.
    public static let fatal = Code(RD_KAFKA_RESP_ERR__FATAL)

    init(_ code: rd_kafka_resp_err_t) { rawValue = code.rawValue }
  }

  /// The reason.
  public let code: Code
  /// What was being done, with its object: `create topic orders`.
  let operation: String
  /// The words of librdkafka or of the broker.
  public let message: String
  /// Whether the client is useless now: close it and make a new one.
  public let isFatal: Bool

  /// An error of its parts. An empty message is replaced by the code's own description.
  public init(_ code: Code, _ operation: String, message: String = "", isFatal: Bool = false) {
    self.code = code
    self.operation = operation
    self.message = message.isEmpty ? String(cString: rd_kafka_err2str(rd_kafka_resp_err_t(code.rawValue))) : message
    self.isFatal = isFatal || code == .fatal
  }

  /// The reason's name, such as `_MSG_TIMED_OUT`.
  public var name: String { code.name }

  /// Whether the same may succeed later without a change by the user.
  public var isRetriable: Bool {
    guard !isFatal else { return false }
    return switch rd_kafka_resp_err_t(code.rawValue) {
    case RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__TIMED_OUT,
      RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_RESP_ERR__QUEUE_FULL, RD_KAFKA_RESP_ERR__RESOLVE, RD_KAFKA_RESP_ERR__WAIT_COORD,
      RD_KAFKA_RESP_ERR__WAIT_CACHE, RD_KAFKA_RESP_ERR__IN_PROGRESS, RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS, RD_KAFKA_RESP_ERR__RETRY,
      RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__NODE_UPDATE, RD_KAFKA_RESP_ERR__OUTDATED,
      RD_KAFKA_RESP_ERR__NOENT, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
      RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
      RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_COORDINATOR, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
      RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
      RD_KAFKA_RESP_ERR_NOT_CONTROLLER, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED,
      RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT:
      true
    default: false
    }
  }

  /// Whether a partition's leader or a group's coordinator is moving to another broker, or being elected.
  var isMoving: Bool {
    switch rd_kafka_resp_err_t(code.rawValue) {
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
      RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
      true
    default: false
    }
  }

  /// What the reader can do about it.
  var hint: String {
    switch code {
    case .invalidConfiguration: "correct the setting; librdkafka's CONFIGURATION.md lists the properties and their values"
    case .transport, .allBrokersDown, .timedOut: "check that the brokers run and that the bootstrap servers are right"
    case .authentication: "check sasl.username, sasl.password and sasl.mechanism\(Self.hintAboutSCRAM(message))"
    case .tls: "check the certificates, and whether the broker speaks TLS at this port"
    case .messageTimedOut: "check the brokers' health; the record was not acknowledged within message.timeout.ms"
    case .unknownTopicOrPartition, .unknownTopic, .unknownPartition: "create the topic, or correct its name or partition"
    case .topicExists: "nothing to do, unless its partitions differ from those wanted"
    case .queueFull: "wait until records have been delivered, then try again"
    case .messageTooLarge: "make the record smaller, or raise max.message.bytes of the topic and message.max.bytes here"
    case .unconfirmed: "the record may or may not be in the topic; look for it, or try again"
    case .illegalGeneration, .unknownMember, .notOwned:
      "another member may have the partition; it reads uncommitted records again"
    case .fencedInstance: "give each running member its own group.instance.id"
    case .unsupported: "use a broker that knows the request; the embedded one knows few"
    case .logTruncated: "find out why the broker lost records; reading continues at the log's new position"
    default:
      isFatal
        ? "close the client and make a new one" : isRetriable ? "it is tried again, or try again later" : "see the message for the cause"
    }
  }

  /// Before version 2.6.1 librdkafka's login by SCRAM fails at Kafka 4, and the broker takes it for a wrong password.
  private static func hintAboutSCRAM(_ message: String) -> String {
    guard message.contains("SCRAM"), rd_kafka_version() < 0x0206_01FF else { return "" }
    let version = String(cString: rd_kafka_version_str())
    return "; librdkafka \(version) cannot log in to Kafka 4 by SCRAM whatever the password is, 2.6.1 can: use PLAIN over TLS"
  }

  /// The operation, the reason, its name and what to do, in one line.
  public var description: String { "\(operation): \(message) (\(name)); \(hint)" }

  init(_ code: rd_kafka_resp_err_t, _ operation: String, message: String = "", isFatal: Bool = false) {
    self.init(Code(code), operation, message: message, isFatal: isFatal)
  }

  /// Makes an error from librdkafka's error object, and frees the object.
  init(consuming error: OpaquePointer, _ operation: String) {
    defer { rd_kafka_error_destroy(error) }
    self.init(
      rd_kafka_error_code(error), operation, message: String(cString: rd_kafka_error_string(error)),
      isFatal: rd_kafka_error_is_fatal(error) != 0)
  }
}

extension KafkaError {
  /// Makes an error from the error object of a call and frees the object; nil for success.
  static func of(_ error: OpaquePointer?, _ operation: @autoclosure () -> String) -> KafkaError? {
    error.map { KafkaError(consuming: $0, operation()) }
  }
}

/// Throws for anything but success.
func check(_ code: rd_kafka_resp_err_t, _ operation: @autoclosure () -> String) throws(KafkaError) {
  if code != RD_KAFKA_RESP_ERR_NO_ERROR { throw KafkaError(code, operation()) }
}

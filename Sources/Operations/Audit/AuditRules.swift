/// The assumptions of an audit, in milliseconds.
public struct AuditRules: Sendable {
  /// When reading began, since 1970. Anything later may still happen.
  public var now: Int64
  /// When the ends of all topics were read, since 1970. Every record that is read was written by then.
  public var written: Int64
  /// The age up to which a request may still be in flight.
  public var grace: Int64
  /// The largest difference of two clocks of the cluster.
  public var clockSlack: Int64
  /// How long an acknowledgement may take, and a session to find what it has missed.
  ///
  /// It is the time of a takeover.
  public var takeover: Int64
  /// Whether a request in its device's mailbox is a violation.
  public var forbidsPending: Bool
  /// Whether the requests were read from the topic's beginning, so that no earlier one has the same apns-id.
  public var beginsAtBeginning: Bool
  /// The audited requests, by partition.
  public var requests: [Int32: Requests]
  /// The present incarnation of the requests topic, by partition. The journal of a former one does not count.
  public var incarnations: [Int32: UInt16] = [:]
  /// Offsets that workers could not read, by partition. The dead letters name them, and their requests have no outcome.
  public var unreadable: [Int32: [Range<Int64>]] = [:]

  /// Requests of one partition.
  public struct Requests: Sendable, Hashable {
    /// Their offsets.
    public var offsets: Range<Int64>
    /// The time of the earliest. After a new incarnation offsets begin again, and older statements are of the former topic.
    public var since: Int64

    /// Makes the requests at these offsets.
    public init(_ offsets: Range<Int64>, since: Int64) {
      self.offsets = offsets
      self.since = since
    }
  }

  /// Makes rules with the defaults of the command line.
  public init(
    now: Int64, grace: Int64 = 30_000, clockSlack: Int64 = 5_000, takeover: Int64 = 180_000, forbidsPending: Bool = false,
    beginsAtBeginning: Bool = false, requests: [Int32: Requests] = [:]
  ) {
    (self.now, written) = (now, now)
    self.grace = grace
    self.clockSlack = clockSlack
    self.takeover = takeover
    self.forbidsPending = forbidsPending
    self.beginsAtBeginning = beginsAtBeginning
    self.requests = requests
  }

  /// Whether the first record of a fact is audited.
  func isAudited(_ fact: AuditFact) -> Bool {
    guard fact.flags.contains(.isOfTopic), let requests = requests[fact.sourcePartition] else { return false }
    return requests.offsets.contains(fact.sourceOffset) && Int64(clamping: fact.revision) >= requests.since
  }

  /// Whether a journal's statement counts: it is of the present incarnation of the topic.
  func isPresent(_ fact: AuditFact) -> Bool { fact.incarnation >= incarnations[fact.partition] ?? 0 }

  /// Whether workers could not read the record.
  func isUnreadable(_ record: AuditFact) -> Bool {
    unreadable[record.partition]?.contains { $0.contains(record.offset) } ?? false
  }

  /// Whether a consequence of this time may still be outstanding.
  func isYoung(_ time: Int64) -> Bool { time > now - grace }

  /// How much later one event must be written than another to have happened later.
  var certainlyLater: Int64 { takeover + clockSlack }
}

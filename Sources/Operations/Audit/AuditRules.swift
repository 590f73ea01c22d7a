/// What an audit takes for granted, in milliseconds.
public struct AuditRules: Sendable {
  /// When reading began, since 1970: what has not happened by then may yet happen.
  public var now: Int64
  /// When the ends of all topics were known, since 1970: what is read was written by then.
  public var written: Int64
  /// So young a request may still be under way.
  public var grace: Int64
  /// How far two clocks of the cluster may be apart.
  public var clockSlack: Int64
  /// How long an acknowledgement may be under way, and how long a session may take to find what it has missed: the time of a takeover.
  public var takeover: Int64
  /// Whether a request that waits for its device is a violation.
  public var forbidsPending: Bool
  /// Whether the requests were read from their very beginning, so that there is no earlier one of the same apns-id.
  public var beginsAtBeginning: Bool
  /// The requests that are audited, by partition.
  public var requests: [Int32: Requests]
  /// The present incarnation of the requests topic, by partition: what the journal says of a former one counts for nothing.
  public var incarnations: [Int32: UInt16] = [:]
  /// Offsets that workers could not read and passed over, by partition: the dead letters say so, and nothing became of their requests.
  public var unreadable: [Int32: [Range<Int64>]] = [:]

  /// Requests of one partition.
  public struct Requests: Sendable, Hashable {
    /// Their offsets.
    public var offsets: Range<Int64>
    /// The time of the earliest: in a new incarnation of the topic offsets begin again, and what is told of earlier ones is of the former topic.
    public var since: Int64

    /// Requests at these offsets.
    public init(_ offsets: Range<Int64>, since: Int64) {
      self.offsets = offsets
      self.since = since
    }
  }

  /// Rules with the defaults of the command line.
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

  /// Whether the record that a fact comes from first is one of those audited.
  func isAudited(_ fact: AuditFact) -> Bool {
    guard fact.flags.contains(.isOfTopic), let requests = requests[fact.sourcePartition] else { return false }
    return requests.offsets.contains(fact.sourceOffset) && Int64(clamping: fact.revision) >= requests.since
  }

  /// Whether what the journal says counts: it was read in the present incarnation of the topic.
  func isPresent(_ fact: AuditFact) -> Bool { fact.incarnation >= incarnations[fact.partition] ?? 0 }

  /// Whether workers could not read the record.
  func isUnreadable(_ record: AuditFact) -> Bool {
    unreadable[record.partition]?.contains { $0.contains(record.offset) } ?? false
  }

  /// Whether what should follow may still be under way.
  func isYoung(_ time: Int64) -> Bool { time > now - grace }

  /// How much later a thing must be told than another, so that it was later.
  var certainlyLater: Int64 { takeover + clockSlack }
}

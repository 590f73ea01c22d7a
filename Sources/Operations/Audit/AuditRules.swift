import Store

/// The assumptions of an audit, in milliseconds.
package struct AuditRules: Sendable {
  /// The settings.
  package var settings = AuditSettings()
  /// When reading began, since 1970. Anything later may still happen.
  package var now: Int64
  /// When the ends of all topics were read, since 1970. Every record that is read was written by then.
  package var written: Int64
  /// The largest difference of two clocks of the cluster.
  package var clockSlack = ClockTrust.toleratedMilliseconds
  /// Whether the requests were read from the topic's beginning. No earlier one can have the same apns-id.
  package var beginsAtBeginning = false
  /// The audited requests, by partition.
  package var requests: [Int32: Requests] = [:]
  /// The present incarnation of the requests topic, by partition. The journal of a former one does not count.
  package var incarnations: [Int32: UInt16] = [:]
  /// Offsets that workers could not read, by partition. Dead letters name them, and their requests have no outcome.
  package var unreadable: [Int32: [Range<Int64>]] = [:]

  /// Requests of one partition.
  package struct Requests: Sendable, Hashable {
    /// Their offsets.
    package var offsets: Range<Int64>
    /// The time of the earliest request.
    ///
    /// After a new incarnation the offsets begin again, and older statements are about the former topic.
    package var since: Int64
  }

  /// Whether the first record of a fact is audited.
  func isAudited(_ fact: AuditFact) -> Bool {
    guard fact.flags.contains(.isOfTopic), let requests = requests[fact.sourcePartition] else { return false }
    return requests.offsets.contains(fact.sourceOffset) && Int64(clamping: fact.revision) >= requests.since
  }

  /// Whether a statement of the journal counts: it is of the topic's present incarnation.
  func isPresent(_ fact: AuditFact) -> Bool { fact.incarnation >= incarnations[fact.partition] ?? 0 }

  /// Whether workers could not read the record.
  func isUnreadable(_ record: AuditFact) -> Bool {
    unreadable[record.partition]?.contains { $0.contains(record.offset) } ?? false
  }

  /// Whether consequences of an event at this time may still be missing.
  func isYoung(_ time: Int64) -> Bool { time > now - settings.grace }

  /// How much later an event must be written than another to have certainly happened later.
  var certainlyLater: Int64 { settings.takeover + clockSlack }
}

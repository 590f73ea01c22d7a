public import JSON

/// The header `carillon-firing` of a request record that fires one occurrence of a schedule.
///
///     {"schedule": "<revision>", "id": "<apns-id>", "zone": "Europe/Rome", "due": 1700000000000, "name": 3400000000, "previous": 0, "owner": 0,
///      "repeats": false}
///
/// Any producer can write one, and it has no signature. It states the state that the schedule must have. If the schedule has another state,
/// the record has no effect.
public struct FiringHeader: Sendable, Hashable {
  /// The longest header, in bytes.
  public static var maximumBytes: Int { 512 }

  /// The request that scheduled the occurrence.
  public var schedule: JournalReference
  /// The due time that fires.
  public var dueTime: ScheduleRecord.Pending.DueTime
  /// The hash of the device's owner at the request; 0 if there is none.
  ///
  /// It is 0 for a person's schedule, and for a device without an owner.
  public var owner: UInt64
  /// Whether the schedule's trigger repeats.
  public var repeats: Bool

  /// Creates a header from its parts.
  public init(schedule: JournalReference, _ dueTime: ScheduleRecord.Pending.DueTime, owner: UInt64 = 0, repeats: Bool = false) {
    (self.schedule, self.dueTime, self.owner, self.repeats) = (schedule, dueTime, owner, repeats)
  }

  /// The apns-id of the occurrence. All its firings have the same, in each zone.
  ///
  /// It depends on the record that scheduled it, too: a producer may give one apns-id to the schedules of two identifiers.
  public var occurrence: NotificationID {
    (schedule.revision.withBytes { Array($0) } + withUnsafeBytes(of: dueTime.name.bigEndian) { Array($0) }).withUnsafeBytes {
      schedule.id.derived($0).ofOccurrence
    }
  }

  /// Writes the header.
  public func write(to writer: inout JSONWriter) {
    writer.openObject()
    writer.member("schedule", schedule.revision.description)
    writer.member("id", schedule.id.description)
    writer.member("zone", dueTime.zone)
    writer.member("due", dueTime.due)
    writer.member("name", dueTime.name)
    writer.member("previous", dueTime.previous)
    writer.member("owner", Int64(bitPattern: owner))
    writer.member("repeats", repeats)
    writer.closeObject()
  }

  /// Reads and checks the header.
  public init(_ header: UnsafeRawBufferPointer) throws(Rejection) {
    guard header.count <= Self.maximumBytes, let firing = try? Self.read(header) else {
      throw Rejection(
        .badRequestParams, field: "carillon-firing",
        rule:
          "A firing is a JSON object with schedule, id, zone, due, name, previous, owner and repeats, each once, as the cluster writes it.")
    }
    self = firing
  }

  private static func read(_ header: UnsafeRawBufferPointer) throws -> FiringHeader? {
    var scanner = JSONScanner(header, depthLimit: 1)
    var (schedule, id): (JSONSpan?, JSONSpan?)
    var zone: JSONSpan?
    var (due, name, previous, owner): (Int64?, Int64?, Int64?, Int64?)
    var repeats: Bool?
    var count = 0
    try scanner.openObject()
    while let (key, value) = try scanner.nextMember() {
      count += 1
      if scanner.matches(key, "schedule") {
        schedule = value
      } else if scanner.matches(key, "id") {
        id = value
      } else if scanner.matches(key, "zone") {
        zone = value
      } else if scanner.matches(key, "due") {
        due = scanner.integer(value)
      } else if scanner.matches(key, "name") {
        name = scanner.integer(value)
      } else if scanner.matches(key, "previous") {
        previous = scanner.integer(value)
      } else if scanner.matches(key, "owner") {
        owner = scanner.integer(value)
      } else if scanner.matches(key, "repeats") {
        repeats = scanner.bool(value)
      }
    }
    try scanner.finish()
    // With eight members and each name present, no name occurs twice and no other name occurs.
    guard count == 8, let revision = schedule.flatMap({ scanner.unescapedBytes($0) }).flatMap({ Revision(text: $0) }),
      let id = id.flatMap({ scanner.unescapedBytes($0) }).flatMap({ NotificationID(text: $0) }),
      let zone = zone.flatMap({ scanner.unescapedBytes($0) }), zone.count <= TimedTrigger.zoneBytes, let due,
      (0...Timestamp.latest).contains(due), let name, let previous, let owner, let repeats
    else { return nil }
    return FiringHeader(
      schedule: JournalReference(revision: revision, id: id), .init(zone: Name(zone), due: due, name: name, previous: previous),
      owner: UInt64(bitPattern: owner), repeats: repeats)
  }
}

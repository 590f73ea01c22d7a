/// The value of a schedule's record. Numbers have their most significant byte first.
///
/// | bytes | field |
/// |---|---|
/// | 1 | version, 1 |
/// | 1 | phase: 0 pending, else the ending |
/// | 4 | serial |
/// | 20, 16 | the newest request: revision, apns-id |
/// | 4 | checksum: the lower half of the `StableHash` of all other bytes |
/// | 1 + n × | recent requests: hash of the apns-id 8, of the source 4, what it superseded 1 (0 nothing, 1 what was due at a time, 2 what waits for a place), and but for 0 that one's revision and apns-id 36 |
/// | 1 + 40 n | recent firings: revision 20, due 8, name 8, fate 4: 0 fired, 2³² - 1 expired, else how many were skipped |
///
/// and for a pending schedule:
///
/// | bytes | field |
/// |---|---|
/// | 8, 8, 8 | time of the request, lifetime, hash of the owner |
/// | 1 + n × | due times: zone 1 + n, due 8, name 8, the name before 8, which is the same for one that is over |
/// | 2 + n | trigger |
/// | 1 + n × | headers: name 1 + n, value 2 + n |
/// | rest | payload |
extension ScheduleRecord {
  private static var version: UInt8 { UInt8(Layout.schedule.newest) }
  /// The number of first bytes, with the checksum, that identify a state of a schedule.
  public static var headBytes: Int { checksumOffset + checksumBytes }

  private static let checksumOffset = 42
  private static let checksumBytes = 4

  /// Writes the value of a record.
  public func append(to buffer: inout ByteBuffer) throws(RecordCodingError) {
    let start = buffer.count
    buffer.append(Self.version)
    if case .ended(let ending) = phase { buffer.append(ending.rawValue) } else { buffer.append(0 as UInt8) }
    buffer.append(serial)
    newest.append(to: &buffer)
    buffer.append(0 as UInt32)
    try Self.append(count: recent.count, upTo: Self.maximumRemembered, "recent", to: &buffer)
    for request in recent {
      buffer.append(request.id)
      buffer.append(request.source)
      buffer.append(request.superseded == nil ? 0 : request.isFromDevices ? 2 : 1 as UInt8)
      request.superseded?.append(to: &buffer)
    }
    try Self.append(count: firings.count, upTo: Pending.maximumZones, "firings", to: &buffer)
    for firing in firings {
      firing.revision.append(to: &buffer)
      buffer.append(UInt64(bitPattern: firing.due))
      buffer.append(UInt64(bitPattern: firing.name))
      buffer.append(firing.fate.number)
    }
    if let pending { try Self.append(pending, to: &buffer) }
    let checksum = buffer.withUnsafeBytes(from: start) { Self.checksum($0) }
    buffer.replace(at: start + Self.checksumOffset, with: checksum)
  }

  private static func append(_ pending: Pending, to buffer: inout ByteBuffer) throws(RecordCodingError) {
    buffer.append(UInt64(bitPattern: pending.requested))
    buffer.append(UInt64(bitPattern: pending.lifetime))
    buffer.append(pending.owner)
    try append(count: pending.dueTimes.count, upTo: Pending.maximumZones, "due times", to: &buffer)
    for time in pending.dueTimes {
      try append(short: Array(time.zone.utf8), "zone", to: &buffer)
      for number in [time.due, time.name, time.previous] { buffer.append(UInt64(bitPattern: number)) }
    }
    try append(long: pending.trigger, "trigger", to: &buffer)
    try append(count: pending.headers.count, upTo: 255, "headers", to: &buffer)
    for header in pending.headers {
      try append(short: Array(header.name.utf8), "header name", to: &buffer)
      try append(long: header.value, "header", to: &buffer)
    }
    pending.payload.withUnsafeBytes { buffer.append($0) }
  }

  private static func append(count: Int, upTo limit: Int, _ field: String, to buffer: inout ByteBuffer) throws(RecordCodingError) {
    guard count <= limit else { throw RecordCodingError(field: field, limit: limit) }
    buffer.append(UInt8(count))
  }

  private static func append(short field: [UInt8], _ name: String, to buffer: inout ByteBuffer) throws(RecordCodingError) {
    try append(count: field.count, upTo: 255, name, to: &buffer)
    field.withUnsafeBytes { buffer.append($0) }
  }

  private static func append(long field: [UInt8], _ name: String, to buffer: inout ByteBuffer) throws(RecordCodingError) {
    guard let count = UInt16(exactly: field.count) else { throw RecordCodingError(field: name, limit: Int(UInt16.max)) }
    buffer.append(count)
    field.withUnsafeBytes { buffer.append($0) }
  }

  private static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    let head = StableHash.hash(UnsafeRawBufferPointer(rebasing: bytes[..<checksumOffset]))
    return UInt32(truncatingIfNeeded: StableHash.hash(bytes.dropping(checksumOffset + checksumBytes), seed: head))
  }

  // MARK: Reading

  /// The version of an intact state that a newer program has written; nil for anything else.
  ///
  /// The bytes up to the checksum have the same form in every version, and the checksum is over all other bytes.
  public static func newerVersion(of bytes: UnsafeRawBufferPointer) -> UInt8? {
    guard bytes.count >= headBytes, let version = bytes.first, Layout.schedule.isNewer(version),
      UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: checksumOffset, as: UInt32.self)) == checksum(bytes)
    else { return nil }
    return version
  }

  /// Reads the value of a record; nil if it is damaged or has another version.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    guard reader.byte() == Self.version, let phase = reader.byte(), let serial = reader.integer(UInt32.self),
      let newest = JournalReference(&reader), let checksum = reader.integer(UInt32.self), checksum == Self.checksum(bytes),
      let recent = Self.list(&reader, upTo: Self.maximumRemembered, Recent.init),
      let firings = Self.list(&reader, upTo: Pending.maximumZones, Firing.init)
    else { return nil }
    let read: Phase
    if phase == 0 {
      guard let pending = Pending(&reader) else { return nil }
      read = .pending(pending)
    } else {
      guard let ending = Ending(rawValue: phase), reader.rest.isEmpty else { return nil }
      read = .ended(ending)
    }
    self.init(newest: newest, serial: serial, read, recent: recent, firings: firings)
  }

  fileprivate static func list<Element>(_ reader: inout ByteReader, upTo limit: Int = 255, _ read: (inout ByteReader) -> Element?)
    -> [Element]?
  {
    guard let count = reader.byte(), count <= limit else { return nil }
    var list: [Element] = []
    for _ in 0..<count {
      guard let element = read(&reader) else { return nil }
      list.append(element)
    }
    return list
  }
}

extension JournalReference {
  fileprivate func append(to buffer: inout ByteBuffer) {
    revision.append(to: &buffer)
    id.append(to: &buffer)
  }

  /// Reads a revision and an apns-id; nil if the bytes are something else.
  package init?(_ reader: inout ByteReader) {
    guard let revision = reader.bytes(Revision.byteCount).flatMap({ Revision(bytes: $0) }),
      let id = reader.bytes(NotificationID.byteCount).flatMap({ NotificationID(bytes: $0) })
    else { return nil }
    self.init(revision: revision, id: id)
  }
}

extension ScheduleRecord.Recent {
  fileprivate init?(_ reader: inout ByteReader) {
    guard let id = reader.integer(UInt64.self), let source = reader.integer(UInt32.self), let form = reader.byte(), form <= 2 else {
      return nil
    }
    let superseded = form == 0 ? nil : JournalReference(&reader)
    guard form == 0 || superseded != nil else { return nil }
    self.init(id: id, source: source, superseded: superseded, isFromDevices: form == 2)
  }
}

extension ScheduleRecord.Firing {
  fileprivate init?(_ reader: inout ByteReader) {
    guard let revision = reader.bytes(Revision.byteCount).flatMap({ Revision(bytes: $0) }), let due = reader.time(),
      let name = reader.integer(Int64.self), let fate = reader.integer(UInt32.self)
    else { return nil }
    self.init(revision: revision, due: due, name: name, Fate(number: fate))
  }
}

extension ScheduleRecord.Firing.Fate {
  fileprivate init(number: UInt32) {
    switch number {
    case 0: self = .fired
    case .max: self = .expired
    default: self = .skipped(Int(number))
    }
  }

  fileprivate var number: UInt32 {
    switch self {
    case .fired: 0
    case .expired: .max
    case .skipped(let count): UInt32(min(max(count, 1), Int(UInt32.max) - 1))
    }
  }
}

extension ScheduleRecord.Pending {
  fileprivate init?(_ reader: inout ByteReader) {
    guard let requested = reader.time(), let lifetime = reader.integer(Int64.self), (0...30 * 86_400).contains(lifetime),
      let owner = reader.integer(UInt64.self), let dueTimes = ScheduleRecord.list(&reader, DueTime.init),
      dueTimes.contains(where: { !$0.isOver }),
      Set(dueTimes.map(\.zone)).count == dueTimes.count, let trigger = reader.longField(),
      let headers = ScheduleRecord.list(&reader, Header.init)
    else { return nil }
    self.init(
      requested: requested, lifetime: lifetime, owner: owner, dueTimes: dueTimes, trigger: Array(trigger), headers: headers,
      payload: Array(reader.rest))
    guard timedTrigger != nil else { return nil }
  }
}

extension ScheduleRecord.Pending.DueTime {
  fileprivate init?(_ reader: inout ByteReader) {
    guard let zone = reader.name(), zone.utf8.count <= TimedTrigger.zoneBytes, let due = reader.time(),
      let name = reader.integer(Int64.self), let previous = reader.integer(Int64.self)
    else { return nil }
    self.init(zone: zone, due: due, name: name, previous: previous)
  }
}

extension ScheduleRecord.Pending.Header {
  fileprivate init?(_ reader: inout ByteReader) {
    guard let name = reader.name(), let value = reader.longField() else { return nil }
    self.init(name: name, value: Array(value))
  }
}

extension ByteReader {
  /// Reads a time in milliseconds since 1970, within the range that has a text form.
  fileprivate mutating func time() -> Int64? { integer(Int64.self).flatMap { (0...Timestamp.latest).contains($0) ? $0 : nil } }

  /// Reads a name after its length byte; nil if it is not UTF-8.
  fileprivate mutating func name() -> Name? {
    shortField().flatMap { String(validating: $0, as: UTF8.self) }.map { Name($0) }
  }
}

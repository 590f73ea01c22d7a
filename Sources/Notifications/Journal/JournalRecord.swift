/// A record of `notifications.journal` as it is read: see ``JournalLayout``.
public struct JournalRecord: Sendable, Hashable {
  /// The worker that judged.
  public var worker: Name
  /// How often the requests topic was made again.
  public var incarnation: UInt32
  /// The time of the record's first entry, in milliseconds since 1970.
  public var judgedAt: Int64

  /// Creates a record from its headers and its time.
  public init(worker: Name, incarnation: UInt32, judgedAt: Int64) {
    (self.worker, self.incarnation, self.judgedAt) = (worker, incarnation, judgedAt)
  }

  /// Reads a record's headers and the beginning of its value.
  ///
  /// ``forEachEntry(in:partition:_:)`` reads the entries.
  ///
  /// - Throws: an error that names the wrong header or field.
  public init(headers: [(name: String, value: String)], value: UnsafeRawBufferPointer) throws(FieldError) {
    func header(_ name: StaticString) -> String? { headers.last { $0.name == name.description }?.value }
    guard header(JournalLayout.Header.layout) == JournalLayout.version else {
      throw FieldError(
        field: "layout",
        rule: Self.newerVersion(headers).map { Layout.journal.newer($0) } ?? "A journal record has the layout \(JournalLayout.version).")
    }
    guard let worker = header(JournalLayout.Header.worker) else {
      throw FieldError(field: "worker", rule: "A journal record names the worker that judged.")
    }
    guard let incarnation = header(JournalLayout.Header.incarnation).flatMap({ UInt16($0) }) else {
      throw FieldError(field: "incarnation", rule: "The incarnation is a whole number from 0 to 65535.")
    }
    var reader = ByteReader(value)
    guard let judgedAt = reader.varint() else { throw Self.broken("judgedAt") }
    (self.worker, self.incarnation, self.judgedAt) = (Name(worker), UInt32(incarnation), Int64(clamping: judgedAt))
  }

  /// The version of a record that a newer program has written; nil for anything else.
  public static func newerVersion(_ headers: [(name: String, value: String)]) -> Int? {
    let layout = headers.last { $0.name == JournalLayout.Header.layout.description }
    return layout.flatMap { Int($0.value) }.flatMap { Layout.journal.isNewer($0) ? $0 : nil }
  }

  /// Calls `body` with each entry, in the order of the record.
  ///
  /// - Parameters:
  ///   - value: the record's value.
  ///   - partition: the partition of the record.
  /// - Throws: an error if the bytes end too early or are malformed. `body` has got the entries before that.
  public func forEachEntry(in value: UnsafeRawBufferPointer, partition: Int32, _ body: (JournalEntry) -> Void) throws(FieldError) {
    var reader = ByteReader(value)
    guard reader.varint() != nil, let offset = reader.varint(), let timestamp = reader.zigzag() else { throw Self.broken("base") }
    var entries = EntryReader(
      reader: reader, partition: incarnation << 16 | UInt32(clamping: partition) & 0xFFFF, offset: Int64(clamping: offset),
      timestamp: timestamp)
    while !entries.reader.rest.isEmpty {
      guard entries.next(body) else { throw Self.broken("entry") }
    }
  }

  /// Splits a record's value into two, each with about half of the entries.
  ///
  /// - Parameters:
  ///   - value: the record's value, as a writer made it.
  ///   - partition: the partition of the record.
  /// - Returns: nil if there is only one entry, with at most one device.
  public static func split(_ value: UnsafeRawBufferPointer, partition: Int32, incarnation: UInt32) -> (first: [UInt8], second: [UInt8])? {
    var reader = ByteReader(value)
    guard let judgedAt = reader.varint().map({ Int64(clamping: $0) }) else { return nil }
    let record = JournalRecord(worker: "", incarnation: incarnation, judgedAt: judgedAt)
    var entries: [JournalEntry] = []
    guard (try? record.forEachEntry(in: value, partition: partition, { entries.append($0) })) != nil else { return nil }
    if entries.count == 1, case .page(let page) = entries[0].content, page.devices.count > 1 {
      let half = page.devices.count / 2
      var second = entries[0]
      entries[0].content = .page(.init(devices: Array(page.devices.prefix(half))))
      second.content = .page(.init(devices: Array(page.devices.dropFirst(half)), closing: page.closing))
      entries.append(second)
    }
    guard entries.count > 1 else { return nil }
    func written(_ entries: ArraySlice<JournalEntry>) -> [UInt8] {
      var writer = JournalWriter(partition: partition, incarnation: incarnation)
      for entry in entries { writer.append(entry, now: judgedAt) }
      return writer.withValue { Array($0) }
    }
    return (written(entries.prefix(entries.count / 2)), written(entries.dropFirst(entries.count / 2)))
  }

  private static func broken(_ field: String) -> FieldError {
    FieldError(field: field, rule: "The value of a journal record has the bytes of its layout.")
  }
}

/// Reads the entries one after the other.
private struct EntryReader {
  var reader: ByteReader
  let partition: UInt32
  var offset: Int64
  var timestamp: Int64

  /// Reads one entry, or the entries of a run; false if the bytes are malformed.
  mutating func next(_ body: (JournalEntry) -> Void) -> Bool {
    switch reader.byte() {
    case JournalLayout.run: readRun(body)
    case JournalLayout.page: readPage(isLast: false, body)
    case JournalLayout.lastPage: readPage(isLast: true, body)
    case JournalLayout.extensions: readExtensions(body)
    case JournalLayout.unreadable: readUnreadable(body)
    case let head?:
      if readPlace(), let judgement = judgement(head) {
        give(.request(judgement), body)
      } else {
        false
      }
    case nil: false
    }
  }

  private func give(_ content: JournalEntry.Content, _ body: (JournalEntry) -> Void) -> Bool {
    guard offset >= 0 else { return false }
    body(JournalEntry(offset: offset, timestamp: timestamp, content: content))
    return true
  }

  private mutating func readRun(_ body: (JournalEntry) -> Void) -> Bool {
    guard let step = reader.zigzag(), let count = reader.byte(), count > 0 else { return false }
    offset &+= step
    for number in 0..<count {
      guard let step = reader.zigzag() else { return false }
      if number > 0 { offset &+= 1 }
      timestamp &+= step
      guard give(.request(JournalJudgement(.queued, revision: implied)), body) else { return false }
    }
    return true
  }

  private mutating func readPage(isLast: Bool, _ body: (JournalEntry) -> Void) -> Bool {
    guard readPlace(), let count = reader.varint(), count <= UInt64(reader.rest.count) else { return false }
    var page = JournalEntry.Page(devices: [])
    page.devices.reserveCapacity(Int(count))
    for _ in 0..<count {
      guard let length = reader.varint(), length <= UInt64(DeviceToken.longest / 2), let bytes = reader.bytes(Int(length)),
        let token = DeviceToken(Hexadecimal.text(bytes)), let head = reader.byte(), let judgement = judgement(head)
      else { return false }
      page.devices.append(JournalEntry.Page.Device(token, judgement))
    }
    if isLast {
      guard let devices = reader.varint().flatMap({ Int(exactly: $0) }), let checksum = reader.integer(UInt64.self) else { return false }
      page.closing = JournalEntry.Closing(devices: devices, checksum: checksum)
    }
    return give(.page(page), body)
  }

  private mutating func readExtensions(_ body: (JournalEntry) -> Void) -> Bool {
    guard readPlace(), let count = reader.byte() else { return false }
    var passed: [JournalEntry.PassedExtension] = []
    for _ in 0..<count {
      guard let state = reader.byte().flatMap(ExtensionState.init(rawValue:)), let name = reader.shortField(),
        let milliseconds = reader.varint()
      else { return false }
      passed.append(JournalEntry.PassedExtension(name: name.text, state: state, milliseconds: Int64(clamping: milliseconds)))
    }
    return give(.extensions(passed), body)
  }

  private mutating func readUnreadable(_ body: (JournalEntry) -> Void) -> Bool {
    guard readPlace(), let count = reader.varint().flatMap({ Int64(exactly: $0) }), count > 0,
      !offset.addingReportingOverflow(count).overflow
    else { return false }
    return give(.unreadable(count), body)
  }

  private mutating func readPlace() -> Bool {
    guard let step = reader.zigzag(), let later = reader.zigzag() else { return false }
    offset &+= step
    timestamp &+= later
    return true
  }

  private var implied: Revision {
    Revision(timestamp: UInt64(clamping: timestamp), partition: partition, offset: UInt64(clamping: offset))
  }

  private mutating func judgement(_ head: UInt8) -> JournalJudgement? {
    let known = JournalLayout.verdictMask | JournalLayout.revisionFlag | JournalLayout.otherFlag
    guard head & ~known == 0, let verdict = Outcome(journalByte: head & JournalLayout.verdictMask) else { return nil }
    var judgement = JournalJudgement(verdict, revision: implied)
    if head & JournalLayout.revisionFlag != 0 {
      guard let revision = revision() else { return nil }
      judgement.revision = revision
    }
    if head & JournalLayout.otherFlag != 0 {
      guard let revision = revision(), let id = reader.bytes(NotificationID.byteCount).flatMap(NotificationID.init(bytes:)) else {
        return nil
      }
      judgement.other = JournalReference(revision: revision, id: id)
    }
    return judgement
  }

  private mutating func revision() -> Revision? {
    guard let later = reader.zigzag(), let partition = reader.varint().flatMap({ UInt32(exactly: $0) }), let offset = reader.varint() else {
      return nil
    }
    return Revision(timestamp: UInt64(bitPattern: timestamp &+ later), partition: partition, offset: offset)
  }
}

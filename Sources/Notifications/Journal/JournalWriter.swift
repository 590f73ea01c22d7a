/// Writes the value of one journal record, entry by entry: see ``JournalLayout``.
///
/// A lane has one for each partition of `requests` that it owns. It allocates nothing once it has grown to its work.
public struct JournalWriter: ~Copyable {
  private var bytes = ByteBuffer(capacity: 4096)
  /// The partition as in revisions: with the incarnation above its 16 bits.
  private let partition: UInt32
  private var lastOffset: Int64 = 0
  private var lastTimestamp: Int64 = 0
  /// The position of the last run's count; -1 if the end is not a run.
  private var runCountAt = -1
  private var runCount: UInt8 = 0

  /// Creates a writer for the requests of a partition.
  ///
  /// - Parameter incarnation: how often the topic was made again.
  public init(partition: Int32, incarnation: UInt32) {
    self.partition = incarnation << 16 | UInt32(clamping: partition) & 0xFFFF
  }

  /// The number of bytes; 0 before the first entry.
  public var count: Int { bytes.count }

  /// Passes the value to `body`. It is valid during the call.
  public borrowing func withValue<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try bytes.withUnsafeBytes(body)
  }

  /// Removes the entries. The next entry begins a new record.
  public mutating func reset() {
    bytes.reset()
    runCountAt = -1
  }

  /// Notes the verdict on a request for one device, or without a look-up of devices.
  ///
  /// - Parameter now: the time of the judgement, in milliseconds since 1970.
  public mutating func append(offset: Int64, timestamp: Int64, _ judgement: JournalJudgement, now: Int64) {
    begin(offset, timestamp, now)
    if judgement.verdict == .queued, judgement.other == nil, judgement.revision == implied(offset, timestamp) {
      return appendKept(offset, timestamp)
    }
    bytes.append(head(judgement, offset, timestamp))
    appendPlace(offset, timestamp)
    appendParts(judgement, offset, timestamp)
  }

  /// Notes verdicts on a request at some of a person's devices.
  ///
  /// - Parameters:
  ///   - count: the number of devices.
  ///   - device: returns the token's text and the judgement of a device, by its number.
  ///   - closing: the sum of all pages; only with the last page.
  public mutating func append(
    offset: Int64, timestamp: Int64, count: Int, closing: JournalEntry.Closing?, now: Int64,
    _ device: (_ number: Int, _ then: (UnsafeRawBufferPointer, JournalJudgement) -> Void) -> Void
  ) {
    begin(offset, timestamp, now)
    bytes.append(closing == nil ? JournalLayout.page : JournalLayout.lastPage)
    appendPlace(offset, timestamp)
    bytes.append(varint: UInt64(count))
    for number in 0..<count {
      device(number) { token, judgement in
        appendToken(token)
        bytes.append(head(judgement, offset, timestamp))
        appendParts(judgement, offset, timestamp)
      }
    }
    if let closing {
      bytes.append(varint: UInt64(clamping: closing.devices))
      bytes.append(closing.checksum)
    }
  }

  /// Notes the service extensions that a request passed.
  ///
  /// - Parameters:
  ///   - passed: the bytes of each ``JournalEntry/PassedExtension``.
  ///   - count: the number of extensions.
  public mutating func append(offset: Int64, timestamp: Int64, extensions passed: UnsafeRawBufferPointer, count: Int, now: Int64) {
    begin(offset, timestamp, now)
    bytes.append(JournalLayout.extensions)
    appendPlace(offset, timestamp)
    bytes.append(UInt8(clamping: count))
    bytes.append(passed)
  }

  /// Appends an entry that was read.
  public mutating func append(_ entry: JournalEntry, now: Int64) {
    switch entry.content {
    case .request(let judgement): append(offset: entry.offset, timestamp: entry.timestamp, judgement, now: now)
    case .page(let page):
      append(
        offset: entry.offset, timestamp: entry.timestamp, count: page.devices.count, closing: page.closing, now: now
      ) { number, then in
        var token = page.devices[number].token.text
        token.withUTF8 { then(UnsafeRawBufferPointer($0), page.devices[number].judgement) }
      }
    case .unreadable(let count): append(offset: entry.offset, timestamp: entry.timestamp, unreadable: Int(clamping: count), now: now)
    case .extensions(let passed):
      var encoded = ByteBuffer(capacity: 256)
      for each in passed { each.append(to: &encoded) }
      encoded.withUnsafeBytes {
        append(offset: entry.offset, timestamp: entry.timestamp, extensions: $0, count: passed.count, now: now)
      }
    }
  }

  /// Notes that a number of records from this offset on are unreadable.
  public mutating func append(offset: Int64, timestamp: Int64, unreadable count: Int, now: Int64) {
    begin(offset, timestamp, now)
    bytes.append(JournalLayout.unreadable)
    appendPlace(offset, timestamp)
    bytes.append(varint: UInt64(clamping: count))
  }

  private mutating func begin(_ offset: Int64, _ timestamp: Int64, _ now: Int64) {
    guard bytes.count == 0 else { return }
    bytes.append(varint: UInt64(clamping: now))
    bytes.append(varint: UInt64(clamping: offset))
    bytes.append(zigzag: timestamp)
    (lastOffset, lastTimestamp) = (offset, timestamp)
  }

  private mutating func appendKept(_ offset: Int64, _ timestamp: Int64) {
    if runCountAt >= 0, offset == lastOffset &+ 1, runCount < JournalLayout.longestRun {
      runCount += 1
      bytes.replace(at: runCountAt, with: runCount)
    } else {
      bytes.append(JournalLayout.run)
      bytes.append(zigzag: offset &- lastOffset)
      runCountAt = bytes.count
      runCount = 1
      bytes.append(runCount)
    }
    bytes.append(zigzag: timestamp &- lastTimestamp)
    (lastOffset, lastTimestamp) = (offset, timestamp)
  }

  private mutating func appendPlace(_ offset: Int64, _ timestamp: Int64) {
    runCountAt = -1
    bytes.append(zigzag: offset &- lastOffset)
    bytes.append(zigzag: timestamp &- lastTimestamp)
    (lastOffset, lastTimestamp) = (offset, timestamp)
  }

  private func implied(_ offset: Int64, _ timestamp: Int64) -> Revision {
    Revision(timestamp: UInt64(clamping: timestamp), partition: partition, offset: UInt64(clamping: offset))
  }

  private func head(_ judgement: JournalJudgement, _ offset: Int64, _ timestamp: Int64) -> UInt8 {
    guard let verdict = judgement.verdict.journalByte else { preconditionFailure("the journal has no \(judgement.verdict)") }
    return verdict | (judgement.revision == implied(offset, timestamp) ? 0 : JournalLayout.revisionFlag)
      | (judgement.other == nil ? 0 : JournalLayout.otherFlag)
  }

  private mutating func appendParts(_ judgement: JournalJudgement, _ offset: Int64, _ timestamp: Int64) {
    if judgement.revision != implied(offset, timestamp) { append(judgement.revision, timestamp) }
    if let other = judgement.other {
      append(other.revision, timestamp)
      other.id.append(to: &bytes)
    }
  }

  private mutating func append(_ revision: Revision, _ timestamp: Int64) {
    bytes.append(zigzag: Int64(bitPattern: revision.timestamp) &- timestamp)
    bytes.append(varint: UInt64(revision.partition))
    bytes.append(varint: revision.offset)
  }

  /// Appends a token, two digits to a byte: their number is even.
  private mutating func appendToken(_ token: UnsafeRawBufferPointer) {
    bytes.append(varint: UInt64(token.count / 2))
    DeviceToken.append(packed: token, to: &bytes)
  }
}

internal import EventLoop

/// Writes the state file in order, and runs actions after the writes that they need. Loop-confined.
///
/// Records that come during a write are written together after it. Without a file every record counts as durable at once: as durable as the
/// device itself.
final class StateWriter {
  /// A job of the disk. The owner calls `finished` on the loop after it.
  enum Job: Sendable {
    case append([UInt8])
    case replace([UInt8])
  }

  /// The most bytes that may wait for the disk. Beyond it the owner takes no more deliveries.
  static let maximumPendingBytes = 8 << 20

  private let perform: ((Job) -> Void)?
  private let snapshot: () -> [StateRecord]
  private var lines: [UInt8] = []
  private var waiting: [() -> Void] = []
  private var underWay: [() -> Void]?
  private var replaceDue: Int
  private var written = 0
  private var hasFailed = false

  /// - Parameters:
  ///   - perform: starts a job on the disk; nil without a file.
  ///   - size: the bytes of the file when it was read.
  ///   - snapshot: returns everything that a new file must contain.
  init(perform: ((Job) -> Void)?, size: Int = 0, snapshot: @escaping () -> [StateRecord]) {
    self.perform = perform
    self.snapshot = snapshot
    written = size
    replaceDue = 1 << 20
  }

  /// Whether too many bytes wait for the disk.
  var isFull: Bool { lines.count > Self.maximumPendingBytes }

  /// Writes a record.
  func append(_ record: StateRecord) {
    guard perform != nil, !hasFailed else { return }
    StateLines.append(record, to: &lines)
  }

  /// Runs `body` when all records so far are durable, in order; never if they cannot be.
  func whenDurable(_ body: @escaping () -> Void) {
    guard perform != nil else { return body() }
    guard !hasFailed else { return }
    guard !lines.isEmpty || underWay != nil || !waiting.isEmpty else { return body() }
    waiting.append(body)
  }

  /// Starts to write the waiting records, unless a write is running. Called once a turn.
  func flush() {
    guard let perform, underWay == nil, !hasFailed, !lines.isEmpty else { return }
    underWay = waiting
    waiting = []
    var bytes: [UInt8] = []
    swap(&bytes, &lines)
    if written + bytes.count > replaceDue {
      // The snapshot contains the records that were to be appended.
      bytes = []
      for record in snapshot() { StateLines.append(record, to: &bytes) }
      written = bytes.count
      replaceDue = max(1 << 20, bytes.count * 4)
      perform(.replace(bytes))
    } else {
      written += bytes.count
      perform(.append(bytes))
    }
  }

  /// The disk has finished the job.
  func finished(isDurable: Bool) {
    let done = underWay ?? []
    underWay = nil
    guard isDurable else {
      hasFailed = true
      (lines, waiting) = ([], [])
      return
    }
    for body in done { body() }
    if lines.isEmpty {
      // They needed only the records that are durable now.
      let others = waiting
      waiting = []
      for body in others { body() }
    }
    flush()
  }

  /// Whether nothing waits for the disk.
  var isIdle: Bool { underWay == nil && lines.isEmpty && waiting.isEmpty }
}

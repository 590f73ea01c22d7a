internal import EventLoop

/// What goes to the state file, in order, and what may happen only when it is there. Loop-confined.
///
/// Records that come while the disk is at work go out together after it. Without a file everything is durable at once: as durable as the
/// device itself.
final class StateWriter {
  /// What the owner has the disk do; it calls `finished` on the loop when that is done.
  enum Job: Sendable {
    case append([UInt8])
    case replace([UInt8])
  }

  /// What may wait for the disk; beyond it the owner stops taking more.
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
  ///   - perform: starts a job on the disk; nil when there is no file.
  ///   - size: bytes of the file as it was read.
  ///   - snapshot: everything that a new file has to hold.
  init(perform: ((Job) -> Void)?, size: Int = 0, snapshot: @escaping () -> [StateRecord]) {
    self.perform = perform
    self.snapshot = snapshot
    written = size
    replaceDue = 1 << 20
  }

  /// Whether more is waiting for the disk than may wait.
  var isFull: Bool { lines.count > Self.maximumPendingBytes }

  /// Remembers a record; `body` runs on the loop when it is durable, and never when it cannot be.
  func append(_ record: StateRecord) {
    guard perform != nil, !hasFailed else { return }
    StateLines.append(record, to: &lines)
  }

  /// Runs `body` when all records so far are durable, in order; never when they cannot be.
  func whenDurable(_ body: @escaping () -> Void) {
    guard perform != nil else { return body() }
    guard !hasFailed else { return }
    guard !lines.isEmpty || underWay != nil || !waiting.isEmpty else { return body() }
    waiting.append(body)
  }

  /// Gives what has come to the disk, unless it is at work: called once a turn.
  func flush() {
    guard let perform, underWay == nil, !hasFailed, !lines.isEmpty else { return }
    underWay = waiting
    waiting = []
    var bytes: [UInt8] = []
    swap(&bytes, &lines)
    if written + bytes.count > replaceDue {
      // What was going to be appended is in the snapshot.
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

  /// The disk is done with the job.
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
      // They waited only for what is durable now.
      let others = waiting
      waiting = []
      for body in others { body() }
    }
    flush()
  }

  /// Whether nothing is waiting for the disk.
  var isIdle: Bool { underWay == nil && lines.isEmpty && waiting.isEmpty }
}

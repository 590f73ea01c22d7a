/// Writes changes of the state in order, and calls back after the writes.
///
/// Changes that come during a write are written together after it. Without a database every change counts as durable at once: as durable as
/// the device itself.
final class StateWriter {
  /// The most bytes that may wait for the disk. Beyond it the owner takes no more deliveries, and the program's calls throw.
  static let maximumPendingBytes = 8 << 20

  private let commit: (([StateChange]) -> Void)?
  private var changes: [StateChange] = []
  private var cost = 0
  private var waiting: [(DeviceError?) -> Void] = []
  private var underWay: [(DeviceError?) -> Void]?
  private var failure: DeviceError?

  /// Called with each change and each call that waits for one: the owner calls `flush` at the end of its turn.
  var wake: (() -> Void)?

  /// - Parameter commit: begins to write a batch, and calls `finished` on the loop after it; nil without a database.
  init(commit: (([StateChange]) -> Void)?) { self.commit = commit }

  /// Whether too many bytes wait for the disk.
  var isFull: Bool { cost > Self.maximumPendingBytes }

  /// Throws if too many bytes wait for the disk, so that the program's calls find an end.
  func checkSpace() throws(DeviceError) {
    guard isFull else { return }
    throw DeviceError(
      .tooManyWaiting, "\(cost) bytes wait for the disk already, and \(Self.maximumPendingBytes) may: wait for earlier calls, and try again"
    )
  }

  /// Whether nothing waits for the disk.
  var isIdle: Bool { underWay == nil && changes.isEmpty && waiting.isEmpty }

  /// Writes changes with the next batch.
  func append(_ new: [StateChange]) {
    wake?()
    guard commit != nil, failure == nil else { return }
    changes += new
    for change in new { cost += change.cost }
  }

  /// Calls `body` when all changes so far are durable, or with the error when they cannot be.
  func whenDurable(_ body: @escaping (DeviceError?) -> Void) {
    wake?()
    guard commit != nil, failure == nil else { return body(failure) }
    guard !isIdle else { return body(nil) }
    waiting.append(body)
  }

  /// Ends the writing, when nothing waits. Nothing more becomes durable.
  func close() { failure = failure ?? DeviceError(.notRunning, "the device is closed") }

  /// Begins to write the waiting changes, unless a write is running. Called once a turn.
  func flush() {
    guard let commit, underWay == nil, failure == nil, !changes.isEmpty else { return }
    underWay = waiting
    waiting = []
    let batch = changes
    (changes, cost) = ([], 0)
    commit(batch)
  }

  /// The batch is durable, or is not in the database because of an error. After an error nothing more is written.
  func finished(_ error: DeviceError?) {
    var done = underWay ?? []
    underWay = nil
    if let error {
      failure = error
      done += waiting
      (changes, cost, waiting) = ([], 0, [])
    } else if changes.isEmpty {
      // They needed only the changes that are durable now.
      done += waiting
      waiting = []
    }
    for body in done { body(error) }
    flush()
  }
}

import Cryptography
import EventLoop
import Glibc
import Worker

/// Files whose content is in force in a process, and is read again when one of them changes, and on SIGHUP.
struct WatchedFiles: Sendable {
  /// What distinguishes two contents of a file.
  fileprivate struct Version: Equatable {
    var numbers: [Int] = []

    init(_ path: String) {
      var facts = stat()
      guard stat(path, &facts) == 0 else { return }
      // Which module has the members of a time differs from build to build. The second one changes with the owner and the mode, too.
      let times = withUnsafeBytes(of: (facts.st_mtim, facts.st_ctim)) { $0.map { Int($0) } }
      numbers = [Int(bitPattern: facts.st_dev), Int(bitPattern: facts.st_ino), facts.st_size] + times
    }
  }

  /// What they hold, as the metric says it.
  fileprivate let name: String
  private let paths: [String]
  /// The files as they were before they were read first.
  fileprivate let first: [Version]
  /// Reads them again, and takes what they hold into force.
  fileprivate let read: @Sendable () throws -> Void
  private let logger: Logger

  /// Reads files, now and whenever they have changed. Content that cannot be read leaves the former one in force.
  ///
  /// - Parameters:
  ///   - name: what they hold.
  ///   - inForce: called when content is in force, at first and again.
  /// - Throws: what the first reading throws.
  static func reading<Content: Sendable>(
    _ name: String, _ paths: [String], _ logger: Logger, _ read: @escaping @Sendable () throws -> Content,
    inForce: @escaping @Sendable (Content) -> Void
  ) throws -> (content: InForce<Content>, files: WatchedFiles) {
    let first = paths.map { Version($0) }
    let content = InForce(try read())
    inForce(content.value)
    let files = WatchedFiles(name, paths, first, logger) {
      content.replace(with: try read())
      inForce(content.value)
    }
    return (content, files)
  }

  private init(_ name: String, _ paths: [String], _ first: [Version], _ logger: Logger, read: @escaping @Sendable () throws -> Void) {
    (self.name, self.paths, self.first, self.logger, self.read) = (name, paths, first, logger, read)
  }

  fileprivate func look() -> [Version] { paths.map { Version($0) } }

  fileprivate func tell(_ error: any Error) {
    logger.error(
      "a changed file cannot be used; what it held before stays in force", ["files": paths.joined(separator: ", "), "error": "\(error)"])
  }
}

/// Looks at the files of a process from time to time. It has a loop of its own: the file system may block, and no lane must wait for it.
actor FileWatch: LoopActor {
  private static let lookMilliseconds = 1_500
  /// After so many looks a file is read although it goes on changing, or could not be used before.
  private static let longestWait = 10

  /// What is known about files.
  private struct State {
    /// As they were read last with success, and as they were at the last look.
    var (taken, seen): ([WatchedFiles.Version], [WatchedFiles.Version])
    /// As they were when they could not be used; nil if they could.
    var refused: [WatchedFiles.Version]?
    /// 1 while they cannot be used.
    let isRefused: Gauge
    /// How many looks since the last reading have found that it has to be done.
    var looks = 0
  }

  nonisolated let loop = EventLoop(name: "files")
  private let files: [WatchedFiles]
  private var states: [State]
  private var timer: Timer?
  private var isClosed = false

  /// Makes a watch of the files; nil if there are none.
  init?(_ files: [WatchedFiles], _ metrics: MetricRegistry) {
    guard !files.isEmpty else { return nil }
    self.files = files
    states = files.map { State(taken: $0.first, seen: $0.first, isRefused: metrics.make(MetricNames.refusedFiles, $0.name)) }
  }

  /// Begins to look.
  func start() {
    guard timer == nil, !isClosed else { return }
    let timer = Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.look() } }
    timer.start(after: Self.lookMilliseconds, repeating: Self.lookMilliseconds)
    self.timer = timer
  }

  private func look() {
    for (index, each) in files.enumerated() {
      let present = each.look()
      let state = states[index]
      states[index].looks = present == state.taken ? 0 : state.looks + 1
      // A second look that is the same: whoever replaces one file after the other has probably finished.
      let isNew = present == state.seen && present != state.refused
      if states[index].looks > 0, isNew || states[index].looks > Self.longestWait { read(index, present) }
      states[index].seen = present
    }
  }

  /// Reads files. What fails is tried again, since the cause may lie elsewhere, and said once for each change.
  ///
  /// - Parameter present: as they were before.
  private func read(_ index: Int, _ present: [WatchedFiles.Version]) {
    do {
      try files[index].read()
      (states[index].taken, states[index].refused, states[index].looks) = (present, nil, 0)
    } catch {
      if states[index].refused != present { files[index].tell(error) }
      (states[index].refused, states[index].looks) = (present, 0)
    }
    states[index].isRefused.set(states[index].refused == nil ? 0 : 1)
  }

  /// The action of SIGHUP: reads all files again.
  nonisolated func reload() { Task { await readAll() } }

  private func readAll() {
    for index in files.indices {
      states[index].refused = nil
      read(index, files[index].look())
    }
  }

  private func stop() {
    isClosed = true
    timer?.close()
    timer = nil
  }

  /// Ends. Nothing of it may be called afterwards. A folder that hangs does not delay the process.
  nonisolated func close() async {
    let end = Task {
      await stop()
      await loop.close()
    }
    await end.value(by: .now + .seconds(2))
  }
}

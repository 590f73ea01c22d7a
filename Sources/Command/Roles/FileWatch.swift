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
      // Which module has the members of a time differs from build to build.
      let changed = withUnsafeBytes(of: facts.st_mtim) { $0.map { Int($0) } }
      numbers = [Int(bitPattern: facts.st_dev), Int(bitPattern: facts.st_ino), facts.st_size] + changed
    }
  }

  private let paths: [String]
  /// The files as they were before they were read first.
  fileprivate let first: [Version]
  fileprivate let read: @Sendable () -> Void

  /// Reads files, now and whenever they have changed. Content that cannot be read leaves the former one in force.
  ///
  /// - Throws: what the first reading throws.
  static func reading<Content: Sendable>(
    _ paths: [String], _ logger: Logger, _ read: @escaping @Sendable () throws -> Content
  ) throws -> (content: InForce<Content>, files: WatchedFiles) {
    let first = paths.map { Version($0) }
    let content = InForce(try read())
    let files = WatchedFiles(paths: paths, first: first) {
      do { content.replace(with: try read()) } catch {
        logger.error(
          "what has changed cannot be read; the former content stays in force",
          ["files": paths.joined(separator: ", "), "error": "\(error)"])
      }
    }
    return (content, files)
  }

  private init(paths: [String], first: [Version], read: @escaping @Sendable () -> Void) {
    (self.paths, self.first, self.read) = (paths, first, read)
  }

  fileprivate func look() -> [Version] { paths.map { Version($0) } }
}

/// Looks at the files of a process from time to time. It has a loop of its own: the file system may block, and no lane must wait for it.
actor FileWatch: LoopActor {
  private static let lookMilliseconds = 1_500

  nonisolated let loop = EventLoop(name: "files")
  private let files: [WatchedFiles]
  /// The files as they were read, and as they were at the last look.
  private var (taken, seen): ([[WatchedFiles.Version]], [[WatchedFiles.Version]])
  private var timer: Timer?
  private var isClosed = false

  /// Makes a watch of the files; nil if there are none.
  init?(_ files: [WatchedFiles]) {
    guard !files.isEmpty else { return nil }
    self.files = files
    taken = files.map(\.first)
    seen = taken
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
      // A second look that is the same: whoever replaces one file after the other has probably finished.
      if present != taken[index], present == seen[index] { read(index) }
      seen[index] = present
    }
  }

  private func read(_ index: Int) {
    taken[index] = files[index].look()
    files[index].read()
  }

  /// The action of SIGHUP: reads these files again, and others; nil if there are none.
  static func reload(_ watch: FileWatch?, and others: (@Sendable () -> Void)?) -> (@Sendable () -> Void)? {
    guard let watch else { return others }
    return {
      others?()
      Task { await watch.readAll() }
    }
  }

  private func readAll() { for index in files.indices { read(index) } }

  private func stop() {
    isClosed = true
    timer?.close()
    timer = nil
  }

  /// Ends. Nothing of it may be called afterwards.
  nonisolated func close() async {
    await stop()
    await loop.close()
  }
}

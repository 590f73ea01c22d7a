import Cryptography
public import EventLoop
internal import Glibc
import Notifications

/// The media of notifications: files in a folder that the workers share, named by the hash of their content. Each is kept until a day after
/// the expiration of its last notification.
///
/// The file system may block, so the store has a thread of its own, and no lane waits for it.
public actor MediaStore: LoopActor {
  /// How long a file is kept after the expiration of its last notification, in seconds.
  public static var keptSeconds: Int64 { 86_400 }

  /// Everything of the store runs on its thread.
  public nonisolated let loop: EventLoop
  private let folder: MediaFolder
  private let limit: Int
  private var writing: [Int: Writing] = [:]
  private var lastNumber = 0
  /// The content of each part at its last count, with this process's additions since.
  private var parts = Array(repeating: (bytes: 0, files: 0), count: MediaFolder.parts.count)
  private var isLookedThrough: Bool
  /// The cleaning that runs, and the time that it judges by.
  private var looking: (task: Task<Void, Never>, now: Int64)?
  /// The end of each file that this process has marked.
  private var marks: [MediaHash: Int64] = [:]
  private var cleaning: Timer?
  private var tell: (@Sendable (Report) -> Void)?

  /// The result of counting the folder.
  public enum Report: Sendable {
    /// Its content.
    case stored(bytes: Int, files: Int)
    /// It could not be read.
    case failed(MediaError)
  }

  /// A file that is being written.
  private struct Writing {
    let descriptor: Int32
    let path: String
    let digest = RunningDigest()
    var size = 0
    var beginning: [UInt8] = []

    /// Refuses what is none of the types, and what is too large for its type.
    func check() throws(MediaError) {
      guard let type = MediaType(beginning: beginning) else {
        if beginning.count >= MediaType.tellingBytes { throw .noType }
        return
      }
      guard size <= type.maximumBytes else {
        throw MediaError("its file has more than \(type.maximumBytes) bytes, which is the maximum for \(type.name)")
      }
    }
  }

  /// Opens the store.
  ///
  /// - Parameters:
  ///   - limit: the most bytes. A worker counts its own additions, and those of others every ten minutes.
  ///   - isKeeper: whether it regularly counts the files and removes expired ones. A tool leaves that to the workers.
  ///   - tell: called after each count, on the store's thread.
  /// - Throws: if the folder cannot be made or written; nothing keeps running then.
  public static func open(
    _ folder: MediaFolder, limit: Int, isKeeper: Bool = true, tell: (@Sendable (Report) -> Void)? = nil
  ) async throws(MediaError) -> MediaStore {
    let store = MediaStore(folder, limit: limit, isKeeper: isKeeper, tell)
    do {
      try await store.start()
    } catch {
      await store.close()
      throw error
    }
    return store
  }

  private init(_ folder: MediaFolder, limit: Int, isKeeper: Bool, _ tell: (@Sendable (Report) -> Void)?) {
    isLookedThrough = !isKeeper
    loop = EventLoop(name: "media-store")
    (self.folder, self.limit, self.tell) = (folder, limit, tell)
  }

  private func start() throws(MediaError) {
    try folder.prepare()
    guard !isLookedThrough else { return }
    let timer = Timer(on: loop) { [weak self] in
      guard let self else { return }
      Task(executorPreference: loop) { await self.clean(now: WallClock.seconds()) }
    }
    // The workers do it at different times.
    timer.start(after: .random(in: 0...5_000), repeating: .random(in: 540_000...660_000))
    cleaning = timer
  }

  /// Ends it with its thread. No calls are allowed afterwards.
  public nonisolated func close() async {
    await stop()
    await loop.close()
  }

  private func stop() {
    cleaning?.close()
    cleaning = nil
    tell = nil
    for number in writing.keys { discard(number) }
  }

  // MARK: Writing

  /// The known content of the folder.
  private var stored: (bytes: Int, files: Int) { parts.reduce((0, 0)) { ($0.0 + $1.bytes, $0.1 + $1.files) } }

  /// Begins a file; `finish` or `discard` follows.
  func begin() async throws(MediaError) -> Int {
    if !isLookedThrough { await clean(now: WallClock.seconds()) }
    guard stored.bytes < limit else { throw full }
    let (descriptor, path) = try folder.begin()
    lastNumber += 1
    writing[lastNumber] = Writing(descriptor: descriptor, path: path)
    return lastNumber
  }

  /// Writes the next bytes of a file. After an error the file is discarded.
  func append(_ bytes: [UInt8], to number: Int) throws(MediaError) {
    guard var file = writing[number] else { return }
    if file.beginning.count < MediaType.tellingBytes { file.beginning += bytes.prefix(MediaType.tellingBytes) }
    file.size += bytes.count
    do throws(MediaError) {
      try file.check()
      guard stored.bytes + writing.values.reduce(bytes.count, { $0 + $1.size }) <= limit else { throw full }
      try folder.write(bytes, to: file.descriptor)
    } catch {
      discard(number)
      throw error
    }
    bytes.withUnsafeBytes { file.digest.append($0) }
    writing[number] = file
  }

  /// Ends a file and keeps it.
  ///
  /// - Parameter until: in seconds since 1970.
  /// - Returns: nil if it has none of the types; it is discarded then.
  func finish(_ number: Int, until: Int64) throws(MediaError) -> Media? {
    guard let file = writing[number] else { return nil }
    defer { discard(number) }
    guard let type = MediaType(beginning: file.beginning), let hash = file.digest.finish().withUnsafeBytes({ MediaHash(bytes: $0) }) else {
      return nil
    }
    let end = Self.mark(until)
    let isNew = try folder.finish(file.descriptor, at: file.path, as: hash, until: end)
    remember(hash, end)
    if isNew {
      parts[hash.part].bytes += file.size
      parts[hash.part].files += 1
    }
    return Media(hash: hash, type: type, size: file.size)
  }

  /// Releases a file that is not needed; a finished one stays.
  func discard(_ number: Int) {
    guard let file = writing.removeValue(forKey: number) else { return }
    Glibc.close(file.descriptor)
    unlink(file.path)
  }

  private var full: MediaError {
    MediaError("the media folder \(folder.path) has \(limit) bytes, which is all that it may have")
  }

  // MARK: Keeping

  /// Keeps a file until a day after this time, in seconds since 1970.
  ///
  /// - Returns: whether it exists.
  func keep(_ hash: MediaHash, until: Int64) throws(MediaError) -> Bool {
    let end = Self.mark(until)
    // No worker removes a marked file.
    if let known = marks[hash], known >= end, folder.has(hash) { return true }
    guard try folder.keep(hash, until: end) else {
      marks[hash] = nil
      return false
    }
    remember(hash, end)
    return true
  }

  private func remember(_ hash: MediaHash, _ end: Int64) {
    if marks.count >= 10_000 { marks.removeAll(keepingCapacity: true) }
    marks[hash] = end
  }

  /// The mark for a file that is needed until then. One mark serves an hour.
  private static func mark(_ until: Int64) -> Int64 {
    let end = min(max(until, 0), .max / 2) + keptSeconds
    return (end + 3_599) / 3_600 * 3_600
  }

  // MARK: Cleaning

  /// Removes expired files part by part, with other calls in between. An unreadable part does not affect the others.
  func clean(now: Int64) async {
    while let looking {
      await looking.task.value
      if looking.now >= now { return }
    }
    let task = Task(executorPreference: loop) { await self.lookThrough(now) }
    looking = (task, now)
    await task.value
  }

  private func lookThrough(_ now: Int64) async {
    var failure: MediaError?
    for (number, part) in MediaFolder.parts.enumerated() {
      do throws(MediaError) { parts[number] = try folder.clean(part, now: now, unmarked: Self.keptSeconds) } catch {
        failure = failure ?? error
      }
      await Task.yield()
    }
    do throws(MediaError) { try folder.cleanIncoming(before: now - 3_600) } catch { failure = failure ?? error }
    (looking, isLookedThrough) = (nil, true)
    marks = marks.filter { $0.value >= now }
    tell?(failure.map { .failed($0) } ?? .stored(bytes: stored.bytes, files: stored.files))
  }
}

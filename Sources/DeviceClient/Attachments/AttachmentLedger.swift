internal import Notifications

/// The files of the store, their bytes, and which of them are open. A value.
struct AttachmentLedger {
  private var files: [MediaHash: Int]
  /// Bytes of files that are being written.
  private var reserved = 0
  private var open: [MediaHash: Int] = [:]
  private let limit: Int

  /// - Parameters:
  ///   - limit: the most bytes of all files.
  ///   - files: the sizes of those that are there.
  init(limit: Int, files: [MediaHash: Int] = [:]) { (self.limit, self.files) = (limit, files) }

  /// The bytes of the files, with those that are being written.
  var bytes: Int { files.values.reduce(reserved, +) }
  /// The bytes that another file may have.
  var room: Int { max(limit - bytes, 0) }
  /// The files.
  var hashes: Set<MediaHash> { Set(files.keys) }

  /// Whether a file is there.
  func has(_ hash: MediaHash) -> Bool { files[hash] != nil }

  /// Reserves bytes for a file that is going to be written; false if they do not fit.
  mutating func reserve(_ bytes: Int) -> Bool {
    guard bytes <= room else { return false }
    reserved += bytes
    return true
  }

  /// Ends a reservation, with the file if it was written.
  mutating func end(_ bytes: Int, _ written: Media? = nil) {
    reserved -= bytes
    if let written { files[written.hash] = written.size }
  }

  /// Opens a file, which stays until it is closed as often; false if it is missing.
  mutating func open(_ hash: MediaHash) -> Bool {
    guard has(hash) else { return false }
    open[hash, default: 0] += 1
    return true
  }

  /// Closes a file.
  mutating func close(_ hash: MediaHash) {
    open[hash] = open[hash].flatMap { $0 > 1 ? $0 - 1 : nil }
  }

  /// Takes the files that notifications have; returns the others that are not open, which are to be removed.
  mutating func sweep(keeping live: Set<MediaHash>) -> Set<MediaHash> {
    let removed = hashes.filter { !live.contains($0) && open[$0] == nil }
    for hash in removed { files[hash] = nil }
    return removed
  }
}

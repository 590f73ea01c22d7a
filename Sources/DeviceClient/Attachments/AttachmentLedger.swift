internal import Notifications

/// The files of the store, their bytes, and which of them may be removed. A value.
///
/// A file may go when the database lists no notification that has it. The lists in memory are ahead of the database, so their changes have
/// numbers, and a file stays until the change that took it off the lists is durable.
struct AttachmentLedger {
  private struct File {
    let media: Media
    /// The last change of the lists before which a notification may have had it; nil while one has it.
    var unlisted: Int?
  }

  private var files: [MediaHash: File]
  /// Bytes of files that are being written.
  private var reserved = 0
  /// How many readers and writers each file has.
  private var pins: [MediaHash: Int] = [:]
  private var lastChange = 0
  private var lastDurableChange = 0
  private let limit: Int

  /// - Parameters:
  ///   - limit: the most bytes of all files.
  ///   - files: those that are there, which notifications have.
  init(limit: Int, files: [Media] = []) {
    self.limit = limit
    self.files = Dictionary(files.map { ($0.hash, File(media: $0)) }) { first, _ in first }
  }

  /// The bytes of the files, with those that are being written.
  var bytes: Int { files.values.reduce(reserved) { $0 + $1.media.size } }
  /// The bytes that another file may have.
  var room: Int { max(limit - bytes, 0) }
  /// The files.
  var hashes: Set<MediaHash> { Set(files.keys) }
  /// Whether there is no file.
  var isEmpty: Bool { files.isEmpty }

  /// Whether a file is there, whatever a notification says of its type and size.
  func has(_ hash: MediaHash) -> Bool { files[hash] != nil }

  /// Whether a file of this type and size is there.
  func has(_ media: Media) -> Bool { files[media.hash]?.media == media }

  /// Reserves bytes for a file that is going to be written; false if they do not fit.
  mutating func reserve(_ bytes: Int) -> Bool {
    guard bytes <= room else { return false }
    reserved += bytes
    return true
  }

  /// Ends a reservation, with the file if it was written.
  mutating func end(_ bytes: Int, _ written: Media? = nil) {
    reserved -= bytes
    if let written, !has(written.hash) { files[written.hash] = File(media: written, unlisted: lastChange) }
  }

  /// Keeps a file from being removed until it is closed as often. It need not be there yet.
  mutating func pin(_ hash: MediaHash) { pins[hash, default: 0] += 1 }

  /// Pins a file that is there; false if it is missing.
  mutating func open(_ media: Media) -> Bool {
    guard has(media) else { return false }
    pin(media.hash)
    return true
  }

  /// Ends a pin.
  mutating func close(_ hash: MediaHash) {
    pins[hash] = pins[hash].flatMap { $0 > 1 ? $0 - 1 : nil }
  }

  // MARK: Removal

  /// Takes a change of the lists of notifications, which is not durable yet; returns its number.
  mutating func listsChanged() -> Int {
    lastChange += 1
    return lastChange
  }

  /// Takes the files that notifications in the lists have.
  mutating func list(_ listed: Set<MediaHash>) {
    for hash in hashes {
      let unlisted = files[hash]?.unlisted ?? lastChange
      files[hash]?.unlisted = listed.contains(hash) ? nil : unlisted
    }
  }

  /// A change of the lists is durable, with all before it.
  mutating func listsAreDurable(_ change: Int) { lastDurableChange = max(lastDurableChange, change) }

  /// Whether there is a file to be removed.
  var hasRemovable: Bool { files.contains(where: isRemovable) }

  /// Takes the files that are to be removed, and returns them.
  mutating func sweep() -> Set<MediaHash> {
    let removed = Set(files.filter(isRemovable).keys)
    for hash in removed { files[hash] = nil }
    return removed
  }

  private func isRemovable(_ hash: MediaHash, _ file: File) -> Bool {
    guard let unlisted = file.unlisted else { return false }
    return unlisted <= lastDurableChange && pins[hash] == nil
  }
}

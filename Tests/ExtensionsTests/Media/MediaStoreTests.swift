import Cryptography
import EventLoop
import Foundation
import Notifications
import TestSupport
import Testing

@testable import Extensions

/// The folder of media that workers share: a file is there whole or not at all, as long as somebody wants it, and not for ever.
@Suite struct MediaStoreTests {
  private static let day = MediaStore.keptSeconds
  private static func now() -> Int64 { WallClock.seconds() }

  private static func png(_ number: Int, bytes: Int = 100) -> [UInt8] {
    MediaTypeTests.bytes([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], count: 16) + Array("\(number)".utf8)
      + [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: bytes)
  }

  private static func hash(_ bytes: [UInt8]) -> MediaHash {
    bytes.withUnsafeBytes { Digest.sha256($0).withUnsafeBytes { MediaHash(bytes: $0)! } }
  }

  /// Puts a file into a store in pieces.
  @discardableResult private static func put(_ bytes: [UInt8], _ store: MediaStore, until: Int64, pieces: Int = 7) async throws -> Media? {
    let file = try await store.begin()
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      try await store.append(Array(bytes[start..<min(start + pieces, bytes.count)]), to: file)
    }
    return try await store.finish(file, until: until)
  }

  private static func with(limit: Int = 1 << 30, _ body: (MediaFolder, MediaStore) async throws -> Void) async throws {
    try await TestFolder.with { folder in
      let media = MediaFolder(folder.path + "/media")
      let store = try await MediaStore.open(media, limit: limit)
      do { try await body(media, store) } catch {
        await store.close()
        throw error
      }
      await store.close()
    }
  }

  private static func names(_ folder: MediaFolder) -> [String] {
    (FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []).filter { $0.utf8.count > 3 }.sorted()
  }

  private static func content(_ file: MediaFile) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < file.size {
      let piece = file.read(at: bytes.count, atMost: 11)
      guard piece.count > 0 else { break }
      piece.withUnsafeBytes { bytes += $0 }
    }
    return bytes
  }

  @Test func aFileIsFoundByItsContentAndIsWhole() async throws {
    try await Self.with { folder, store in
      let bytes = Self.png(1)
      let media = try await Self.put(bytes, store, until: Self.now() + 60)
      #expect(media == Media(hash: Self.hash(bytes), type: .png, size: bytes.count))
      let file = try #require(try folder.open(Self.hash(bytes)))
      #expect(file.size == bytes.count && file.type == .png)
      #expect(Self.content(file) == bytes)
      #expect(try folder.open(Self.hash(Self.png(2))) == nil)
    }
  }

  @Test func whatIsNotFinishedOrNoMediaIsNowhere() async throws {
    try await Self.with { folder, store in
      let file = try await store.begin()
      try await store.append(Self.png(1), to: file)
      #expect(Self.names(folder).map { $0.hasPrefix("new/") } == [true])
      await store.discard(file)
      #expect(try await Self.put(Array("<html>".utf8), store, until: 0) == nil)
      #expect(try await Self.put([], store, until: 0) == nil)
      #expect(Self.names(folder) == [])
    }
  }

  /// Each worker writes what it has fetched, at the same time as others.
  @Test func storesShareAFolder() async throws {
    try await Self.with { folder, one in
      let other = try await MediaStore.open(folder, limit: 1 << 30)
      let bytes = Self.png(1, bytes: 10_000)
      async let first = Self.put(bytes, one, until: Self.now())
      async let second = Self.put(bytes, other, until: Self.now() + 10 * Self.day)
      #expect(try await first == second)
      await other.close()
      #expect(try folder.open(Self.hash(bytes)).map(Self.content) == bytes)
      await one.clean(now: Self.now() + 9 * Self.day)
      #expect(try folder.open(Self.hash(bytes)) != nil)
    }
  }

  @Test func aFileIsKeptADayLongerThanItsLastNotificationAndNoLongerThanNeeded() async throws {
    try await Self.with { folder, store in
      let bytes = Self.png(1)
      let expiration = Self.now() + 1_000
      try await Self.put(bytes, store, until: Self.now())
      #expect(try await store.keep(Self.hash(bytes), until: expiration))
      await store.clean(now: expiration + Self.day)
      #expect(try folder.open(Self.hash(bytes)) != nil)
      #expect(Self.names(folder).count == 2, "one mark is left: the latest")
      await store.clean(now: expiration + Self.day + 3_600)
      #expect(try folder.open(Self.hash(bytes)) == nil)
      #expect(Self.names(folder) == [])
      #expect(try await !store.keep(Self.hash(bytes), until: expiration + 10 * Self.day))
    }
  }

  /// The window between a cleaner's look and its removal: who asks for the file then still has it, or knows that it has not.
  @Test func whoKeepsAFileWhileItIsRemovedHasItOrKnows() async throws {
    try await Self.with { folder, store in
      let bytes = Self.png(1)
      let hash = Self.hash(bytes)
      try await Self.put(bytes, store, until: Self.now())
      // A cleaner has taken it away and not looked again yet.
      let later = Self.now() + 3 * Self.day
      #expect(rename(folder.file(hash), folder.file(hash) + ".removed") == 0)
      #expect(try await !store.keep(hash, until: later))
      // Somebody has marked it between its two looks.
      #expect(FileManager.default.createFile(atPath: "\(folder.file(hash)).\(later + Self.day)", contents: nil))
      await store.clean(now: later)
      #expect(try folder.open(hash).map(Self.content) == bytes, "the cleaner looks again, and puts it back")
      // One that has died in between.
      #expect(rename(folder.file(hash), folder.file(hash) + ".removed") == 0)
      await store.clean(now: later + 3 * Self.day)
      #expect(Self.names(folder) == [])
    }
  }

  @Test func whoKeepsAFileThatAnOperatorHasRemovedKnows() async throws {
    try await Self.with { folder, store in
      let bytes = Self.png(1)
      try await Self.put(bytes, store, until: Self.now())
      try FileManager.default.removeItem(atPath: folder.file(Self.hash(bytes)))
      #expect(try await !store.keep(Self.hash(bytes), until: Self.now()))
    }
  }

  /// Random stores, keeps and cleanings beside a table of when each file may go.
  @Test func aFileIsThereAsLongAsItIsWanted() async throws {
    try await Self.with { folder, store in
      var wanted: [Int: Int64] = [:]
      var generator = SystemRandomNumberGenerator()
      var time = Self.now()
      for _ in 0..<300 {
        let number = Int.random(in: 0..<6, using: &generator)
        let until = time + .random(in: 0...(2 * Self.day), using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
          try await Self.put(Self.png(number), store, until: until)
          wanted[number] = max(wanted[number] ?? 0, until)
        case 1:
          if try await store.keep(Self.hash(Self.png(number)), until: until) { wanted[number] = max(wanted[number] ?? 0, until) }
        case 2:
          time += .random(in: 0...Self.day, using: &generator)
          await store.clean(now: time)
        default: break
        }
        for (number, until) in wanted {
          let isThere = try folder.open(Self.hash(Self.png(number))) != nil
          if time <= until + Self.day { #expect(isThere) } else { wanted[number] = nil }
        }
      }
      await store.clean(now: time + 4 * Self.day)
      #expect(Self.names(folder) == [])
    }
  }

  @Test func aFullStoreTakesNothingMoreUntilSomethingHasGone() async throws {
    try await Self.with(limit: 1_000) { folder, store in
      let end = Self.now()
      try await Self.put(Self.png(1, bytes: 900), store, until: end)
      let error = await #expect(throws: MediaError.self) { try await Self.put(Self.png(2, bytes: 900), store, until: end) }
      #expect(error?.description.contains("which is all that it may have") == true)
      #expect(Self.names(folder).filter { $0.hasPrefix("new/") } == [], "what did not fit is gone")
      await store.clean(now: end + 2 * Self.day)
      try await Self.put(Self.png(2, bytes: 900), store, until: end)
    }
  }

  @Test func theSameContentCountsOnce() async throws {
    try await Self.with(limit: 3_000) { _, store in
      for _ in 0..<10 { try await Self.put(Self.png(1, bytes: 900), store, until: Self.now()) }
    }
  }

  @Test func whatIsThereAlreadyCountsBeforeTheFirstFile() async throws {
    try await Self.with { folder, store in
      try await Self.put(Self.png(1, bytes: 1_000), store, until: Self.now())
      let other = try await MediaStore.open(folder, limit: 1_000)
      let error = await #expect(throws: MediaError.self) { try await other.begin() }
      #expect(error?.description.contains("which is all that it may have") == true)
      await other.close()
    }
  }

  /// A part that cannot be read is one, and not all.
  @Test func whatCannotBeLookedThroughCostsTheOthersNothing() async throws {
    try await Self.with { folder, store in
      let bytes = (0..<20).map { Self.png($0) }
      for file in bytes { try await Self.put(file, store, until: Self.now()) }
      let broken = "\(folder.path)/\(Self.hash(bytes[0]).description.prefix(2))"
      try FileManager.default.moveItem(atPath: broken, toPath: broken + "x")
      try "no folder".write(toFile: broken, atomically: false, encoding: .utf8)
      await store.clean(now: Self.now() + 3 * Self.day)
      for file in bytes where !folder.file(Self.hash(file)).hasPrefix(broken) { #expect(try folder.open(Self.hash(file)) == nil) }
    }
  }

  @Test func whatAKilledWorkerHasLeftGoes() async throws {
    try await TestFolder.with { folder in
      let media = MediaFolder(folder.path + "/media")
      try await MediaStore.open(media, limit: 1 << 20).close()
      try folder.write("media/new/1.part", "half of a file")
      try folder.write("media/new/mail", "somebody else's")
      try folder.write("media/ab/notes.txt", "somebody else's")
      let store = try await MediaStore.open(media, limit: 1 << 20)
      await store.clean(now: Self.now())
      #expect(Self.names(media) == ["ab/notes.txt", "new/1.part", "new/mail"], "somebody may write it yet")
      await store.clean(now: Self.now() + 4_000)
      #expect(Self.names(media) == ["ab/notes.txt", "new/mail"])
      await store.close()
    }
  }

  @Test func aFolderThatCannotBeWrittenIsSaid() async throws {
    try await TestFolder.with(["file": "no folder"]) { folder in
      for path in ["\(folder.path)/file", "\(folder.path)/file/media", "\(folder.path)/none/media"] {
        let error = await #expect(throws: MediaError.self) { try await MediaStore.open(MediaFolder(path), limit: 1) }
        #expect(error?.description.contains(path) == true)
      }
    }
  }
}

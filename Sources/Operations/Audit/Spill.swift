import Glibc

/// Why facts cannot be spilled to disk.
package struct SpillError: Error, CustomStringConvertible {
  /// The system's error number.
  package let code: Int32
  /// What failed, and what to do.
  package let description: String

  init(_ what: String, _ folder: String) {
    code = errno
    description = "\(what) in \(folder): \(String(cString: strerror(code))); give a folder with more space by --spill, or a shorter range"
  }
}

/// Facts in parts by a hash. Facts beyond a part's memory go to one file.
///
/// The file never has a name, so the process leaves nothing behind. Each part is read alone, and has its facts in the order in which they were
/// added. The file contains the facts as they are in memory, so a fact must consist of numbers.
struct Spill<Fact>: ~Copyable {
  /// The number of parts.
  let parts: Int
  private let folder: String
  /// The number of facts that are written at once.
  private let chunk: Int
  private var waiting: [[Fact]]
  /// Where the file has the chunks of each part.
  private var chunks: [[Int]]
  private var file: UnsafeMutablePointer<FILE>?
  /// The size of the file.
  private(set) var bytesOnDisk = 0

  /// The maximum number of bytes in memory.
  private static var memory: Int { 16 << 20 }
  /// The intended size of one part, in bytes. A part is read at once.
  private static var part: Int { 8 << 20 }
  private static var stride: Int { MemoryLayout<Fact>.stride }

  /// Creates parts for about this many facts.
  init(expecting count: Int64, in folder: String) {
    var parts = 16
    while parts < 1024, Int64(parts) * Int64(Self.part) < count * Int64(Self.stride) { parts *= 2 }
    self.folder = folder
    self.parts = parts
    chunk = max(1, Self.memory / parts / Self.stride)
    waiting = Array(repeating: [], count: parts)
    chunks = Array(repeating: [], count: parts)
  }

  deinit { if let file { fclose(file) } }

  /// Adds a fact to the part of a hash.
  mutating func add(_ fact: Fact, hash: UInt64) throws(SpillError) {
    // The upper half of a product has the mixed bits.
    let part = Int((hash &* 0x9E37_79B9_7F4A_7C15) >> 32) & (parts - 1)
    waiting[part].append(fact)
    if waiting[part].count == chunk { try write(part) }
  }

  private mutating func write(_ part: Int) throws(SpillError) {
    if file == nil { try create() }
    let written = waiting[part].withUnsafeBytes { bytes in
      fseeko(file, bytesOnDisk, SEEK_SET) == 0 ? fwrite(bytes.baseAddress, Self.stride, chunk, file) : 0
    }
    guard written == chunk else { throw SpillError("a spill file cannot be written", folder) }
    chunks[part].append(bytesOnDisk)
    bytesOnDisk += chunk * Self.stride
    waiting[part].removeAll(keepingCapacity: true)
  }

  private mutating func create() throws(SpillError) {
    var name = Array("\(folder)/carillon-audit-XXXXXX".utf8CString)
    let descriptor = mkstemp(&name)
    guard descriptor >= 0, let file = fdopen(descriptor, "w+") else { throw SpillError("a spill file cannot be made", folder) }
    unlink(name)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    // A chunk is written and read at once, so a buffer would only copy it.
    setvbuf(file, nil, _IONBF, 0)
    self.file = file
  }

  /// Takes the facts of a part, and leaves it empty.
  mutating func take(_ part: Int) throws(SpillError) -> [Fact] {
    var (stored, rest): ([Int], [Fact]) = ([], [])
    swap(&stored, &chunks[part])
    swap(&rest, &waiting[part])
    let (file, chunk, count) = (file, chunk, stored.count * chunk)
    var facts = [Fact](unsafeUninitializedCapacity: count + rest.count) { buffer, initialized in
      for place in stored {
        let target = buffer.baseAddress?.advanced(by: initialized)
        guard let file, fseeko(file, place, SEEK_SET) == 0, fread(target, Self.stride, chunk, file) == chunk else { return }
        initialized += chunk
      }
    }
    guard facts.count == count else { throw SpillError("a spill file cannot be read", folder) }
    facts += rest
    return facts
  }
}

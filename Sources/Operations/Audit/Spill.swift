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
/// The file never has a name, so the process leaves nothing behind. Each part is read alone. The file contains the facts as they are in
/// memory, so a fact must consist of numbers.
struct Spill<Fact>: ~Copyable {
  /// The number of parts.
  let parts: Int
  private let folder: String
  private let chunk: Int
  private var waiting: [[Fact]]
  /// What the file has of each part.
  private var extents: [[(offset: Int64, count: Int)]]
  private var descriptor: Int32 = -1
  private var size: Int64 = 0

  /// The maximum number of bytes in memory.
  private static var memory: Int { 16 << 20 }
  /// The intended size of one part, in bytes. A part is read at once.
  private static var part: Int { 8 << 20 }

  /// Creates parts for about this many facts.
  init(expecting count: Int64, in folder: String) {
    var parts = 16
    while parts < 1024, Int64(parts) * Int64(Self.part) < count * Int64(MemoryLayout<Fact>.stride) { parts *= 2 }
    self.init(parts: parts, in: folder)
  }

  /// Creates this many parts. Spills with the same number put a hash into the same part.
  init(parts: Int, in folder: String) {
    self.folder = folder
    self.parts = parts
    chunk = max(1, Self.memory / parts / MemoryLayout<Fact>.stride)
    waiting = Array(repeating: [], count: parts)
    extents = Array(repeating: [], count: parts)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// The size of the file, in bytes.
  var bytesOnDisk: Int64 { size }

  /// Adds a fact to the part of a hash.
  mutating func add(_ fact: Fact, hash: UInt64) throws(SpillError) {
    // The upper half of a product has the mixed bits.
    let part = Int((hash &* 0x9E37_79B9_7F4A_7C15) >> 32) & (parts - 1)
    waiting[part].append(fact)
    if waiting[part].count >= chunk { try write(part) }
  }

  private mutating func write(_ part: Int) throws(SpillError) {
    if descriptor < 0 { try create() }
    let count = waiting[part].count
    var failed = false
    waiting[part].withUnsafeBytes { bytes in
      var done = 0
      while done < bytes.count, !failed {
        let written = pwrite(descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done, off_t(size) + off_t(done))
        if written > 0 { done += written } else { failed = written == 0 || errno != EINTR }
      }
    }
    if failed { throw SpillError("a spill file cannot be written", folder) }
    extents[part].append((size, count))
    size += Int64(count * MemoryLayout<Fact>.stride)
    waiting[part].removeAll(keepingCapacity: true)
  }

  private mutating func create() throws(SpillError) {
    var name = Array("\(folder)/carillon-audit-XXXXXX".utf8CString)
    descriptor = mkstemp(&name)
    guard descriptor >= 0 else { throw SpillError("a spill file cannot be made", folder) }
    unlink(name)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  /// Takes the facts of a part, and leaves it empty.
  mutating func take(_ part: Int) throws(SpillError) -> [Fact] {
    let stored = extents[part]
    var rest: [Fact] = []
    swap(&rest, &waiting[part])
    guard !stored.isEmpty else { return rest }
    extents[part] = []
    let count = stored.reduce(rest.count) { $0 + $1.count }
    var failed = false
    let (descriptor, stride) = (descriptor, MemoryLayout<Fact>.stride)
    let facts = [Fact](unsafeUninitializedCapacity: count) { buffer, initialized in
      let bytes = UnsafeMutableRawBufferPointer(buffer)
      var place = 0
      for extent in stored {
        var done = 0
        while done < extent.count * stride, !failed {
          let target = bytes.baseAddress?.advanced(by: place + done)
          let read = pread(descriptor, target, extent.count * stride - done, off_t(extent.offset) + off_t(done))
          if read > 0 { done += read } else { failed = read == 0 || errno != EINTR }
        }
        if failed { return }
        place += extent.count * stride
      }
      for (index, fact) in rest.enumerated() { buffer.initializeElement(at: place / stride + index, to: fact) }
      initialized = count
    }
    if failed { throw SpillError("a spill file cannot be read", folder) }
    return facts
  }
}

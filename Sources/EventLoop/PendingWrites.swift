import CUV

/// The queued writes of a stream, oldest first.
///
/// The first buffer is stored apart, since one is the usual number. So an idle or lightly used stream has no array.
struct PendingWrites {
  private var first: SharedBytes?
  private var rest: [SharedBytes] = []
  /// Bytes of `first` that the kernel has accepted.
  private var begun = 0
  /// Bytes that the kernel has not accepted yet.
  private(set) var bytes = 0

  var isEmpty: Bool { first == nil }

  mutating func append(_ buffer: SharedBytes) {
    bytes += buffer.count
    if first == nil { first = buffer } else { rest.append(buffer) }
  }

  /// Fills the vector with the next buffers; answers the numbers of entries and bytes.
  func fill(_ vector: UnsafeMutableBufferPointer<uv_buf_t>) -> (entries: Int, bytes: Int) {
    guard let first else { return (0, 0) }
    vector[0] = uv_buf_t(base: first.base + begun, len: first.count - begun)
    var total = first.count - begun
    var entries = 1
    for buffer in rest.prefix(vector.count - 1) {
      vector[entries] = uv_buf_t(base: buffer.base, len: buffer.count)
      total += buffer.count
      entries += 1
    }
    return (entries, total)
  }

  /// Removes bytes that the kernel has accepted.
  mutating func advance(_ taken: Int) {
    bytes -= taken
    if bytes == 0 {
      first = nil
      if !rest.isEmpty { rest.removeAll(keepingCapacity: false) }
      begun = 0
      return
    }
    var left = taken
    var whole = 0
    var buffer = first
    while let current = buffer, left >= current.count - begun {
      left -= current.count - begun
      begun = 0
      buffer = whole < rest.count ? rest[whole] : nil
      whole += 1
    }
    begun += left
    guard whole > 0 else { return }
    first = buffer
    rest.removeFirst(min(whole, rest.count))
  }

  /// Removes the first entries for a write that the kernel finishes later.
  mutating func take(_ entries: Int) -> [SharedBytes] {
    guard let first, entries > 0 else { return [] }
    let taken = [first] + rest.prefix(entries - 1)
    bytes -= taken.reduce(-begun) { $0 + $1.count }
    begun = 0
    rest.removeFirst(entries - 1)
    self.first = rest.isEmpty ? nil : rest.removeFirst()
    return taken
  }

  /// Moves the oldest bytes into a buffer, as many as fit; answers their number.
  mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var count = 0
    func copy(_ bytes: SharedBytes, from start: Int) {
      bytes.withUnsafeBytes { bytes in
        let part = bytes[start...].prefix(buffer.count - count)
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
        count += part.count
      }
    }
    guard let first else { return 0 }
    copy(first, from: begun)
    for next in rest where count < buffer.count { copy(next, from: 0) }
    advance(count)
    return count
  }

  /// Drops the buffers without a sent byte.
  mutating func discard() {
    rest = []
    if begun == 0 { first = nil }
    bytes = first.map { $0.count - begun } ?? 0
  }
}

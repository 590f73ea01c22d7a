/// Splits bytes into lines, in bounded memory.
struct LineSplitter {
  /// The longest line, in bytes.
  let limit: Int
  private var begun: [UInt8] = []

  init(limit: Int) { self.limit = limit }

  /// Takes bytes, and calls `body` with each complete line.
  ///
  /// - Parameter body: gets a line without its end; returns false to stop.
  /// - Returns: whether the incomplete rest may still become a line.
  mutating func take(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Bool) -> Bool {
    var rest = bytes[...]
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      let part = rest[..<end]
      guard begun.count + part.count <= limit else { return false }
      rest = rest[(end + 1)...]
      if begun.isEmpty {
        guard body(UnsafeRawBufferPointer(rebasing: part)) else { return true }
      } else {
        begun.append(contentsOf: part)
        let goesOn = begun.withUnsafeBytes(body)
        begun.removeAll(keepingCapacity: true)
        guard goesOn else { return true }
      }
    }
    guard begun.count + rest.count <= limit else { return false }
    begun.append(contentsOf: rest)
    return true
  }
}

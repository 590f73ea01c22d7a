import Glibc

/// One of the system's clocks.
enum SystemClock {
  /// What it shows: seconds, and the nanoseconds beyond them.
  static func read(_ clock: clockid_t) -> (seconds: Int64, nanoseconds: Int64) {
    // Read by their places: which module the members of `timespec` belong to depends on the order in which the compiler happens to load
    // C modules, so that naming them compiles in one build and not in the next.
    withUnsafeTemporaryAllocation(byteCount: MemoryLayout<timespec>.size, alignment: MemoryLayout<timespec>.alignment) { bytes in
      guard let start = bytes.baseAddress, clock_gettime(clock, start.assumingMemoryBound(to: timespec.self)) == 0 else { return (0, 0) }
      return (Int64(bytes.load(as: Int.self)), Int64(bytes.load(fromByteOffset: MemoryLayout<Int>.size, as: Int.self)))
    }
  }
}

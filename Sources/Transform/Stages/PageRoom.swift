/// Decides which requests may ask for a page of their person's devices. A value.
///
/// A request multiplies by the person's devices. So the bytes that pages retain limit the work, and not the number of requests alone.
struct PageRoom {
  /// Pages that were asked for and have not come. Their size is not known yet.
  private var asked = 0
  /// Bytes of the entries of pages that have come and are not judged yet.
  private var bytes = 0
  /// Requests that wait for a further page. They go before first pages, so that begun requests finish.
  private var going: [Slot] = []
  /// Requests that wait for their first page, oldest first.
  private var fresh: ArraySlice<Slot> = []

  private static let askedMaximum = 32
  private static let bytesMaximum = 16 << 20

  /// Whether requests wait.
  var isWaiting: Bool { !going.isEmpty || !fresh.isEmpty }

  /// Whether a page may be asked for now. If so, it counts as asked for.
  mutating func begin() -> Bool {
    guard asked < Self.askedMaximum, bytes < Self.bytesMaximum else { return false }
    asked += 1
    return true
  }

  /// A request waits for its turn.
  mutating func wait(_ slot: Slot, isGoing: Bool) {
    if isGoing { going.append(slot) } else { fresh.append(slot) }
  }

  /// The next request that may ask. Its page counts as asked for.
  mutating func next() -> Slot? {
    guard isWaiting, begin() else { return nil }
    return going.popLast() ?? fresh.popFirst()
  }

  /// A page that was asked for has come, or has failed.
  mutating func came() { asked -= 1 }

  /// A page that has come retains so many bytes until it is judged.
  mutating func hold(_ size: Int) { bytes += size }

  /// A page is judged or given up, and releases its bytes.
  mutating func judged(_ size: Int) { bytes -= size }
}

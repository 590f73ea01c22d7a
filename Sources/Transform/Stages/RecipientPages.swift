/// Which requests may ask for a page of their person's devices: a value. One request becomes as many as the person has devices, so what is
/// under way is bound by what the pages retain, and not by the number of requests alone.
struct RecipientPages {
  /// Pages that are asked for and have not come: what they will retain is not known yet.
  private var asked = 0
  /// Bytes of the entries of pages that have come and are not judged.
  private var bytes = 0
  /// Requests whose next page is due before the first one of any other, so that begun ones come to their end.
  private var going: [Int32] = []
  /// Requests that wait for their first page, oldest first from `head` on.
  private var fresh: [Int32] = []
  private var head = 0

  private static let askedMaximum = 32
  private static let bytesMaximum = 16 << 20

  /// Whether requests wait.
  var isWaiting: Bool { !going.isEmpty || head < fresh.count }

  /// Whether a page may be asked for now, which then counts as asked for.
  mutating func begin() -> Bool {
    guard asked < Self.askedMaximum, bytes < Self.bytesMaximum else { return false }
    asked += 1
    return true
  }

  /// A request waits for its turn.
  mutating func wait(_ slot: Int32, isGoing: Bool) {
    if isGoing { going.append(slot) } else { fresh.append(slot) }
  }

  /// The next request whose turn it is, its page counting as asked for.
  mutating func next() -> Int32? {
    guard isWaiting, begin() else { return nil }
    if let slot = going.popLast() { return slot }
    let slot = fresh[head]
    head += 1
    if head >= 1024, head > fresh.count / 2 {
      fresh.removeFirst(head)
      head = 0
    }
    return slot
  }

  /// A page that was asked for has come, or will not.
  mutating func came() { asked -= 1 }

  /// A page that has come retains so many bytes until it is judged.
  mutating func hold(_ size: Int) { bytes += size }

  /// A page is judged, or given up.
  mutating func judged(_ size: Int) { bytes -= size }
}

import EventLoop

/// What follows a response's head.
enum HTTPBody {
  case bytes(SharedBytes)
  case streamed(StreamedBody)

  /// Bytes in all.
  var count: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .streamed(let body): body.count
    }
  }

  /// Nothing of it is needed any more.
  func close() {
    switch self {
    case .bytes: break
    case .streamed(let body): body.close()
    }
  }
}

/// A source on its way to a client: what is left of it, and that it is closed once. Loop-confined.
final class StreamedBody {
  /// Bytes that are read at once: what a slow client costs in memory.
  static let pieceBytes = 131_072

  let count: Int
  /// Bytes that have not been read.
  private(set) var remaining: Int
  /// Until it is closed.
  private var source: (any HTTPBodySource)?
  /// From `start` to `close`.
  private var nextTurn: Timer?

  init(_ source: any HTTPBodySource) {
    count = source.count
    precondition(count >= 0, "a body cannot have fewer than no bytes")
    remaining = count
    self.source = source
  }

  // A response that nobody sends is let go of, with what it would have sent.
  deinit { close() }

  /// Begins to send it.
  ///
  /// - Parameter sendPiece: called once after each `waitForTurn`.
  func start(on loop: EventLoop, _ sendPiece: @escaping () -> Void) {
    precondition(nextTurn == nil, "a source is the body of one response")
    nextTurn = Timer(on: loop, sendPiece)
  }

  /// Lets the others of the loop go first: a client that takes each piece at once would else have the loop to itself until the end.
  func waitForTurn() { nextTurn?.start(after: 0) }

  /// The next piece; closes the source with the last one. Nil when the rest cannot be had.
  func read() -> SharedBytes? {
    let maximum = min(remaining, Self.pieceBytes)
    guard let piece = try? source?.read(atMost: maximum), piece.count > 0, piece.count <= maximum else {
      close()
      return nil
    }
    remaining -= piece.count
    if remaining == 0 { close() }
    return piece
  }

  /// Closes the source, unless that has been done.
  func close() {
    nextTurn?.close()
    nextTurn = nil
    let source = self.source
    self.source = nil
    source?.close()
  }
}

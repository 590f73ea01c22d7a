import EventLoop

/// The body of a response.
enum HTTPBody {
  case bytes(SharedBytes)
  case streamed(StreamedBody)

  /// The length in bytes.
  var count: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .streamed(let body): body.count
    }
  }

  /// Closes it; no more of it is needed.
  func close() {
    switch self {
    case .bytes: break
    case .streamed(let body): body.close()
    }
  }
}

/// The unsent rest of a source, which is closed once.
final class StreamedBody {
  /// The most bytes of one read, which a slow client costs in memory.
  static let pieceBytes = 131_072

  let count: Int
  /// The bytes that have not been read.
  private(set) var remaining: Int
  /// Nil after it is closed.
  private var source: (any HTTPBodySource)?
  /// Set from `start` to `close`.
  private var nextTurn: Timer?

  init(_ source: any HTTPBodySource) {
    count = source.count
    precondition(count >= 0, "a body cannot have fewer than no bytes")
    remaining = count
    self.source = source
  }

  // A response that is never sent is released with its source.
  deinit { close() }

  /// Begins to send it.
  ///
  /// - Parameter sendPiece: called once after each `waitForTurn`.
  func start(on loop: EventLoop, _ sendPiece: @escaping () -> Void) {
    precondition(nextTurn == nil, "a source is the body of one response")
    nextTurn = Timer(on: loop, sendPiece)
  }

  /// Lets the loop's other work run first. Otherwise a fast client would occupy the loop until the end.
  func waitForTurn() { nextTurn?.start(after: 0) }

  /// The next piece; closes the source after the last one. Nil if the rest cannot be read.
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

  /// Closes the source, unless it is closed.
  func close() {
    nextTurn?.close()
    nextTurn = nil
    let source = self.source
    self.source = nil
    source?.close()
  }
}

import EventLoop

/// Decides how many bytes of TLS handshakes a server reads in a second. Loop-confined.
///
/// A handshake keeps the loop busy for about half a millisecond, so too many at once would delay all connected peers. Those beyond the limit
/// wait in order, with their bytes in the kernel. What counts is each read of an unfinished handshake: the first has the client's offer, the
/// second its confirmation.
final class HandshakeGate {
  private static let readsOfHandshake = 2
  private static let stepMilliseconds = 10
  /// The reads that may come at once after a pause: the share of this time.
  private static let burstMilliseconds = 50

  private let loop: EventLoop
  private var bucket: TokenBucket
  private var waiting: [TLSLayer] = []
  private var timer: Timer?

  init(on loop: EventLoop, perSecond: Int) {
    self.loop = loop
    bucket = TokenBucket(perSecond: perSecond * Self.readsOfHandshake, burstMilliseconds: Self.burstMilliseconds)
  }

  /// Whether a layer may read now. If not, the gate continues it later.
  func admits(_ layer: TLSLayer) -> Bool {
    if waiting.isEmpty, bucket.take(at: loop.milliseconds()) { return true }
    waiting.append(layer)
    if timer == nil {
      timer = Timer(on: loop, after: Self.stepMilliseconds, repeating: Self.stepMilliseconds) { [weak self] in self?.advance() }
    }
    return false
  }

  private func advance() {
    var continued = 0
    while continued < waiting.count {
      let layer = waiting[continued]
      // A closed connection needs no turn.
      if layer.isWaiting {
        guard bucket.take(at: loop.milliseconds()) else { break }
        layer.proceed()
      }
      continued += 1
    }
    waiting.removeFirst(continued)
    if waiting.isEmpty { close() }
  }

  /// Stops. Waiting handshakes are closed by the deadline of their connections.
  func close() {
    waiting = []
    timer?.close()
    timer = nil
  }
}

public import EventLoop

/// A server that answers whatever it is told, piece by piece: for clients that must survive it.
public actor HostileServer: LoopActor {
  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  private let state = State()

  private final class State {
    var listener: Listener?
    var connections = 0
  }

  /// Makes a server that does not listen yet.
  public init() { loop = EventLoop(name: "hostile") }

  /// Listens at a port of 127.0.0.1.
  ///
  /// - Parameter answer: the pieces for the connection of this number, given the first bytes that it sent: one is sent then, a further one
  ///   each time that more has come or nothing for some milliseconds, and after the last the connection is closed.
  /// - Returns: where.
  public func listen(_ answer: @escaping @Sendable (_ connection: Int, _ received: [UInt8]) -> [[UInt8]]) throws -> SocketAddress {
    let state = state
    let loop = loop
    let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
      let number = state.connections
      state.connections += 1
      let conversation = Conversation(stream, on: loop) { answer(number, $0) }
      stream.handler = conversation
      stream.startReading()
    }
    state.listener = listener
    return listener.localAddress
  }

  /// How many connections there have been.
  public var connections: Int { state.connections }

  /// Listens no more, and ends its loop.
  public nonisolated func close() async {
    await stop()
    await loop.close()
  }

  private func stop() {
    state.listener?.close()
    state.listener = nil
  }
}

/// One connection of a hostile server.
private final class Conversation: StreamHandler {
  private static let pauseMilliseconds = 3
  private let stream: Stream
  private let answer: ([UInt8]) -> [[UInt8]]
  private var pieces: [[UInt8]]?
  private var timer: Timer?

  init(_ stream: Stream, on loop: EventLoop, _ answer: @escaping ([UInt8]) -> [[UInt8]]) {
    self.stream = stream
    self.answer = answer
    timer = Timer(on: loop) { [unowned self] in next() }
  }

  func streamReceived(_ bytes: UnsafeRawBufferPointer) {
    if pieces == nil { pieces = answer(Array(bytes)).reversed() }
    next()
  }

  private func next() {
    guard let piece = pieces?.popLast() else {
      timer?.stop()
      return stream.finish(withinMilliseconds: 50)
    }
    if !piece.isEmpty { stream.write(piece.withUnsafeBytes { SharedBytes.make($0) }) }
    timer?.start(after: Self.pauseMilliseconds)
  }

  func streamDrained() {}

  func streamEnded(_ end: StreamEnd) {
    timer?.close()
    timer = nil
  }
}

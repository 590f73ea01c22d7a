import EventLoop
import TestSupport
import Testing

/// Collects what a stream receives and answers with what it is told to.
private final class Peer: StreamHandler {
  var received: [UInt8] = []
  var turns: [UInt64] = []
  var onBytes: ((Peer) -> Void)?
  var onEnd: ((StreamEnd, Peer) -> Void)?
  func streamReceived(_ bytes: UnsafeRawBufferPointer) {
    received.append(contentsOf: bytes)
    onBytes?(self)
  }
  func streamEnded(_ end: StreamEnd) { onEnd?(end, self) }
  func streamDrained() {}
}

private actor Lane: LoopActor {
  nonisolated let loop = EventLoop(name: "streams")

  /// What a client has received when a server wrote `buffers` of `size` bytes each, then finished.
  func receive(buffers: Int, size: Int) async throws -> [UInt8] {
    let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
      for index in 0..<buffers {
        stream.write(.make(count: size) { for offset in 0..<size { $0[offset] = UInt8(truncatingIfNeeded: index &+ offset) } })
      }
      stream.finish(withinMilliseconds: 60_000)
    }
    defer { listener.close() }
    let peer = Peer()
    let stream = try await Stream.connect(on: loop, to: listener.localAddress, timeoutMilliseconds: 20_000)
    return await withCheckedContinuation { continuation in
      peer.onEnd = { _, peer in continuation.resume(returning: peer.received) }
      stream.handler = peer
      stream.startReading()
    }
  }

  /// How a client's stream ends when the server closes without reading.
  func endOfAbandoned() async throws -> StreamEnd {
    let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { $0.close() }
    defer { listener.close() }
    let peer = Peer()
    let stream = try await Stream.connect(on: loop, to: listener.localAddress, timeoutMilliseconds: 20_000)
    return await withCheckedContinuation { continuation in
      peer.onEnd = { end, _ in continuation.resume(returning: end) }
      stream.handler = peer
      stream.startReading()
    }
  }

  func connect(_ address: SocketAddress) async -> EventLoopError? {
    do throws(EventLoopError) {
      let stream = try await Stream.connect(on: loop, to: address, timeoutMilliseconds: 20_000)
      stream.close()
      return nil
    } catch { return error }
  }

  func freePort() throws -> Int {
    let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { $0.close() }
    defer { listener.close() }
    return listener.localAddress.port
  }

  /// How much stays queued towards a peer that does not read, and what is left after `discardPending`.
  func pendingTowardsASlowPeer() async throws -> (queued: Int, afterDiscard: Int) {
    var held: Stream?
    let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { held = $0 }
    defer { listener.close() }
    let stream = try await Stream.connect(on: loop, to: listener.localAddress, timeoutMilliseconds: 20_000)
    for _ in 0..<3000 { stream.write(.make(count: 65536) { _ in }) }
    _ = await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let timer = Timer(on: loop) { continuation.resume() }
      timer.start(after: 20)
    }
    let queued = stream.pendingBytes
    stream.discardPending()
    let after = stream.pendingBytes
    stream.close()
    held?.close()
    return (queued, after)
  }

  /// The loop's turns in which a client has received something of a server that sends so much.
  func turnsOfReceiving(_ bytes: Int) async throws -> [UInt64] {
    let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
      stream.write(.make(count: bytes) { _ in })
      stream.finish(withinMilliseconds: 60_000)
    }
    defer { listener.close() }
    let (peer, loop) = (Peer(), loop)
    peer.onBytes = { $0.turns.append(loop.turns) }
    let stream = try await Stream.connect(on: loop, to: listener.localAddress, timeoutMilliseconds: 20_000)
    return await withCheckedContinuation { continuation in
      peer.onEnd = { _, peer in continuation.resume(returning: peer.turns) }
      stream.handler = peer
      stream.startReading()
    }
  }
}

@Suite struct StreamTests {
  @Test(arguments: [(1, 10), (5, 0), (1000, 17), (300, 65536), (2, 8_000_000)])
  func whatIsWrittenBeforeTheEndArrivesWhole(buffers: Int, size: Int) async throws {
    let lane = Lane()
    let received = try await Task(executorPreference: lane.loop) { try await lane.receive(buffers: buffers, size: size) }.value
    #expect(received.count == buffers * size)
    if size > 0 {
      let wrong = received.indices.first { received[$0] != UInt8(truncatingIfNeeded: $0 / size &+ $0 % size) }
      #expect(wrong == nil)
    }
    await lane.loop.close()
  }

  @Test func aPeerThatClosesIsToldApart() async throws {
    let lane = Lane()
    let end = try await Task(executorPreference: lane.loop) { try await lane.endOfAbandoned() }.value
    guard case .peerClosed = end else {
      Issue.record("ended as \(end)")
      return
    }
    await lane.loop.close()
  }

  @Test func connectingSaysWhyItFailed() async throws {
    let lane = Lane()
    let taken = try TakenPort()
    let refused = await lane.connect(SocketAddress(host: "127.0.0.1", port: taken.port))
    #expect(refused?.code == .connectionRefused)
    #expect(refused?.isRetriable == true, "port \(taken.port)")
    let unknown = await lane.connect(SocketAddress(host: "no-such-host.invalid", port: 1))
    #expect(unknown?.code == .hostNotFound)
    await lane.loop.close()
  }

  @Test func namesAreLookedUp() async throws {
    let lane = Lane()
    let found = try await lane.loop.run { [loop = lane.loop] in
      try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { $0.close() }.localAddress.port
    }
    #expect(await lane.connect(SocketAddress(host: "localhost", port: found)) == nil)
    await lane.loop.close()
  }

  @Test func whatASlowPeerDoesNotTakeIsCountedAndCanBeDropped() async throws {
    let lane = Lane()
    let (queued, after) = try await Task(executorPreference: lane.loop) { try await lane.pendingTowardsASlowPeer() }.value
    #expect(queued > 50_000_000)
    #expect(after < queued)
    await lane.loop.close()
  }

  @Test func aTurnReadsOneBufferOfAStreamSoThatNoFloodHoldsTheLoop() async throws {
    let lane = Lane()
    let turns = try await Task(executorPreference: lane.loop) { try await lane.turnsOfReceiving(20_000_000) }.value
    #expect(turns.count > 300)
    #expect(Set(turns).count == turns.count)
    await lane.loop.close()
  }
}

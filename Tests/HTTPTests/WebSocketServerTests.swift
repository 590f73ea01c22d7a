import EventLoop
import Glibc
import HTTP
import TestSupport
import Testing

@Suite struct WebSocketServerTests {
  @Test(arguments: [false, true]) func queuedFramesGoOutBeforeAGracefulClose(overTLS: Bool) async throws {
    var webSocket = ServerFixture.carillon()
    webSocket.maximumOutboxBytes = 100_000_000
    try await ServerFixture.with(webSocket: webSocket, overTLS: overTLS) { fixture, port in
      let socket = try RawSocket.webSocket(port: port, "/ws?send=20000", receiveBufferBytes: 8192)
      for _ in 0..<20_000 { #expect(try socket.readFrame()?.payload.count == 1024) }
      #expect(try socket.readFrame()?.closeCode == 1001)
      try socket.send(clientClose(1001))
      #expect(try socket.readToEnd().isEmpty)
      socket.close()
      #expect(await fixture.wait { $0.ends == [WebSocketEnd(.closed, .goingAway, "that was all")] })
    }
  }

  @Test(arguments: [false, true]) func closingDropsWhatHasNotBegun(overTLS: Bool) async throws {
    try await ServerFixture.with(overTLS: overTLS) { fixture, port in
      let socket = try RawSocket.webSocket(port: port)
      #expect(await fixture.wait { $0.opened == 1 })
      await fixture.withConnections { connections in
        connections.first?.send(.text("never seen"))
        connections.first?.close(.serviceRestart, "now")
        #expect(connections.first?.isOpen == false)
        #expect(connections.first?.send(.text("neither")) == false)
      }
      let frame = try socket.readFrame()
      #expect(frame?.closeCode == 1012)
      #expect(frame?.payload.dropFirst(2).elementsEqual("now".utf8) == true)
      #expect(await fixture.ends.isEmpty)
      try socket.send(clientText("in between") + clientClose(1012))
      #expect(try socket.readToEnd().isEmpty)
      #expect(await fixture.wait { $0.ends == [WebSocketEnd(.closed, .serviceRestart, "now")] })
    }
  }

  @Test func closeThatIsNotAnsweredEndsAtItsDeadline() async throws {
    var webSocket = ServerFixture.carillon()
    webSocket.closeMilliseconds = 50
    try await ServerFixture.with(webSocket: webSocket) { fixture, port in
      let socket = try RawSocket.webSocket(port: port)
      #expect(await fixture.wait { $0.opened == 1 })
      await fixture.withConnections { $0.first?.close(.normal) }
      #expect(await fixture.wait { $0.ends.first?.cause == .closeUnanswered && $0.statistics.open == 0 })
      #expect(try socket.readFrame()?.closeCode == 1000)
    }
  }

  @Test(arguments: [false, true]) func slowReaderIsClosedAtTheOutboxBoundWithItsCode(overTLS: Bool) async throws {
    var webSocket = ServerFixture.carillon()
    webSocket.maximumOutboxBytes = 65_536
    webSocket.outboxFull = WebSocketEnd(.outboxFull, WebSocketCloseCode(rawValue: 4008), "too slow")
    try await ServerFixture.with(webSocket: webSocket, overTLS: overTLS) { fixture, port in
      let socket = try RawSocket.webSocket(port: port, receiveBufferBytes: 4096)
      #expect(await fixture.wait { $0.opened == 1 })
      var sent = 0
      while await fixture.withConnections({ connections in
        guard let connection = connections.first, connection.isOpen else { return false }
        connection.send(.text(String(repeating: "y", count: 1000)))
        #expect(connection.outboxBytes <= 65_536)
        return connection.isOpen
      }) { sent += 1 }
      #expect(await fixture.wait { $0.ends == [WebSocketEnd(.outboxFull, WebSocketCloseCode(rawValue: 4008), "too slow")] })
      var received = 0
      var last: RawFrame?
      while let frame = try socket.readFrame() {
        last = frame
        if frame.opcode == 1 { received += 1 }
      }
      #expect(last?.closeCode == 4008)
      #expect(received <= sent && received > 0)
      // A tunnel keeps more.
      #expect(sent < 600 || overTLS, "the kernel keeps a bounded part, too")
    }
  }

  @Test func aPeerThatPingsWithoutReadingIsOwedFewPongs() async throws {
    var webSocket = ServerFixture.carillon()
    webSocket.maximumOutboxBytes = 65_536
    try await ServerFixture.with(webSocket: webSocket) { fixture, port in
      let socket = try RawSocket.webSocket(port: port, receiveBufferBytes: 4096)
      let count = 50_000
      let ping = clientFrame(9, [UInt8](repeating: 0x70, count: 125))
      // The kernels of both sides hold a part of the six megabytes that all of the pongs would be.
      for _ in 0..<count / 100 { try socket.send((0..<100).flatMap { _ in ping }) }
      try socket.send(clientFrame(9, Array("last".utf8)) + clientText("still there?"))
      #expect(await fixture.wait { $0.withConnections { $0.first.map { (1...65_536).contains($0.outboxBytes) } ?? false } })
      #expect(await fixture.withConnections { $0.first?.isOpen } == true)
      var frames: [RawFrame] = []
      while frames.last != .pong(Array("last".utf8)), let frame = try socket.readFrame() { frames.append(frame) }
      #expect(frames.contains(.text("still there?")))
      #expect(frames.count < count / 2)
    }
  }

  @Test(arguments: [9, 10, 1, 0] as [UInt8]) func framesOfEveryKindAreTheHandlersToCount(_ opcode: UInt8) async throws {
    var webSocket = ServerFixture.carillon()
    webSocket.tooManyFrames = WebSocketEnd(.tooManyFrames, WebSocketCloseCode(rawValue: 4012), "fewer")
    try await ServerFixture.with(webSocket: webSocket) { fixture, port in
      let socket = try RawSocket.webSocket(port: port, "/ws?frames=10")
      let first = opcode == 0 ? clientText("", isFinal: false) : clientFrame(opcode)
      try socket.send(first + (1..<11).flatMap { _ in clientFrame(opcode, isFinal: opcode != 0) } + clientText("not read"))
      var last: RawFrame?
      while let frame = try socket.readFrame() { last = frame }
      #expect(last?.closeCode == 4012)
      socket.close()
      #expect(await fixture.wait { $0.ends == [WebSocketEnd(.tooManyFrames, WebSocketCloseCode(rawValue: 4012), "fewer")] })
    }
  }

  @Test func quietPeerIsPingedAndEndsWithoutAPong() async throws {
    var webSocket = ServerFixture.carillon()
    webSocket.pingMilliseconds = 60
    webSocket.pongMilliseconds = 1_500
    try await ServerFixture.with(webSocket: webSocket) { fixture, port in
      // Where the machine stands still, a pong comes too late.
      await eventually("three pings are answered, and the connection ends at the fourth") {
        let socket = try RawSocket.webSocket(port: port)
        for _ in 0..<3 {
          guard try socket.readFrame() == RawFrame(opcode: 9, payload: []) else { return false }
          try socket.send(clientFrame(10))
        }
        guard try socket.readFrame()?.opcode == 9, try socket.readFrame()?.opcode == 8 else { return false }
        return await fixture.wait { $0.ends.last?.cause == .pingTimeout }
      }
    }
  }

  @Test func partsOfAFrameAreNoSignOfLife() async throws {
    var webSocket = ServerFixture.carillon()
    webSocket.pingMilliseconds = 60
    webSocket.pongMilliseconds = 60
    try await ServerFixture.with(webSocket: webSocket) { fixture, port in
      let socket = try RawSocket.webSocket(port: port)
      // A frame that never comes to its end.
      var bytes = clientFrame(1, [UInt8](repeating: 0x61, count: 60_000)).dropLast()
      await eventually("it has ended") {
        if let byte = bytes.popFirst() { try? socket.send([byte]) }
        return await !fixture.ends.isEmpty
      }
      #expect(await fixture.ends.map(\.cause) == [.pingTimeout])
    }
  }

  @Test func abortEndsAtOnceAndExactlyOnce() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket.webSocket(port: port)
      #expect(await fixture.wait { $0.opened == 1 })
      let endedInside = await fixture.withConnections { connections in
        let connection = connections.first
        connection?.abort()
        connection?.abort()
        connection?.close(.normal)
        return connection?.handler == nil
      }
      #expect(!endedInside)
      #expect(try socket.readToEnd().isEmpty)
      #expect(await fixture.wait { $0.ends == [WebSocketEnd(.aborted, .abnormal)] && $0.statistics.open == 0 })
    }
  }

  @Test func lostConnectionIsToldApart() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket.webSocket(port: port)
      #expect(await fixture.wait { $0.opened == 1 })
      socket.close()
      #expect(await fixture.wait { $0.ends.map(\.cause) == [.connectionLost] })
      #expect(await fixture.ends.first?.code == .abnormal)
    }
  }

  @Test func oneFrameIsSharedByAllConnections() async throws {
    try await ServerFixture.with { fixture, port in
      let sockets = try (0..<50).map { _ in try RawSocket.webSocket(port: port) }
      #expect(await fixture.wait { $0.opened == 50 })
      await fixture.withConnections { connections in
        let frame = WebSocketFrame.text("to all")
        for connection in connections { for _ in 0..<3 { connection.send(frame) } }
      }
      for socket in sockets { for _ in 0..<3 { #expect(try socket.readFrame() == .text("to all")) } }
    }
  }

  @Test func closingTheServerClosesItsWebSockets() async throws {
    try await ServerFixture.with { fixture, port in
      let socket = try RawSocket.webSocket(port: port)
      #expect(await fixture.wait { $0.opened == 1 })
      async let closed: Void = fixture.closeServer(withinMilliseconds: hangMilliseconds)
      #expect(try socket.readFrame()?.closeCode == 1001)
      try socket.send(clientClose(1001))
      #expect(try socket.readToEnd().isEmpty)
      socket.close()
      await closed
      #expect(await fixture.ends.map(\.cause) == [.closed])
    }
  }

  @Test func everyHandlerIsToldBeforeTheServerCountsAsClosed() async throws {
    try await ServerFixture.with { fixture, port in
      let sockets = try (0..<10).map { _ in try RawSocket.webSocket(port: port) }
      #expect(await fixture.wait { $0.opened == 10 })
      await fixture.closeServer(withinMilliseconds: 30)
      #expect(await fixture.ends.map(\.cause) == Array(repeating: .closeUnanswered, count: 10))
      withExtendedLifetime(sockets) {}
    }
  }

  @Test func idleConnectionHoldsNoParserAndLittleMemory() async throws {
    try await ServerFixture.with { fixture, port in
      let count = 2000
      var sockets: [RawSocket] = []
      for _ in 0..<count {
        let socket = try RawSocket.webSocket(port: port)
        try socket.send(clientText("hello"))
        #expect(try socket.readFrame() == .text("hello"))
        sockets.append(socket)
      }
      #expect(await fixture.wait { $0.opened == count })
      #expect(await fixture.withConnections { $0.count { holdsReader($0) } } == 0)
      // Its own memory; what the whole process takes is no measure while other tests run in it.
      #expect(await fixture.withConnections { $0.map { allocatedBytes($0) }.max() ?? 0 } <= 256)
      try sockets.last?.send(clientText("half").dropLast())
      #expect(await fixture.wait { fixture in fixture.withConnections { $0.count { holdsReader($0) } } == 1 })
      try sockets.last?.send([clientText("half").last ?? 0])
      #expect(try sockets.last?.readFrame() == .text("half"))
      #expect(await fixture.withConnections { $0.count { holdsReader($0) } } == 0)
    }
  }
}

/// Whether a connection's frame context is set, seen from outside its privacy.
private func holdsReader(_ connection: WebSocketConnection) -> Bool {
  var mirror: Mirror? = Mirror(reflecting: connection)
  while let present = mirror {
    if let reader = present.children.first(where: { $0.label == "reader" }) {
      return !Mirror(reflecting: reader.value).children.isEmpty
    }
    mirror = present.superclassMirror
  }
  Issue.record("a connection stores its reader under another name")
  return true
}

/// What the allocator gave for an object.
private func allocatedBytes(_ object: AnyObject) -> Int {
  typealias Measure = @convention(c) (UnsafeMutableRawPointer?) -> Int
  guard let symbol = dlsym(nil, "malloc_usable_size") else { return 0 }
  return unsafeBitCast(symbol, to: Measure.self)(Unmanaged.passUnretained(object).toOpaque())
}

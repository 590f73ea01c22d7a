import Foundation
import HTTP
import TestSupport
import Testing

/// What a server reads of a client that it has refused, through sockets that no client of ours would write to so.
@Suite struct RefusalTests {
  enum Way: CaseIterable {
    case connection, request, upgrade, frames, close

    /// What the client sends to be refused; nothing where connecting is enough.
    var opening: String? {
      switch self {
      case .connection: nil
      case .request: "NO REQUEST\r\n\r\n"
      case .upgrade: RawSocket.upgrade("/ws?refuse=busy")
      case .frames: RawSocket.upgrade("/ws?frames=10")
      case .close: RawSocket.upgrade("/ws?send=1")
      }
    }

    /// What its first answer begins with.
    var answer: String {
      switch self {
      case .connection: "HTTP/1.1 503 "
      case .request: "HTTP/1.1 400 "
      case .upgrade: "HTTP/1.1 429 "
      case .frames, .close: "HTTP/1.1 101 "
      }
    }

    /// The code of the close frame that follows.
    var closeCode: Int? {
      switch self {
      case .connection, .request, .upgrade: nil
      case .frames: 1008
      case .close: 1001
      }
    }

    /// Reads the answer, and the close frame where there is one.
    func expectAnswer(_ socket: RawSocket) throws {
      #expect(try socket.read(through: "\r\n\r\n").hasPrefix(answer))
      guard let closeCode else { return }
      var last: RawFrame?
      while last?.opcode != 8, let frame = try socket.readFrame() { last = frame }
      #expect(last?.closeCode == closeCode)
    }
  }

  /// A server that never ends a connection for its time alone.
  private static func with(_ way: Way, _ body: @concurrent @Sendable (RawSocket) async throws -> Void) async throws {
    var configuration = ServerFixture.quick()
    configuration.lingerMilliseconds = 120_000
    if way == .connection { configuration.maximumConnections = 0 }
    try await ServerFixture.with(configuration) { _, port in
      let socket = try RawSocket(port: port)
      if let opening = way.opening { try socket.send(opening) }
      try await body(socket)
    }
  }

  /// What the kernel takes from a client for a server that does not read.
  private static let kernelBytes = ["tcp_rmem", "tcp_wmem"].reduce(1 << 20) { sum, name in
    let text = (try? String(contentsOfFile: "/proc/sys/net/ipv4/\(name)", encoding: .utf8)) ?? ""
    return sum + (text.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? 16 << 20)
  }

  @Test(arguments: Way.allCases) func `a refused client that goes on sending is read little and reset`(_ way: Way) async throws {
    try await Self.with(way) { socket in
      let pings = (0..<10_000).flatMap { _ in clientFrame(9) }
      var sent = 0
      // Within its patience of thirty seconds; a server that read on would take all of it.
      while sent < 64 * Self.kernelBytes, (try? socket.send(pings)) != nil { sent += pings.count }
      #expect(sent < Self.kernelBytes)
      try way.expectAnswer(socket)
    }
  }

  /// More than the server reads, and all of it before the client reads anything.
  @Test(arguments: Way.allCases) func `a refused client with much in flight still reads why`(_ way: Way) async throws {
    try await Self.with(way) { socket in
      try socket.send((0..<40_000).flatMap { _ in clientFrame(9) })
      try way.expectAnswer(socket)
    }
  }
}

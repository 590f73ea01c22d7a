import EventLoop
import TestSupport
import Testing

@testable import HTTP

/// A body that its reader pulls at its own speed.
@Suite(.timeLimit(.minutes(10))) struct HTTPPulledBodyTests {
  @Test func `a body comes whole, in its order, and the server waits for the reader`() async throws {
    try await ServerFixture.with { _, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        var request = patient(.get, "http://127.0.0.1:\(port)/large?bytes=3000000")
        request.maximumBodyBytes = 3_000_000
        let (bytes, longest, result) = try await lane.pull(request) { _ in true }
        #expect(bytes.count == 3_000_000 && bytes.indices.allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: $0) })
        // One more piece of the client's may come with the one that fills it.
        #expect(longest < HTTPPulledBody.waitingBytes + 65_536, "\(longest) bytes waited at once")
        #expect(result.status == 200)
      }
    }
  }

  @Test func `a piece that is not accepted ends the request`() async throws {
    try await ServerFixture.with { _, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        var request = patient(.get, "http://127.0.0.1:\(port)/large?bytes=3000000")
        request.maximumBodyBytes = 3_000_000
        let (bytes, _, result) = try await lane.pull(request) { $0 < 100_000 }
        #expect(bytes.count < 200_000 && result.code == .canceled)
      }
    }
  }

  /// The test's task does not prefer the loop, so its awaits may let other jobs of the loop run first.
  @Test(arguments: 0..<12) func `a piece that comes at any turn of the loop reaches its reader`(_ turns: Int) async throws {
    try await ScriptedServer.with({ _ in .silence }) { _, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        let piece = try await lane.piece(patient(.get, "http://127.0.0.1:\(port)/"), after: turns)
        #expect(piece == [7])
      }
    }
  }
}

extension HTTPClientLane {
  /// Pulls a body; returns it with the bytes of its longest piece and the result.
  ///
  /// - Parameter accepts: judges the number of bytes so far.
  fileprivate func pull(
    _ request: HTTPClientRequest, _ accepts: @escaping (Int) -> Bool
  ) async throws -> (bytes: [UInt8], longest: Int, Result<HTTPClientResponse, HTTPClientError>) {
    var count = 0
    let body = try HTTPPulledBody(of: request, from: opened) { bytes, _ in
      count += bytes.count
      return accepts(count)
    }
    var (bytes, longest): ([UInt8], Int) = ([], 0)
    while let piece = await body.next() {
      bytes += piece
      longest = max(longest, piece.count)
      await pause()
    }
    return (bytes, longest, try #require(body.result))
  }

  /// Pulls the first piece of a request whose server says nothing; the piece comes so many turns of the loop later.
  fileprivate func piece(_ request: HTTPClientRequest, after turns: Int) async throws -> [UInt8]? {
    let body = try HTTPPulledBody(of: request, from: opened) { _, _ in true }
    pulled = body
    give(after: turns)
    let piece = await body.next()
    body.cancel()
    pulled = nil
    return piece
  }

  private func give(after turns: Int) {
    guard turns > 0 else {
      let response = HTTPClientResponse(status: .ok, headers: HTTPHeaders(bytes: [], fields: []))
      return [UInt8(7)].withUnsafeBytes { _ = pulled?.take($0, of: response) }
    }
    loop.execute { self.assumeIsolated { $0.give(after: turns - 1) } }
  }
}

import EventLoop
import TestSupport
import Testing

@testable import HTTP

extension Result where Success == HTTPClientResponse, Failure == HTTPClientError {
  var text: String? { if case .success(let response) = self { String(decoding: response.body, as: UTF8.self) } else { nil } }
  var status: Int? { if case .success(let response) = self { response.status.rawValue } else { nil } }
  var code: HTTPClientError.Code? { if case .failure(let error) = self { error.code } else { nil } }
}

/// A request that no test's machine is too slow for.
func patient(_ method: HTTPClientRequest.Method, _ url: String, headers: [(name: String, value: String)] = []) -> HTTPClientRequest {
  var request = HTTPClientRequest(method, url, headers: headers)
  request.timeoutMilliseconds = hangMilliseconds
  return request
}

/// A name with these addresses.
func pinned(_ host: String, _ port: Int, _ addresses: [String]) -> String {
  "\(host):\(port):\(addresses.map { $0.contains(":") ? "[\($0)]" : $0 }.joined(separator: ","))"
}

@Suite struct HTTPClientTests {
  @Test func responsesComeWithStatusFieldsAndBody() async throws {
    try await ServerFixture.with { _, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        let url = "http://127.0.0.1:\(port)"
        let hello = try await lane.send(patient(.get, url + "/hello")).get()
        #expect(hello.status == .ok && hello.body == Array("hello".utf8))
        #expect(hello.headers["content-type"] == "text/plain; charset=utf-8" && hello.headers["Content-Length"] == "5")
        let head = try await lane.send(patient(.head, url + "/hello")).get()
        #expect(head.status == .ok && head.body.isEmpty && head.headers["content-length"] == "5")
        #expect(await lane.send(patient(.get, url + "/nothing")).status == 404)
        #expect(await lane.send(patient(.get, url + "/dropped")).status == 500)
        let described = await lane.send(patient(.get, url + "/describe?name=a%20b#part", headers: [("X-Case", "Yes")]))
        #expect(described.text == "/describe\nname=a%20b\na b\nYes")
      }
    }
  }

  @Test func bodiesOfEverySizeArrive() async throws {
    try await ServerFixture.with { _, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        for size in [0, 1, 1023, 16_384, 65_536] {
          let body = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
          #expect(try await lane.send(patient(.post(body: body), "http://127.0.0.1:\(port)/echo")).get().body == body)
        }
        var large = patient(.get, "http://127.0.0.1:\(port)/large?bytes=3000000")
        large.maximumBodyBytes = 3_000_000
        let body = try await lane.send(large).get().body
        #expect(body.count == 3_000_000 && body.indices.allSatisfy { body[$0] == UInt8(truncatingIfNeeded: $0) })
      }
    }
  }

  @Test func aRequestSaysWhatItWasToldAndNothingElse() async throws {
    try await ScriptedServer.with({ _ in .last("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        let url = "http://127.0.0.1:\(port)/a?b"
        let fields = [
          (name: "X-A", value: "1"), (name: "x-a", value: "ü"), (name: "X-Empty", value: ""), (name: "Accept", value: "image/*"),
        ]
        _ = try await lane.send(patient(.post(body: Array("text".utf8)), url, headers: fields)).get()
        _ = try await lane.send(patient(.get, url, headers: [("User-Agent", "mine"), ("Content-Type", "x/y")])).get()
        let requests = await server.requests.map { $0.split(separator: "\r\n", omittingEmptySubsequences: false) }
        try #require(requests.count == 2)
        let host = "Host: 127.0.0.1:\(port)"
        #expect(requests[0].prefix(3) == ["POST /a?b HTTP/1.1", host[...], "User-Agent: carillon"])
        #expect(requests[0].dropFirst(3) == ["X-A: 1", "x-a: ü", "X-Empty:", "Accept: image/*", "Content-Length: 4", "", "text"])
        #expect(requests[1] == ["GET /a?b HTTP/1.1", host[...], "Accept: */*", "User-Agent: mine", "Content-Type: x/y", "", ""])
      }
    }
  }

  @Test func connectionsAreUsedAgain() async throws {
    try await ServerFixture.with { fixture, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        for _ in 0..<20 {
          #expect(await lane.send(patient(.post(body: [1, 2, 3]), "http://127.0.0.1:\(port)/echo")).status == 200)
        }
        #expect(await fixture.statistics.accepted == 1)
      }
    }
  }

  @Test func aConnectionThatWasClosedMeanwhileCostsNoRequest() async throws {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    try await ScriptedServer.with({ $0.contains("/last") ? .last(answer) : .reply(answer) }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        for path in ["first", "last", "next", "last", "next"] {
          #expect(await lane.send(patient(.post(body: [1]), "http://127.0.0.1:\(port)/\(path)")).text == "ok")
        }
        #expect(await server.connections == 3)
      }
    }
  }

  // MARK: Bounds of the client

  @Test func oneHostGetsItsConnectionsAndOthersDoNotWaitForIt() async throws {
    try await ServerFixture.with { fixture, port in
      try await ServerFixture.with { _, other in
        var configuration = try HTTPClientLane.local("127.0.0.1:\(port)", "127.0.0.1:\(other)")
        configuration.maximumConnectionsPerHost = 2
        configuration.maximumConnections = 3
        try await HTTPClientLane.with(configuration) { lane in
          await lane.start(Array(repeating: patient(.get, "http://127.0.0.1:\(port)/held"), count: 10))
          #expect(await fixture.wait { $0.heldCount == 2 })
          for _ in 0..<5 { #expect(await lane.send(patient(.get, "http://127.0.0.1:\(other)/hello")).text == "hello") }
          #expect(await fixture.heldCount == 2)
          for round in 1...5 {
            #expect(await fixture.wait { $0.heldCount == 2 }, "round \(round)")
            await fixture.release("released")
          }
          #expect(await lane.wait { $0.successes == 10 })
          #expect(await fixture.statistics.accepted == 2)
        }
      }
    }
  }

  @Test func idleConnectionsMakeRoomForOtherHosts() async throws {
    try await ServerFixture.with { first, port in
      try await ServerFixture.with { _, other in
        var configuration = try HTTPClientLane.local("127.0.0.1:\(port)", "127.0.0.1:\(other)")
        configuration.maximumConnections = 1
        try await HTTPClientLane.with(configuration) { lane in
          for _ in 0..<3 {
            for port in [port, other] { #expect(await lane.send(patient(.get, "http://127.0.0.1:\(port)/hello")).text == "hello") }
          }
          #expect(await first.wait { $0.statistics.open == 0 })
        }
      }
    }
  }

  @Test func tooManyRequestsFailAtOnceAndTheRestIsServed() async throws {
    try await ServerFixture.with { fixture, port in
      var configuration = try HTTPClientLane.local("127.0.0.1:\(port)")
      configuration.maximumInFlight = 2000
      try await HTTPClientLane.with(configuration) { lane in
        let held = patient(.get, "http://127.0.0.1:\(port)/held")
        let hello = patient(.get, "http://127.0.0.1:\(port)/hello")
        await lane.start(Array(repeating: held, count: 32) + Array(repeating: hello, count: 4968))
        #expect(await lane.codes == Array(repeating: .tooMany, count: 3000))
        #expect(await lane.inFlight == 2000)
        #expect(await fixture.wait { $0.heldCount == 32 })
        await fixture.release("released")
        #expect(await lane.wait { $0.successes == 2000 })
        #expect(await lane.codes.count == 3000)
        #expect(await fixture.statistics.accepted <= 32)
      }
    }
  }

  @Test func aHangingServerMeetsTheTimeLimit() async throws {
    try await ServerFixture.with { fixture, port in
      var configuration = try HTTPClientLane.local("127.0.0.1:\(port)")
      configuration.maximumConnectionsPerHost = 1
      try await HTTPClientLane.with(configuration) { lane in
        var request = HTTPClientRequest(.get, "http://127.0.0.1:\(port)/held?secret=1", headers: [("Authorization", "hidden")])
        request.timeoutMilliseconds = 300
        // The second never has its turn, and its time passes alike.
        async let first = lane.failure(request)
        async let second = lane.failure(request)
        for error in [await first, await second] {
          #expect(error?.code == .timedOut && error?.isRetriable == true)
          #expect(error?.description == "127.0.0.1 has not answered within 300 ms")
        }
        #expect(await fixture.wait { $0.statistics.open == 0 })
        #expect(await lane.send(patient(.get, "http://127.0.0.1:\(port)/hello")).text == "hello")
      }
    }
  }

  // MARK: Ending

  @Test func cancellationOfTheTaskClosesTheConnection() async throws {
    try await ServerFixture.with { fixture, port in
      var configuration = try HTTPClientLane.local("127.0.0.1:\(port)")
      configuration.maximumConnectionsPerHost = 1
      try await HTTPClientLane.with(configuration) { lane in
        let held = patient(.get, "http://127.0.0.1:\(port)/held")
        let running = Task { await lane.send(held).code }
        #expect(await fixture.wait { $0.heldCount == 1 })
        let waiting = Task { await lane.send(held).code }
        #expect(await lane.wait { $0.inFlight == 2 })
        waiting.cancel()
        #expect(await waiting.value == .canceled)
        #expect(await fixture.heldAreOpen)
        running.cancel()
        #expect(await running.value == .canceled)
        #expect(await fixture.wait { $0.statistics.open == 0 })
        let late = Task {
          withUnsafeCurrentTask { $0?.cancel() }
          return await lane.send(held).code
        }
        #expect(await late.value == .canceled)
        #expect(await lane.inFlight == 0)
      }
    }
  }

  @Test func closeCancelsWhatIsUnderWayAndClosesConnections() async throws {
    try await ServerFixture.with { fixture, port in
      var configuration = try HTTPClientLane.local("127.0.0.1:\(port)")
      configuration.maximumConnectionsPerHost = 4
      try await HTTPClientLane.with(configuration) { lane in
        #expect(await lane.send(patient(.get, "http://127.0.0.1:\(port)/hello")).text == "hello")
        await lane.start(Array(repeating: patient(.get, "http://127.0.0.1:\(port)/held"), count: 20))
        #expect(await fixture.wait { $0.heldCount == 4 })
        await lane.close()
        #expect(await lane.codes == Array(repeating: .canceled, count: 20))
        #expect(await fixture.wait { $0.statistics.open == 0 })
        #expect(await lane.failure(patient(.get, "http://127.0.0.1:\(port)/hello"))?.code == .canceled)
        await lane.close()
      }
    }
  }

  // MARK: Bodies piece by piece

  @Test func aHandlerGetsTheBodyPieceByPieceAndCanPauseIt() async throws {
    try await ServerFixture.with { _, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        var request = patient(.get, "http://127.0.0.1:\(port)/large?bytes=20000000")
        request.maximumBodyBytes = 20_000_000
        await lane.collect(request) { body in
          guard body.bytes.count > 1_000_000 * (body.pauses + 1), body.pauses < 10 else { return .more }
          body.pauses += 1
          body.isPaused = true
          return .pause
        }
        for pause in 1...10 {
          #expect(await lane.wait { $0.withBody { $0.pauses == pause } })
          // Time passes for other requests meanwhile.
          #expect(await lane.send(patient(.get, "http://127.0.0.1:\(port)/hello")).text == "hello")
          await lane.resumeBody()
        }
        #expect(await lane.wait { $0.successes == 1 })
        #expect(await lane.withBody { !$0.wasDisturbed && $0.statuses == [.ok] && $0.bytes.count == 20_000_000 })
        #expect(await lane.withBody { body in body.bytes.indices.allSatisfy { body.bytes[$0] == UInt8(truncatingIfNeeded: $0) } })
      }
    }
  }

  @Test(arguments: ["stop", "cancel", "close"]) func aHandlerCanEndTheRequestFromInside(how: String) async throws {
    try await ScriptedServer.with({ _ in
      .endless("HTTP/1.1 200 OK\r\n\r\n", then: String(repeating: "x", count: 10_000))
    }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        var request = patient(.get, "http://127.0.0.1:\(port)/")
        request.maximumBodyBytes = .max
        await lane.collect(request) { body in
          guard body.pieces == 3 else { return .more }
          switch how {
          case "stop": return .stop
          case "cancel": body.call?.cancel()
          default: lane.assumeIsolated { $0.close() }
          }
          return .more
        }
        #expect(await lane.wait { $0.codes == [.canceled] })
        await server.eventually("its connections have ended") { $0.open == 0 }
        #expect(await lane.withBody { $0.pieces } == 3)
      }
    }
  }

  /// What has come meanwhile is handed over inside the call that goes on: an end that is found there has no event of its own.
  @Test(arguments: [false, true]) func whatIsRefusedAfterAPauseEndsTheRequestAtOnce(byItsSize: Bool) async throws {
    try await ScriptedServer.with({ _ in
      .endless("HTTP/1.1 200 OK\r\n\r\n", then: String(repeating: "x", count: 100_000))
    }) { server, port in
      try await HTTPClientLane.with(try HTTPClientLane.local("127.0.0.1:\(port)")) { lane in
        var request = patient(.get, "http://127.0.0.1:\(port)/")
        request.maximumBodyBytes = byItsSize ? 252_000 : .max
        for _ in 0..<20 {
          await lane.collect(request) { body in
            if body.pauses == 1 { return byItsSize ? .more : .stop }
            guard body.bytes.count > 250_000 - 16_384 else { return .more }
            body.pauses += 1
            // Long enough that more has come, which is kept.
            let timer = Timer(on: lane.loop)
            timer.handler = {
              timer.close()
              body.call?.resumeBody()
            }
            timer.start(after: 300)
            return .pause
          }
        }
        #expect(await lane.wait { $0.codes.count == 20 })
        #expect(await lane.codes == Array(repeating: byItsSize ? .bodyTooLarge : .canceled, count: 20))
        await server.eventually("its connections have ended") { $0.open == 0 }
      }
    }
  }

  // MARK: Where it goes

  @Test func whatCannotBeSentIsToldAtOnceAndWithoutSecrets() async throws {
    var configuration = HTTPClientConfiguration(hosts: try HTTPHostRule(["*.example.com"]))
    try await HTTPClientLane.with(configuration) { lane in
      for (url, code) in [
        ("http://a.example.com/?secret", HTTPClientError.Code.schemeRefused), ("file:///etc/secret", .schemeRefused),
        ("https://example.com/?secret", .hostRefused), ("https://127.0.0.1/?secret", .hostRefused),
        ("https://u:secret@a.example.com/", .invalidURL),
      ] {
        let error = await lane.failure(HTTPClientRequest(.get, url))
        #expect(error?.code == code, "\(url)")
        #expect(error?.isRetriable == false && error?.message.contains("secret") == false)
      }
      for (name, value) in [
        ("", "secret"), ("A B", "secret"), ("A\r\nB", "secret"), ("A:", "secret"), ("Ä", "secret"), ("X", "secret\r\nY: z"),
        ("X", "secret\n"),
        ("X", "secret\u{0}"), ("X", "secret\u{7F}"), ("host", "secret"), ("Content-Length", "1"), ("TRANSFER-ENCODING", "chunked"),
        ("Connection", "close"),
      ] {
        let error = await lane.failure(HTTPClientRequest(.get, "https://a.example.com/", headers: [("Fine", "1"), (name, value)]))
        #expect(error?.code == .invalidHeader && error?.message.hasPrefix("header field 2") == true, "\(name): \(value)")
        #expect(error?.message.contains("secret") == false && error?.message.contains("\n") == false)
      }
    }
    configuration.schemes = [.http, .https]
    #expect(throws: HTTPClientError.self) { try configuration.check("https://a.example.org/") }
    #expect(throws: Never.self) { try configuration.check("http://a.example.com/") }
  }

  @Test(arguments: ["127.0.0.1", "localhost", "two.test"]) func loopbackIsRefusedUnlessAdmitted(host: String) async throws {
    try await ServerFixture.with { fixture, port in
      var configuration = try HTTPClientLane.local("\(host):\(port)", admitting: [])
      configuration.pinned = [pinned("two.test", port, ["127.0.0.1"])]
      try await HTTPClientLane.with(configuration) { lane in
        let error = try #require(await lane.failure(patient(.get, "http://\(host):\(port)/hello?secret")))
        #expect(error.code == .addressRefused && !error.isRetriable)
        #expect(error.message.contains(host) && error.message.contains("loopback") && !error.message.contains("secret"))
      }
      #expect(await fixture.statistics.accepted == 0)
    }
  }

  @Test func aRefusedAddressAmongOthersFailsTheRequest() async throws {
    try await ServerFixture.with { fixture, port in
      var configuration = try HTTPClientLane.local("two.test:\(port)", admitting: ["127.0.0.1", "127.0.0.3"])
      let request = patient(.post(body: [1]), "http://two.test:\(port)/echo")
      // 127.0.0.3 takes no connection, so the next address is tried.
      for addresses in [
        ["127.0.0.2", "127.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.3", "127.0.0.2"], ["127.0.0.3", "169.254.169.254", "127.0.0.1"],
        ["::ffff:127.0.0.2", "127.0.0.1"], ["fd00:ec2::254", "127.0.0.1"],
      ] {
        configuration.pinned = [pinned("two.test", port, addresses)]
        try await HTTPClientLane.with(configuration) { #expect(await $0.send(request).code == .addressRefused, "\(addresses)") }
      }
      #expect(await fixture.statistics.accepted == 0)
      configuration.pinned = [pinned("two.test", port, ["127.0.0.3", "127.0.0.1", "127.0.0.2"])]
      try await HTTPClientLane.with(configuration) { #expect(await $0.send(request).status == 200) }
      #expect(await fixture.statistics.accepted == 1)
    }
  }

  @Test func whatCannotBeReachedSaysWhy() async throws {
    let loop = EventLoop(name: "port")
    let port = try await freePort(on: loop)
    await loop.close()
    var configuration = try HTTPClientLane.local("127.0.0.1:\(port)", "nothing.invalid")
    configuration.schemes = [.http, .https]
    try await HTTPClientLane.with(configuration) { lane in
      let error = try #require(await lane.failure(patient(.get, "http://127.0.0.1:\(port)/?secret")))
      #expect(error.code == .connectFailed && error.isRetriable && error.message.contains("127.0.0.1") && !error.message.contains("secret"))
      var unknown = HTTPClientRequest(.get, "http://nothing.invalid/?secret")
      unknown.timeoutMilliseconds = 2_000
      // How long a machine without a network asks for a name is its own affair.
      let code = await lane.failure(unknown)?.code
      #expect(code == .unresolved || code == .timedOut)
    }
  }
}

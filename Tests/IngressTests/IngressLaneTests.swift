import Cryptography
import JSON
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Ingress

/// What publishers send, through a lane's socket, and what Kafka has of it.
@Suite struct IngressLaneTests {
  private static let id = "6F0C1A2E-0A4B-4C8E-9D52-3F6F6A9B1C11"
  private static let object = #"{"target":"user:ada","app":"com.example.shop","title":"Order"}"#
  private static let lines = ["Content-Type: application/x-ndjson"]

  @Test func eachFormOfARequestIsARecordWhenItIsAnswered() async throws {
    try await IngressFixture.with { ingress in
      let one = try ingress.publish(#"{"target":"user:ada","app":"com.example.shop","title":"Order","id":"\#(Self.id)"}"#)
      #expect(one.status == 202 && one.json?["apnsId"]?.stringValue == Self.id.lowercased(), "\(one)")
      #expect(one.headers["apns-id"] == Self.id.lowercased())
      let payload = try ingress.publish(
        #"{"aps":{"alertt":"x","badge":3}}"#,
        [
          "apns-topic: com.example.shop", "Target: user:ada", "APNS-Collapse-Id: c", "X-Forwarded-For: 10.0.0.1",
          "trigger: {\"type\":\"push\"}",
        ])
      #expect(payload.status == 202 && payload.body.contains("aps.alertt is unknown"), "\(payload)")
      let many = try ingress.publish(
        "\(Self.object)\r\n\n{\"target\":5}\n\(Self.object)", ["Content-Type: Application/X-NDJSON; charset=utf-8"])
      #expect(many.status == 207 && many.headers["content-type"] == "application/x-ndjson")
      #expect(
        many.lines.map { $0["line"]?.integerValue } == [1, 3, 4] && many.lines.map { $0["status"]?.integerValue } == [202, 400, 202])
      let records = try await ingress.records(4)
      #expect(records.count == 4 && records.allSatisfy { $0.header("target") == "user:ada" && $0.key == Array("user:ada".utf8) })
      let names = try #require(records.first { $0.header("apns-collapse-id") == "c" }).headers.map(\.name)
      #expect(names == ["target", "apns-id", "apns-topic", "apns-collapse-id", "trigger"])
      #expect(ingress.metrics.text.contains(#"carillon_ingress_requests_total{status="202",application="com.example.shop"} 4"#))
    }
  }

  @Test func aTokenDecidesWhoMayPublish() async throws {
    let key = SignatureKey(secret: KeyRing.Key(PublisherTokenTests.key))
    try await IngressFixture.with {
      $0.admission = .token(InForce([key]))
    } _: { ingress in
      func status(_ claims: String) throws -> String {
        let answer = try ingress.publish(Self.object, ["Authorization: Bearer " + PublisherTokenTests.sign(claims)])
        return "\(answer.status) \(answer.json?["reason"]?.stringValue ?? "")"
      }
      let good = #""aud":"carillon-publish","apps":["com.example.shop"]"#
      #expect(try status("{\(good),\"exp\":4000000000}") == "202 ")
      #expect(try status("{\(good),\"exp\":1}") == "401 ExpiredProviderToken")
      #expect(try status("{\(good),\"exp\":4000000000,\"nbf\":3999999999}") == "401 InvalidProviderToken")
      #expect(try status(#"{"aud":"carillon-publish","apps":["com.example"],"exp":4000000000}"#) == "403 Forbidden")
      #expect(
        try status(#"{"sub":"aa","app":"com.example.shop","exp":4000000000}"#) == "401 InvalidProviderToken", "a device's credential")
      for fields in [
        [], ["Authorization: Basic eHg6eHg="], ["Authorization: Bearer"], ["Authorization: Bearer x", "Authorization: Bearer x"],
      ] {
        let answer = try ingress.publish(Self.object, fields)
        #expect(
          answer.status == 401 && answer.headers["www-authenticate"] == "Bearer" && answer.json?["field"] == "Authorization", "\(answer)")
      }
      #expect(try await ingress.records(1).count == 1)
    }
  }

  @Test func noWebPagePublishesWhereNoTokenIsNeeded() async throws {
    try await IngressFixture.with { ingress in
      #expect(try ingress.publish(Self.object, ["Origin: https://example.com"]).status == 403)
      let rebound = try ingress.send(Self.pages)
      #expect(rebound.status == 403 && rebound.json?["field"] == "host", "\(rebound)")
      #expect(try ingress.publish(Self.object).status == 202)
      #expect(try await ingress.records(1).count == 1)
    }
  }

  private static let pages = IngressFixture.post(object).replacing("Host: 127.0.0.1", with: "Host: example.com")

  @Test(arguments: [
    ("GET /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 405, "method"), ("POST /v2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404, "path"),
    ("POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10000000\r\n\r\n", 413, "body"),
    ("POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "request"),
    ("POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "request"),
    ("POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n", 413, "body"),
    (
      "POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\napns-topic: a\r\nCarillon-Origin: {}\r\nContent-Length: 0\r\n\r\n", 400,
      "carillon-origin"
    ),
    ("POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\nCarillon-Firing: {}\r\nContent-Length: 2\r\n\r\n{}", 400, "carillon-firing"),
    (
      "POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\nCarillon-X: 1\r\nContent-Length: 2\r\n\r\n{}",
      400, "carillon-x"
    ),
    ("POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\napns-topic: a\r\nApns-Topic: b\r\nContent-Length: 0\r\n\r\n", 400, "apns-topic"),
    ("GET /v1/requests/7 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400, "apns-id"),
  ])
  func `bad HTTP is told field and rule`(text: String, status: Int, field: String) async throws {
    try await IngressFixture.with { ingress in
      let answer = try ingress.send(text)
      #expect(answer.status == status && answer.json?["field"]?.stringValue == field && answer.json?["rule"] != nil, "\(answer)")
      #expect(try ingress.publish(Self.object).status == 202)
    }
  }

  @Test func pipelinedAndChunkedRequestsAreAnsweredInOrder() async throws {
    try await IngressFixture.with { ingress in
      let socket = try RawSocket(port: ingress.port)
      let chunked =
        "POST /v1/requests HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "5\r\n\(Self.object.prefix(5))\r\n\(String(Self.object.utf8.count - 5, radix: 16))\r\n\(Self.object.dropFirst(5))\r\n0\r\n\r\n"
      try socket.send(IngressFixture.post(Self.object) + IngressFixture.post("{}") + chunked)
      #expect(try (0..<3).map { _ in try IngressFixture.answer(socket).status } == [202, 400, 202])
      #expect(try await ingress.records(2).count == 2)
    }
  }

  @Test func aBodyOfManyLinesDelaysNobodyAndHasABound() async throws {
    try await IngressFixture.with { ingress in
      let many = try ingress.publish(Array(repeating: Self.object, count: 900).joined(separator: "\n"), Self.lines)
      #expect(many.status == 202 && many.lines.count == 900 && many.lines.allSatisfy { $0["apnsId"] != nil })
      let most = try ingress.publish(String(repeating: "{}\n", count: Submission.maximumLines + 5), Self.lines)
      #expect(most.status == 400 && most.lines.count == Submission.maximumLines + 1)
      #expect(most.lines.last?["rule"]?.stringValue?.contains("was not read") == true)
      #expect(try ingress.publish("\n\n", Self.lines).lines.first?["rule"]?.stringValue == "the body has no line")
      #expect(try await ingress.records(900).count == 900)
    }
  }

  @Test func aTurnReadsFewLinesSoThatOtherRequestsAreReadBetween() async throws {
    try await IngressFixture.with { ingress in
      let before = ingress.turns
      let sockets = try (0..<8).map { _ in try RawSocket(port: ingress.port) }
      for socket in sockets { try socket.send(IngressFixture.post(String(repeating: "{}\n", count: 1_000), Self.lines)) }
      for socket in sockets { #expect(try IngressFixture.answer(socket).status == 400) }
      #expect(ingress.turns - before >= 8_000 / 128, "a turn reads 128 lines")
    }
  }

  @Test func aClientThatHasClosedItsHalfGetsItsAnswer() async throws {
    try await IngressFixture.with { ingress in
      try ingress.kafka.embedded?.setRoundTrip(milliseconds: 300)
      let socket = try RawSocket(port: ingress.port)
      try socket.send(IngressFixture.post(Self.object))
      socket.finishSending()
      #expect(try IngressFixture.answer(socket).status == 202)
    }
  }

  @Test func bodiesThatFillTheMemoryAreReadToTheirEnds() async throws {
    try await IngressFixture.with {
      $0.bytes = 100_000
    } _: { ingress in
      try ingress.kafka.embedded?.setRoundTrip(milliseconds: 300)
      let line = Self.object + String(repeating: " ", count: 99 - Self.object.utf8.count) + "\n"
      let sockets = try (0..<2).map { _ in try RawSocket(port: ingress.port) }
      for socket in sockets { try socket.send(IngressFixture.post(String(repeating: line, count: 600), Self.lines)) }
      for socket in sockets {
        let answer = try IngressFixture.answer(socket)
        #expect(answer.status == 202 && answer.lines.count == 600, "\(answer.status)")
      }
      #expect(try ingress.publish(Self.object).status == 202)
    }
  }

  @Test func withoutKafkaEachSenderHasAnAnswerThatSaysWhatIsKnown() async throws {
    try await IngressFixture.with {
      ($0.answerMilliseconds, $0.pauseMilliseconds, $0.records) = (500, 200, 10)
    } _: { ingress in
      #expect(try ingress.publish(Self.object).status == 202)
      try ingress.kafka.embedded?.takeDown()
      let one = try ingress.publish(Self.object)
      #expect(
        one.status == 503 && one.headers["apns-id"] != nil && one.json?["rule"]?.stringValue?.contains("same apns-id") == true, "\(one)")
      let many = try ingress.publish(Array(repeating: Self.object, count: 20).joined(separator: "\n"), Self.lines)
      #expect(many.status == 503 && many.lines.count == 20)
      #expect(many.lines.filter { $0["apnsId"] != nil }.count == 9, "Kafka's queue took these: \(many)")
      await eventually("requests are refused at once") { try ingress.publish(Self.object).json?["apnsId"] == nil }
      #expect(ingress.metrics.text.contains("carillon_ingress_pauses_total 1"))
      try ingress.kafka.embedded?.bringUp()
      await eventually("requests are taken again") { try ingress.publish(Self.object).status == 202 }
    }
  }

  @Test func aDrainAnswersEveryRequest() async throws {
    try await IngressFixture.with { ingress in
      try ingress.kafka.embedded?.setRoundTrip(milliseconds: 300)
      let sockets = try (0..<20).map { _ in try RawSocket(port: ingress.port) }
      let kept = try RawSocket(port: ingress.port)
      try kept.send(IngressFixture.post(Self.object))
      #expect(try IngressFixture.answer(kept).status == 202)
      for socket in sockets { try socket.send(IngressFixture.post(Self.object)) }
      // They have reached the lane when the kept connection has its next answer.
      try kept.send(IngressFixture.post("{}"))
      #expect(try IngressFixture.answer(kept).status == 400)
      async let drained: Void = ingress.drain(withinMilliseconds: hangMilliseconds)
      for socket in sockets {
        let answer = try IngressFixture.answer(socket)
        #expect(answer.status == 202, "\(answer)")
        socket.close()
      }
      // The lane may begin to drain late.
      await eventually("a kept connection is told") {
        try kept.send(IngressFixture.post("{}"))
        return try IngressFixture.answer(kept).headers["connection"] == "close"
      }
      await drained
      #expect(try await ingress.records(21).count == 21)
    }
  }

  /// A token that was genuine is not remembered beyond its key.
  @Test func `keys are replaced while the ingress runs`() async throws {
    let key = SignatureKey(secret: KeyRing.Key(PublisherTokenTests.key))
    let keys = InForce([key])
    try await IngressFixture.with {
      $0.admission = .token(keys)
    } _: { ingress in
      let token = PublisherTokenTests.sign(#"{"aud":"carillon-publish","apps":["com.example.shop"],"exp":4000000000}"#)
      let other = SignatureKey(secret: KeyRing.Key([UInt8](repeating: 1, count: 32)))
      for (present, status) in [([key], 202), ([other, key], 202), ([other], 401), ([key], 202)] {
        keys.replace(with: present)
        let answer = try ingress.publish(Self.object, ["Authorization: Bearer " + token])
        #expect(answer.status == status)
      }
    }
  }

  @Test func aFateIsForThoseWhoMayPublishForItsApplication() async throws {
    let key = SignatureKey(secret: KeyRing.Key(PublisherTokenTests.key))
    let (begun, end) = (Latch(), Latch())
    let fates = FateDesk { id, target in
      if target == "user:slow" {
        begun.open()
        await end.wait()
      }
      return id == NotificationID(Self.id) ? Fate(applications: ["a.b"], json: #"{"state":"ended"}"#) : nil
    }
    try await IngressFixture.with(fates: fates) {
      $0.admission = .token(InForce([key]))
    } _: { ingress in
      func token(_ app: String) -> [String] {
        ["Authorization: Bearer " + PublisherTokenTests.sign(#"{"aud":"carillon-publish","apps":["\#(app)"],"exp":4000000000}"#)]
      }
      let path = "/v1/requests/\(Self.id)"
      #expect(try ingress.get(path, token("a.b")).json?["state"] == "ended")
      #expect(try ingress.get(path, token("c.d")).status == 404)
      #expect(try ingress.get("/v1/requests/6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c12", token("a.b")).status == 404)
      #expect(try ingress.get(path).status == 401)
      let slow = try RawSocket(port: ingress.port)
      try slow.send((["GET \(path)?target=user:slow HTTP/1.1", "Host: a"] + token("a.b") + ["", ""]).joined(separator: "\r\n"))
      await begun.wait()
      #expect(try ingress.get(path, token("a.b")).status == 429)
      #expect(try ingress.get(path, token("c.d")).status == 404, "another token waits for nobody")
      end.open()
      #expect(try IngressFixture.answer(slow).status == 200)
    }
  }
}

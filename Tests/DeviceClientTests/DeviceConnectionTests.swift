import DeviceClient
import EventLoop
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct DeviceConnectionTests {
  @Test func helloIsFirstAndSaysWhoItIs() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url) {
        $0.hello.credential = "secret"
        $0.hello.locale = "de_AT"
        $0.hello.authorization = Authorization(status: .authorized, options: [.alert: true])
        $0.tracesFrames = true
      }
      try await device.device.start()
      let hello = try #require(await cluster.expect("hello").first)
      #expect(hello["device"]?.stringValue == DeviceUnderTest.token)
      #expect(hello["application"] == "com.example.shop" && hello["user"] == "ada" && hello["locale"] == "de_AT")
      #expect(hello["credential"] == "secret")
      #expect(hello["authorization"]?["status"] == "authorized")
      #expect(hello["categories"]?[0]?["actions"]?[0]?["identifier"] == "reply")
      let shown = device.events.compactMap { event -> String? in if case .frame(.out, let text) = event { text } else { nil } }
      #expect(shown.allSatisfy { !$0.contains("secret") }, "the credential is told as an event")
      await device.close()
    }
  }

  @Test func whatComesInOneTurnIsAcknowledgedInOneFrame() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(
        notify(7, id: "one", "a", revision: "1"), notify(8, id: "two", "b", revision: "2"), notify(9, id: "three", "a", revision: "3"),
        notify(10, id: "one", "a", revision: "1"), notify(11, id: "four", "a", revision: "2"),
        notify(12, id: "five", "c", revision: "1", expiration: 1_600_000_000))
      await device.expect("shown a 1", "shown b 2", "updated a 3", "dropped a known", "dropped a stale", "dropped c expired")
      let acks = await cluster.expect("ack")
      #expect(acks.count == 1)
      let ack = try #require(acks.first)
      #expect(ack["deliveries"] == [7, 8, 9])
      #expect(ack["updated"] == [9])
      #expect(
        ack["dropped"] == [
          ["delivery": 10, "reason": "known"], ["delivery": 11, "reason": "stale"], ["delivery": 12, "reason": "expired"],
        ])
      let delivered = await device.device.delivered.map(\.identifier)
      #expect(delivered == ["a", "b"])
      await device.close()
    }
  }

  /// The device's own clock is years ahead of this cluster's.
  @Test func expirationIsJudgedByTheClustersClock() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(
        notify(1, id: "one", revision: "1", expiration: 1_700_000_060), notify(2, id: "two", revision: "2", expiration: 1_700_000_000))
      await device.expect("shown one 1", "dropped two expired")
      await device.close()
    }
  }

  /// A worker that stood still answers a hello late: what the time is is known no better than that.
  @Test(.onlyInAll("it is about time: the answer to a hello that takes twenty seconds"))
  func whatMayHaveExpiredIsAskedForAgainWhenTheWelcomeWasLate() async throws {
    try await ScriptedCluster.with { cluster, url in
      await cluster.answer(with: nil)
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      // The second hello is answered at once, and what is doubtful comes well before its end.
      await timePasses(.milliseconds(20_500))
      let doubtful = notify(2, id: "two", revision: "2", expiration: 1_700_000_020)
      await cluster.answer(with: ScriptedCluster.welcome())
      await cluster.send(
        ScriptedCluster.welcome(), notify(1, id: "one", revision: "1", expiration: 1_700_003_600), doubtful,
        notify(3, id: "three", revision: "3"))
      await cluster.expect("hello", of: 1)
      #expect(await cluster.frames("ack").map { $0["deliveries"] } == [[1]])
      await cluster.send(
        doubtful, notify(3, id: "three", revision: "3"), notify(4, id: "four", revision: "4", expiration: 1_700_000_000), to: 1)
      await device.expect("shown one 1", "shown two 2", "shown three 3", "dropped four expired")
      await device.close()
    }
  }

  @Test func withoutAcknowledgementsTheClusterHearsNothing() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url) { $0.acknowledges = false }
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(notify(1, id: "one", revision: "1"))
      await device.expect("shown one 1")
      try await device.device.open("one")
      await cluster.expect("response")
      #expect(await cluster.frames("ack").isEmpty)
      await device.close()
    }
  }

  @Test func clusterRemovesWhatWasDelivered() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(
        notify(1, id: "one", revision: "1"), ["type": "remove", "delivery": 2, "identifiers": ["one"], "revision": "2"],
        ["type": "remove", "delivery": 3, "identifiers": ["one"], "revision": "2"], ["type": "something new"])
      await device.expect("shown one 1", "removed one", "dropped one known")
      let ack = try #require(await cluster.expect("ack").first)
      #expect(ack["deliveries"] == [1, 2])
      #expect(ack["dropped"] == [["delivery": 3, "reason": "known"]])
      await device.close()
    }
  }

  @Test func frameThatIsNoneIsPassedOver() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      for text in ["{", "[]", "{}", #"{"type":"notify","delivery":1}"#, #"{"type":"welcome","session":"again","now":1}"#] {
        await cluster.send(text: text)
      }
      await cluster.send(notify(2, id: "one", revision: "1"))
      await device.expect("shown one 1")
      await device.close()
    }
  }

  // MARK: Responses

  @Test func responseIsSentAgainWithTheSameIdUntilItIsAccepted() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(notify(1, id: "one", revision: "1", category: "reply"))
      await device.expect("shown one 1")
      let id = try await device.device.respond(to: "one", action: "reply", userText: "thank you")
      let first = try #require(await cluster.expect("response").first)
      #expect(first["response"]?.stringValue == id)
      #expect(first["receipt"] == "receipt-one" && first["identifier"] == "one" && first["action"] == "reply")
      #expect(first["userText"] == "thank you")
      // The device's own clock is years later.
      let hour: ClosedRange<Int64> = 1_700_000_000_000...1_700_003_600_000
      #expect(hour.contains(first["at"]?.integerValue ?? 0), "told by another clock than the cluster's")
      await cluster.cut()
      let second = try #require(await cluster.expect("response", of: 1).first)
      #expect(second == first)
      await cluster.send(["type": "accepted", "response": .string(id)], to: 1)
      await device.expect("shown one 1", "accepted response")
      await cluster.cut(session: 1)
      await cluster.expect("hello", of: 2)
      // Whatever is sent after a hello is sent after this.
      try await device.device.setLocale("de_AT", timeZone: nil)
      await cluster.expect("settings", of: 2)
      #expect(await cluster.frames("response", of: 2).isEmpty, "sent again though it was accepted")
      await device.close()
    }
  }

  @Test func responsesThatTheClusterWouldRefuseAreRefusedAtOnceWithTheReason() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(
        notify(1, id: "plain", revision: "1"), notify(2, id: "reply", revision: "1", category: "reply"),
        notify(3, id: "other", revision: "1", category: "other"))
      await device.expect("shown plain 1", "shown reply 1", "shown other 1")
      func code(_ identifier: Name, _ action: Name, _ text: String? = nil) async -> DeviceError.Code? {
        do throws(DeviceError) {
          try await device.device.respond(to: identifier, action: action, userText: text)
          return nil
        } catch { return error.code }
      }
      #expect(await code("nothing", "reply", "text") == .noSuchNotification)
      #expect(await code("plain", "reply", "text") == .noCategory)
      #expect(await code("other", "reply", "text") == .noCategory)
      #expect(await code("reply", "share") == .noSuchAction)
      #expect(await code("reply", "reply") == .wrongText)
      #expect(await code("reply", "like", "text") == .wrongText)
      #expect(await code("reply", "reply", String(repeating: "x", count: 5000)) == .wrongText)
      #expect(await device.device.delivered.count == 3)
      #expect(await code("reply", "like") == nil)
      #expect(await device.device.delivered.map(\.identifier) == ["other", "plain"])
      await device.close()
    }
  }

  @Test func dismissalIsToldOnlyWhereTheCategoryAsksForIt() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(notify(1, id: "plain", revision: "1"), notify(2, id: "asks", revision: "1", category: "reply"))
      await device.expect("shown plain 1", "shown asks 1")
      #expect(try await device.device.dismiss("plain") == nil)
      #expect(try await device.device.dismiss("asks") != nil)
      let responses = await cluster.expect("response")
      #expect(responses.map { $0["identifier"]?.stringValue } == ["asks"])
      #expect(responses.first?["action"]?.nameValue == NotificationAction.dismissIdentifier)
      #expect(await device.device.delivered.isEmpty)
      await device.close()
    }
  }

  @Test func refusedResponseIsNotSentAgain() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(notify(1, id: "one", revision: "1"))
      await device.expect("shown one 1")
      let id = try await device.device.open("one")
      await cluster.expect("response")
      await cluster.send(["type": "refused", "response": .string(id), "reason": "BadReceipt", "field": "receipt"])
      await device.expect("shown one 1", "refused BadReceipt")
      #expect(await device.device.waitingResponses == 0)
      await device.close()
    }
  }

  // MARK: Coming back

  @Test func deviceThatWasTakenOverStaysAwayUntilItIsToldToConnect() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.close(CloseCode.takenOver.rawValue)
      await eventually("closed for good") {
        device.events.contains { if case .closed(4004, _, reconnectAfter: nil) = $0 { true } else { false } }
      }
      await device.device.reconnect()
      await cluster.expect("hello", of: 1)
      #expect(await cluster.count == 2)
      await device.close()
    }
  }

  /// A worker that drains may have the hello still under way in Redis, and take the next session over with it.
  @Test func aHelloThatADrainingWorkerHasNotAnsweredIsNoReasonToStayAway() async throws {
    try await ScriptedCluster.with { cluster, url in
      await cluster.answer(with: nil)
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.answer(with: ScriptedCluster.welcome())
      await cluster.close(CloseCode.draining.rawValue)
      for number in 1...2 {
        await eventually("the session stands") { device.events.count { if case .connected = $0 { true } else { false } } == number }
        await cluster.close(CloseCode.takenOver.rawValue, session: number)
      }
      await eventually("closed for good by another device, and not by its own hello") {
        device.events.contains { if case .closed(4004, _, reconnectAfter: nil) = $0 { true } else { false } }
      }
      #expect(device.events.count { if case .closed(4004, _, reconnectAfter: _?) = $0 { true } else { false } } == 1)
      await device.close()
    }
  }

  @Test func deviceComesBackWhenGoawayHasSaid() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(["type": "goaway", "reconnectAfterMs": 777, "reason": "draining"])
      await cluster.close(CloseCode.draining.rawValue)
      await eventually("a wait of 777 ms, and half a second by lot") {
        device.events.contains { if case .closed(4007, _, let wait?) = $0 { (777...1277).contains(wait) } else { false } }
      }
      await cluster.expect("hello", of: 1)
      await device.close()
    }
  }

  @Test func anAbsurdTimeOfAGoawayIsBoundedAndOneThatMakesNoSenseIsPassedOver() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      func waits() -> [Int?] { device.events.compactMap { if case .closed(_, _, let wait) = $0 { wait } else { nil } } }
      let absurd: [JSONValue] = [-1, "soon", .integer(.max)]
      for (number, time) in absurd.enumerated() {
        await cluster.expect("hello", of: number)
        await cluster.send(["type": "goaway", "reconnectAfterMs": time, "reason": "draining"], to: number)
        await cluster.close(CloseCode.draining.rawValue, session: number)
        await eventually("end \(number)") { waits().count == number + 1 }
      }
      // As after any other end; the attempts are counted, since none of the sessions has stood.
      #expect(waits().dropLast().allSatisfy { (0...2_000).contains($0 ?? -1) }, "\(waits())")
      #expect((1_800_000...Reconnection.longestTold).contains((waits().last ?? nil) ?? -1), "\(waits())")
      #expect(!device.events.contains { if case .badFrame = $0 { true } else { false } })
      await device.close()
    }
  }

  @Test func deviceGoesOnWithAnotherAddressWhenOneDrainsOrIsNotThere() async throws {
    let nobody = try await urlOfNobody()
    try await ScriptedCluster.with { first, firstURL in
      try await ScriptedCluster.with { second, secondURL in
        let device = DeviceUnderTest(firstURL) { $0.urls = [firstURL, nobody, secondURL] }
        try await device.device.start()
        await first.expect("hello")
        await first.send(["type": "goaway", "reconnectAfterMs": 0, "reason": "draining"])
        await first.close(CloseCode.draining.rawValue)
        await second.expect("hello")
        await eventually("it says where it is") {
          device.events.contains { if case .connected(_, url: secondURL) = $0 { true } else { false } }
        }
        #expect(device.events.contains { if case .unreachable(_, let wait?) = $0 { (0...500).contains(wait) } else { false } })
        #expect(await first.count == 1)
        await device.close()
      }
    }
  }

  @Test func eachHelloHasTheCredentialOfItsMoment() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url) {
        let count = Atomic(0)
        $0.credential = { "number \(count.add(1, ordering: .relaxed).newValue)" }
      }
      try await device.device.start()
      #expect(await cluster.expect("hello").first?["credential"] == "number 1")
      await cluster.send(["type": "goaway", "reconnectAfterMs": 0, "reason": "credentialExpired"])
      await cluster.close(CloseCode.credentialExpired.rawValue)
      #expect(await cluster.expect("hello", of: 1).first?["credential"] == "number 2")
      await device.close()
    }
  }

  @Test func deviceComesBackToAClusterThatIsNotThereYet() async throws {
    let device = DeviceUnderTest(try await urlOfNobody())
    try await device.device.start()
    await eventually("two attempts") {
      device.events.count { if case .unreachable(_, reconnectAfter: _?) = $0 { true } else { false } } >= 2
    }
    await device.close()
  }

  @Test func clusterThatDoesNotWelcomeIsLeftAndTriedAgain() async throws {
    try await ScriptedCluster.with { cluster, url in
      await cluster.answer(with: nil)
      let device = DeviceUnderTest(url) { $0.connectMilliseconds = 1_000 }
      try await device.device.start()
      // The connection of a machine that stands still may end before its hello.
      await eventually("two hellos") {
        var hellos = 0
        for session in 0..<(await cluster.count) { hellos += await cluster.frames("hello", of: session).count }
        return hellos >= 2
      }
      await cluster.answer(with: ScriptedCluster.welcome())
      await eventually("connected") { device.events.contains { if case .connected = $0 { true } else { false } } }
      await device.close()
    }
  }

  // MARK: Changes

  @Test func settingsAreToldAtOnceOrWithTheNextHello() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await eventually("connected") { device.events.contains { if case .connected = $0 { true } else { false } } }
      let request = try await device.device.setAuthorization(Authorization(status: .denied))
      let settings = try #require(await cluster.expect("settings").first)
      #expect(settings["request"]?.stringValue == request)
      #expect(settings["authorization"]?["status"] == "denied")
      await cluster.send(notify(1, id: "one", revision: "1"))
      await device.expect("dropped one filtered")
      // Not answered: the next hello says it, and the welcome answers it.
      await cluster.cut()
      let hello = try #require(await cluster.expect("hello", of: 1).first)
      #expect(hello["authorization"]?["status"] == "denied")
      await device.expect("dropped one filtered", "accepted request")
      try await device.device.setCategories([])
      #expect(await cluster.expect("categories", of: 1).first?["categories"] == [])
      #expect(await cluster.frames("settings", of: 1).isEmpty)
      await device.close()
    }
  }

  @Test func deviceThatSignedOutLeavesAndStaysAway() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      let request = try await device.device.unregister()
      #expect(await cluster.expect("unregister").first?["request"]?.stringValue == request)
      // The answer is lost: it is said again.
      await cluster.cut()
      #expect(await cluster.expect("unregister", of: 1).first?["request"]?.stringValue == request)
      await cluster.send(["type": "accepted", "request": .string(request)], to: 1)
      await device.expect("accepted request", "unregistered")
      await eventually("it has left") {
        device.events.contains { if case .closed(_, _, reconnectAfter: nil) = $0 { true } else { false } }
      }
      await device.close()
      #expect(await cluster.count == 2)
    }
  }

  @Test func whatWasTakenIsAcknowledgedBeforeTheDeviceLeaves() async throws {
    try await ScriptedCluster.with { cluster, url in
      let device = DeviceUnderTest(url)
      try await device.device.start()
      await cluster.expect("hello")
      await cluster.send(notify(1, id: "one", revision: "1"))
      await device.expect("shown one 1")
      await device.close()
      await cluster.expect("ack")
    }
  }
}

/// The URL of a cluster that does not exist.
///
/// Its port is one that the system gives to nobody: another test's cluster would take one that was just freed.
private func urlOfNobody() async throws -> String {
  let loop = EventLoop(name: "nobody")
  let port = try await freePort(on: loop)
  await loop.close()
  return "ws://127.0.0.1:\(port)\(DeviceProtocol.path)"
}

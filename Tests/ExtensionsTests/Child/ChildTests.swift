import EventLoop
import Foundation
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import Extensions

/// A program that runs beside the worker: what it answers is shown, and whatever else it does costs no more than that.
@Suite struct ChildTests {
  /// A program in Python that answers each notification with a patch of the alert: what `body` says of it, by the names `message` (what it
  /// was sent), `title` and `say`.
  private static func script(_ body: String) -> String {
    """
    #!/usr/bin/env python3
    import json, os, signal, sys, time
    settings, cancelled, expiring = None, 0, 0
    def say(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
    def answer(call, title): say({"id": call, "result": {"patch": {"aps": {"alert": {"title": str(title)}}}}})
    for line in sys.stdin:
        message = json.loads(line)
        call, params, method = message.get("id"), message["params"], message["method"]
        if method == "configure": settings = params; continue
        if method == "cancel": cancelled += 1; continue
    \(body.split(separator: "\n").map { "    " + $0 }.joined(separator: "\n"))
    """
  }

  /// What the file makes of a program.
  private static func definition(_ folder: TestFolder, _ body: String, _ settings: String = "") throws -> ExtensionDefinition {
    // Not executed itself: a file that was written just now may be open in the child of another test.
    let path = try folder.write("child.py", script(body))
    let more =
      settings.contains("arguments")
      ? settings.replacing(#""arguments":["#, with: #""arguments":["\#(path)","#)
      : #""arguments":["\#(path)"]"# + (settings.isEmpty ? "" : ",") + settings
    return try definition(in: "/usr", #""program":"bin/python3",\#(more)"#)
  }

  private static func definition(in folder: String, _ settings: String) throws -> ExtensionDefinition {
    let standard = settings.contains("budget") ? "" : #""budget":30000,"#
    let text = #"{"applications":{"com.example.shop":[{"name":"ask","use":"child",\#(standard)\#(settings)}]}}"#
    let chain = try #require(ExtensionsFile(parsing: Array(text.utf8), in: folder).all.first)
    guard case .called(let definition) = chain.steps[0].work else { throw ExtensionFailure("it is called") }
    return definition
  }

  /// Lends a lane and a program.
  private static func with(
    _ body: String, _ settings: String = "",
    _ test: @concurrent @Sendable (ExtensionCallsTests.Lane, ExtensionDefinition) async throws -> Void
  ) async throws {
    try await TestFolder.with { folder in
      let definition = try definition(folder, body, settings)
      try await ExtensionCallsTests.Lane.with { try await test($0, definition) }
    }
  }

  @Test func whatItAnswersIsShown() async throws {
    try await Self.with(#"answer(call, params["payload"]["aps"]["alert"]["title"] + "!")"#) { lane, child in
      let run = await lane.pass([child, child])
      #expect(run.outcomes.map(\.state) == [.modified, .modified])
      #expect(run.content.title == "News!!")
    }
    try await Self.with(#"say({"id": call, "result": {"payload": {"aps": {"alert": "Changed"}}}})"#) { lane, child in
      #expect(await lane.pass([child]).content.body == "Changed")
    }
    try await Self.with(#"say({"id": call, "result": None})"#) { lane, child in
      #expect(await lane.pass([child]).outcomes.map(\.state) == [.unchanged])
    }
  }

  @Test func itIsToldWhatItNeedsAndNothingElseOfTheWorker() async throws {
    let body =
      #"answer(call, json.dumps([settings, sorted(params), params["extension"], dict(os.environ), sys.argv[1:], [os.readlink('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + n)]]))"#
    let settings = #""settings":{"color":"red"},"environment":{"COLOR":"blue"},"arguments":["a","b c"]"#
    // As C libraries open what is theirs.
    let file = open("/etc/passwd", O_RDONLY)
    defer { close(file) }
    try await Self.with(body, settings) { lane, child in
      let title = try #require(await lane.pass([child]).content.title)
      let told = try JSONValue(parsing: title)
      #expect(told[0] == ["color": "red"])
      #expect(told[1] == ["application", "expiration", "extension", "id", "identifier", "payload", "traceparent"])
      #expect(told[2] == "0")
      #expect(told[3]?["COLOR"] == "blue")
      // Python adds LC_CTYPE itself.
      let names = Set(told[3]?.members?.map(\.key) ?? [])
      #expect(names.isSubset(of: ["COLOR", "PATH", "HOME", "LANG", "LC_ALL", "TZ", "LC_CTYPE"]), "\(names)")
      #expect(told[4] == ["a", "b c"])
      let files = told[5]?.elements?.compactMap(\.stringValue) ?? []
      #expect(files.count >= 3 && !files.contains("/etc/passwd"), "\(files)")
    }
  }

  @Test func hundredsAreAskedAtOnceAndMayBeAnsweredInAnyOrder() async throws {
    let body = """
      waiting = globals().setdefault("waiting", [])
      waiting.append(call)
      if len(waiting) == 200:
          for call in reversed(waiting): answer(call, f"{call} of {os.getpid()}")
      """
    try await Self.with(body) { lane, child in
      let titles = await withTaskGroup { group in
        for _ in 0..<200 { group.addTask { await lane.pass([child]).content.title } }
        return await group.reduce(into: Set<String?>()) { $0.insert($1) }
      }
      #expect(titles.count == 200)
      #expect(Set(titles.map { $0?.split(separator: " ").last }).count == 1)
    }
  }

  @Test(arguments: [
    ("print('nonsense', flush=True)", "no answer by JSON-RPC 2.0"),
    (#"print(json.dumps({"id": call, "result": None}), flush=True)"#, "no answer by JSON-RPC 2.0"),
    (#"say({"id": call})"#, "no answer by JSON-RPC 2.0"), (#"say({"id": "x", "result": None})"#, "no answer by JSON-RPC 2.0"),
    (#"say({"id": call, "result": None, "error": {"message": ""}})"#, "no answer by JSON-RPC 2.0"),
    (#"say({"method": "other", "params": {}})"#, "no answer by JSON-RPC 2.0"),
    (#"say({"id": call + 1, "result": None})"#, "a call that is not open"),
    (#"say({"method": "bestAttempt", "params": {"call": call + 1, "payload": {}}})"#, "a call that is not open"),
    (
      #"for _ in range(200): say({"method": "bestAttempt", "params": {"call": call, "payload": params["payload"]}})"#,
      "a call that is not open"
    ), ("while True: sys.stdout.write('x' * 65536)", "a line of more than 131072 bytes"),
    ("print('[' * 100000, flush=True)", "no answer by JSON-RPC 2.0"), ("sys.exit(3)", "ended with the code 3"),
    ("os.kill(os.getpid(), signal.SIGSEGV)", "ended by the signal 11"), ("os.close(0); os.close(1); signal.pause()", "closed its output"),
    (#"say({"id": call, "error": {"code": 1, "message": "no idea"}})"#, "its program says that it has failed: no idea"),
    (#"say({"id": call, "result": {"payload": {}}})"#, "the result"), (#"say({"id": call, "result": 7})"#, "something else"),
    (#"say({"id": call, "result": {"patch": {"x": "x" * 20000}}})"#, "16384"),
  ])
  func whatItMustNotSayLeavesTheContentAsItWasAndTheNextIsAskedAgain(_ body: String, _ reason: String) async throws {
    let once = "if os.path.exists(sys.argv[0] + '.done'): answer(call, 'again'); continue\nopen(sys.argv[0] + '.done', 'w').close()\n"
    try await Self.with(once + body) { lane, child in
      let run = await lane.pass([child])
      #expect(run.outcomes.map(\.state) == [.failed])
      #expect(run.outcomes[0].failure?.description.contains(reason) == true, "\(run.outcomes)")
      #expect(run.content.title == "News")
      #expect(await lane.pass([child]).content.title == "again")
    }
  }

  @Test func whatItHadByThenIsShownWhereItEnds() async throws {
    let body = #"say({"method": "bestAttempt", "params": {"call": call, "payload": {"aps": {"alert": "half"}}}}); sys.exit(1)"#
    try await Self.with(body) { lane, child in
      let run = await lane.pass([child])
      #expect(run.outcomes.map(\.state) == [.bestAttempt])
      #expect(run.content.body == "half")
    }
  }

  @Test func itHasALastWordWhenItsTimeExpires() async throws {
    let body = "if method == 'serviceExtensionTimeWillExpire': answer(params['call'], 'in a hurry')"
    // It has a second for it: a machine that stands still then may take it, so it gets some chances.
    try await Self.with(body, #""budget":3000"#) { lane, child in
      await lane.eventually("it is in a hurry") { await lane.pass([child]).content.title == "in a hurry" }
    }
  }

  @Test func oneThatHangsIsKilledWithAllThatItHasStartedAndStartedAgain() async throws {
    let body = """
      import subprocess
      seen = globals().setdefault("seen", [])
      seen.append(call)
      if len(seen) == 1: answer(call, "first"); continue
      helper = subprocess.Popen(["sleep", "600"])
      open(sys.argv[0] + ".helper", "w").write(str(helper.pid))
      while True: signal.pause()
      """
    try await TestFolder.with { folder in
      let again = "if os.path.exists(sys.argv[0] + '.helper'): answer(call, 'again'); continue\n"
      let child = try Self.definition(folder, again + body, #""budget":3000"#)
      try await ExtensionCallsTests.Lane.with { lane in
        await lane.eventually("it answers") { await lane.pass([child]).content.title == "first" }
        #expect(await lane.pass([child]).outcomes.map(\.state) == [.timedOut])
        await lane.eventually("it answers again") { await lane.pass([child]).content.title == "again" }
        let helper = try #require(Int32(try String(contentsOfFile: folder.path + "/child.py.helper", encoding: .utf8)))
        await lane.eventually("what it has started is gone") { Self.isGone(helper) }
      }
    }
  }

  @Test func oneThatIsGivenUpIsToldSo() async throws {
    let body = "open(sys.argv[0] + '.asked', 'w').close()\nif cancelled: answer(call, cancelled)"
    try await TestFolder.with { folder in
      let child = try Self.definition(folder, body)
      try await ExtensionCallsTests.Lane.with { lane in
        await lane.giveUp(child) { access(folder.path + "/child.py.asked", F_OK) == 0 }
        #expect(await lane.pass([child]).content.title == "1")
      }
    }
  }

  @Test func oneThatTakesTooMuchMemoryEndsAloneWithAFailure() async throws {
    try await Self.with("x = b'x' * (1 << 30)\nanswer(call, len(x))", #""memory":128"#) { lane, child in
      let run = await lane.pass([child])
      #expect(run.outcomes.map(\.state) == [.failed])
      #expect(run.outcomes[0].failure?.reason.contains("ended with the code 1") == true, "\(run.outcomes)")
    }
  }

  @Test func oneThatEndsAtOnceIsLeftAloneForAWhile() async throws {
    let child = try Self.definition(in: "/bin", #""program":"sh","arguments":["-c","exit 7"],"breaker":0"#)
    try await ExtensionCallsTests.Lane.with { lane in
      var reasons: [String] = []
      while reasons.count < 50, reasons.last?.contains("is started again in") != true {
        reasons.append(await lane.pass([child]).outcomes[0].failure?.reason ?? "")
      }
      #expect(reasons.first?.contains("ended with the code 7") == true, "\(reasons)")
      #expect(reasons.last?.contains("is started again in") == true, "\(reasons)")
    }
  }

  @Test(arguments: ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nanswer(call, os.getpid())\nwhile True: signal.pause()\n"])
  func itIsGoneWhenItsLaneIs(_ more: String) async throws {
    let pid = ProcessID()
    try await Self.with(more + "answer(call, os.getpid())") { lane, child in
      let title = try #require(await lane.pass([child]).content.title)
      pid.value.withLock { $0 = Int32(title) ?? 0 }
      #expect(kill(pid.value.withLock { $0 }, 0) == 0)
    }
    #expect(kill(pid.value.withLock { $0 }, 0) != 0)
  }

  /// Whether a process has ended; nobody may have asked for its exit code yet.
  private static func isGone(_ process: Int32) -> Bool {
    guard let facts = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return true }
    return facts.split(separator: ")").last?.hasPrefix(" Z") ?? true
  }

  @Test func whatOneHasStartedThatEndsByItselfIsGoneWithIt() async throws {
    let body = """
      import subprocess
      helper = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
      open(sys.argv[0] + ".helper", "w").write(str(helper.pid))
      sys.exit(3)
      """
    try await TestFolder.with { folder in
      let child = try Self.definition(folder, body)
      try await ExtensionCallsTests.Lane.with { lane in
        let run = await lane.pass([child])
        #expect(run.outcomes[0].failure?.reason.contains("ended with the code 3") == true, "\(run.outcomes)")
        let helper = try #require(Int32(try String(contentsOfFile: folder.path + "/child.py.helper", encoding: .utf8)))
        await lane.eventually("what it has started is gone") { Self.isGone(helper) }
      }
    }
  }

  @Test func extensionsWithTheSameSettingsHaveOneProgramTogether() throws {
    func definitions(_ extensions: [String]) throws -> [ExtensionDefinition] {
      let text = #"{"applications":{\#(extensions.enumerated().map { #""a\#($0)":[\#($1)]"# }.joined(separator: ","))}}"#
      return try ExtensionsFile(parsing: Array(text.utf8)).all.compactMap {
        if case .called(let definition) = $0.steps[0].work { definition } else { nil }
      }
    }
    func child(_ name: String, _ memory: Int) -> String { #"{"name":"\#(name)","use":"child","program":"/bin/sh","memory":\#(memory)}"# }
    let made = try definitions([child("a", 64), child("b", 64), child("a", 65)])
    #expect(made[0] === made[1])
    #expect(made[0] !== made[2])
    #expect(try definitions((0..<64).map { child("a", 16 + $0) }).count == 64)
    #expect(throws: FieldError.self) { try definitions((0..<65).map { child("a", 16 + $0) }) }
  }

  private final class ProcessID: Sendable { let value = Mutex<Int32>(0) }
}

import Foundation
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Command

/// `carillon replay` and what may be wrong with what it is given.
@Suite struct ReplayCommandTests {
  private func command(_ kafka: KafkaFixture, _ topics: Topics, _ flags: String...) -> [String] {
    [
      "replay", "--kafka", kafka.configuration.bootstrapServers.joined(separator: ","), "--topic-prefix",
      String(topics.requests.dropLast(8)),
    ]
      + flags
  }

  private func topics(_ kafka: KafkaFixture, requests count: Int) async throws -> Topics {
    let topics = Topics(prefix: KafkaFixture.unique("replay-command") + ".")
    try await kafka.makeTopics(topics.all, partitions: 2)
    let record = TestRecord(
      key: "user:ada", #"{"aps":{"alert":"x"}}"#, headers: [.init("target", "user:ada"), .init("apns-topic", "com.example.shop")],
      partition: 0)
    if count > 0 { try await kafka.publish(Array(repeating: record, count: count), to: topics.requests) }
    return topics
  }

  @Test(arguments: [
    (["--from", "1h", "--to", "2h"], "--from must lie before --to"), (["--from", "tomorrow"], "--from"),
    (["--id", "7"], "it must be an apns-id"), (["--where", "order=7"], "it must be POINTER=VALUE"),
    (["--offsets", "1:9-3"], "--offsets"),
    (["--offsets", "1:0-3", "--offsets", "1:5-9"], "names partition 1 twice"), (["--target", "ada"], "--target"),
    (["--resume", "file", "--app", "com.example"], "exclude each other"),
    (["--only-unfinished", "--as-new"], "--only-unfinished and --as-new exclude each other"),
    (["--resume", "file", "--as-new"], "--as-new and --resume exclude each other"),
    (["--resume", "file", "--dry-run"], "--resume writes the rest"),
    (["--resume", "file", "--state", "other"], "--resume names the file"),
  ])
  func whatContradictsItselfIsWrongUsage(_ flags: [String], _ error: String) async throws {
    let refusal = try await Typed.refusal(["replay", "--kafka", "127.0.0.1:1"] + flags)
    #expect(refusal.code == .wrongUsage && refusal.text.contains(error), "it says: \(refusal.text)")
  }

  @Test(.onlyInAll("ClusterTests/ReplayTests replay across processes, and ReplayToolTests have the forecast"))
  func `what was applied before is counted as without effect, and comes again with new ids`() async throws {
    try await WorkerPair.with { pair in
      let token = String(repeating: "b", count: 64)
      try await pair.register(token, user: "bob")
      let expires = ["apns-expiration": "4102444800"]
      try await pair.publish((0..<5).map { WorkerPair.request($0 == 0 ? "device:\(token)" : "user:bob", expires) })
      let group = ["--group", pair.prefix + "transform"]
      func replay(_ words: String..., redis: Bool = true) async throws -> CarillonCommand.Result {
        let result = try await pair.carillon.run(
          ["replay"] + words + pair.flags + group + (redis ? ["--redis", pair.redisAddress] : []))
        #expect(result.status == 0, "it said: \(result.errors)")
        return result
      }
      try await pair.eventually("the markers are behind all of them") {
        let told = try JSONValue(parsing: try await replay("--dry-run", "--json").output)
        return told["written"]?.integerValue == 5 && told["applied"]?.integerValue == 5 && told["mayHaveEffect"]?.integerValue == 0
      }
      let text = try await replay("--dry-run")
      #expect(text.output.contains("of these 5 were applied before and have no effect"), "it said: \(text.output)")
      #expect(text.output.contains("so no device gets anything of them") && text.errors.contains("--as-new"), "it said: \(text.errors)")
      let blind = try await replay("--dry-run", "--json", redis: false)
      let told = try JSONValue(parsing: blind.output)
      #expect(told["mayHaveEffect"]?.integerValue == 5 && told["applied"]?.integerValue == 0)
      #expect(blind.errors.contains("it is unknown which requests were applied before"), "it said: \(blind.errors)")
      // Afterwards the same is told, and so it is.
      let state = try pair.carillon.file("state", "")
      unlink(state)
      let done = try await replay("--state", state)
      #expect(done.output.contains("5 of 5 records replayed"), "it said: \(done.output)")
      #expect(done.output.contains("so no device gets anything of them"), "it said: \(done.output)")
      let mailbox = try await pair.key("m", token)
      func waiting() async throws -> Int64? { try await pair.redis.command("HLEN", .text(mailbox)).integer }
      try await pair.eventually("they are applied, as nothing") {
        try JSONValue(parsing: try await replay("--dry-run", "--json").output)["ofReplays"]?.integerValue == 5
      }
      #expect(try await waiting() == 5)
      let dry = try JSONValue(parsing: try await replay("--as-new", "--dry-run", "--json").output)
      #expect(dry["asNew"] == true && dry["written"]?.integerValue == 5 && dry["mayHaveEffect"] == nil)
      unlink(state)
      let new = try await replay("--as-new", "--state", state)
      #expect(new.output.contains("5 of 10 records replayed as new requests"), "it said: \(new.output)")
      try await pair.eventually("they are there again") { try await waiting() == 10 }
    }
  }

  @Test func aFileThatCannotBeGoneOnWithIsNamedWithItsFault() async throws {
    let line = ["replay", "--kafka", "127.0.0.1:1", "--resume"]
    try await TestFolder.with { folder in
      for (text, error) in [
        ("{}", "it is not the file of a replay"), ("\u{0}\u{1}", "it is not the file of a replay"),
        ("", "it is empty, since its replay ended before it wrote anything: remove it"),
      ] {
        let refusal = try await Typed.refusal(line + [try folder.write("state.json", text)])
        #expect(refusal.code == .wrongUsage && refusal.text.contains(error), "it says: \(refusal.text)")
      }
    }
    let missing = try await Typed.refusal(line + ["/nowhere/state.json"])
    #expect(missing.code == .dependencyMissing && missing.text.contains("No such file"), "it says: \(missing.text)")
  }

  @Test func rangesThatAreNotThereAreNamedWithWhatThereIs() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      try await CarillonCommand.with { carillon in
        let topics = try await topics(kafka, requests: 5)
        for (flags, status, error) in [
          (["--partitions", "7"], 2, "has the partitions 0 to 1, and no 7"), (["--offsets", "0:3-9"], 2, "ends at offset 5, before 9"),
          (["--app", "com.example.mail", "--dry-run"], 1, "nothing was found"),
          (["--partitions", "1", "--dry-run"], 1, "nothing was found"),
        ] as [([String], Int32, String)] {
          let result = try await carillon.run(command(kafka, topics) + flags)
          #expect(result.status == status && result.errors.contains(error), "it said: \(result.errors)")
        }
        let unknown = try await carillon.run(command(kafka, Topics(prefix: "no-such.")))
        #expect(unknown.status == 3 && unknown.errors.contains("there is no topic no-such.requests"), "it said: \(unknown.errors)")
      }
    }
  }

  /// No file may grow, as on a full disk: the first state of the replay cannot be saved.
  @Test func aFileWhoseFirstSaveFailsIsTakenAwaySoThatTheSameLineBeginsAnew() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      try await CarillonCommand.with { carillon in
        let topics = try await topics(kafka, requests: 5)
        let state = carillon.folder.appendingPathComponent("state.json").path
        let line = command(kafka, topics, "--state", state)
        let errors = Pipe()
        let full = try await carillon.run(
          ["-c", #"trap "" XFSZ; ulimit -f 0; exec "$0" "$@""#, CarillonCommand.program.path] + line,
          streams: .init(errors: errors.fileHandleForWriting), program: URL(fileURLWithPath: "/bin/sh"))
        try errors.fileHandleForWriting.close()
        let said = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(full.status == 3 && said.contains("\(state) cannot be written: File too large"), "it said: \(said)")
        #expect(!said.contains("interrupted: continue"), "it said: \(said)")
        #expect(access(state, F_OK) != 0, "an empty file is left")
        #expect(access(state + ".new", F_OK) != 0, "the draft is left")
        let anew = try await carillon.run(line)
        #expect(anew.status == 0, "it said: \(anew.errors)")
      }
    }
  }

  @Test func anEmptyFileThatIsInTheWayIsSaidToBeEmpty() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      try await TestFolder.with { folder in
        let topics = try await topics(kafka, requests: 5)
        let refusal = try await Typed.refusal(command(kafka, topics, "--state", try folder.write("state.json", "")))
        #expect(refusal.code == .wrongUsage && refusal.text.contains("exists already, and it is empty"), "it says: \(refusal.text)")
        #expect(!refusal.text.contains("--resume"), "it says: \(refusal.text)")
      }
    }
  }

  @Test func aFileIsOfOneReplayOfOneCluster() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      try await CarillonCommand.with { carillon in
        let topics = try await topics(kafka, requests: 5)
        let state = try carillon.file("state", "")
        unlink(state)
        let first = try await carillon.run(command(kafka, topics, "--state", state, "--json"))
        #expect(first.status == 0 && first.output.contains("\"written\":5"), "it said: \(first.errors)")
        let again = try await carillon.run(command(kafka, topics, "--state", state))
        #expect(again.status == 2 && again.errors.contains("--resume"), "it said: \(again.errors)")
        let done = try await carillon.run(command(kafka, topics, "--resume", state, "--json"))
        #expect(done.status == 0 && done.output.contains("\"state\":\"complete\""), "it said: \(done.errors)")
        let other = try await carillon.run(command(kafka, topics, "--resume", state, "--cluster", "west"))
        #expect(other.status == 2 && other.errors.contains("in the cluster carillon"), "it said: \(other.errors)")
        try await KafkaFixture.with(embeddedOnly: true) { elsewhere in
          let result = try await carillon.run(command(elsewhere, topics, "--resume", state))
          #expect(result.status == 2 && result.errors.contains("another Kafka cluster"), "it said: \(result.errors)")
        }
      }
    }
  }
}

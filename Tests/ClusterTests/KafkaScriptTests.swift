import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// `Deploy/kafka`, which starts the brokers of these tests: with a distribution whose programs only pretend, so that it runs everywhere.
  @Suite struct KafkaScriptTests {
    /// What stands for Kafka: it listens, says that it has started, and lives.
    private static let broker = """
      import os, socket, sys
      settings = dict(line.rstrip().split("=", 1) for line in open(sys.argv[1]) if "=" in line and not line.startswith("#"))
      if settings.get("refuses") == settings["node.id"]: sys.exit("this broker does not start")
      port = int(settings["advertised.listeners"].rpartition(":")[2])
      listener = socket.create_server(("127.0.0.1", port))
      open(os.environ["LOG_DIR"] + "/server.log", "a").write("[1] INFO Kafka Server started (kafka.server)\\n")
      while True: listener.accept()[0].close()
      """
    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Deploy/kafka")

    private struct Script {
      let carillon: CarillonCommand
      let distribution: String
      let cluster: String

      func run(_ words: [String], from distribution: String? = nil) async throws -> CarillonCommand.Result {
        try await carillon.run(
          words,
          environment: [
            "TESTS_KAFKA_FOLDER": distribution ?? self.distribution, "JAVA_HOME": "", "PATH": self.distribution + "/java:/usr/bin:/bin",
          ],
          program: KafkaScriptTests.script)
      }

      /// The process id of a broker.
      func pid(_ broker: Int) throws -> Int32 {
        try #require(
          Int32(String(contentsOfFile: "\(cluster)/\(broker)/pid", encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)))
      }

      /// Waits until a process is in one of these states of `/proc/PID/stat`, such as T; one that has gone counts as a zombie, Z.
      func becomes(_ states: String, _ pid: Int32) async -> Bool {
        await eventually("process \(pid) is in one of the states \(states)") {
          let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
          return states.contains(stat?.split(separator: ")").last?.split(separator: " ").first ?? "Z")
        }
      }
    }

    private static func with(_ body: (Script, TestFolder) async throws -> Void) async throws {
      try await TestFolder.with { folder in
        let start = #"#!/bin/bash"# + "\n" + #"exec python3 "$(dirname "$0")/broker.py" "$1""# + "\n"
        try folder.write("distribution/bin/kafka-server-start.sh", start, isExecutable: true)
        try folder.write("distribution/bin/broker.py", broker)
        try folder.write("distribution/bin/kafka-storage.sh", "#!/bin/bash\necho \"$*\"\n", isExecutable: true)
        try folder.write("distribution/bin/kafka-consumer-groups.sh", "#!/bin/bash\necho \"groups: $*\"\n", isExecutable: true)
        try folder.write("distribution/libs/kafka-clients-4.2.0.jar", "")
        try folder.write("distribution/java/java", "#!/bin/bash\necho 'openjdk version \"17.0.1\"' >&2\n", isExecutable: true)
        try await CarillonCommand.with { carillon in
          let script = Script(carillon: carillon, distribution: folder.path + "/distribution", cluster: folder.path + "/cluster")
          do { try await body(script, folder) } catch {
            _ = try await script.run(["kill", script.cluster])
            throw error
          }
        }
      }
    }

    @Test func `brokers are started, killed, frozen, restarted and ended`() async throws {
      try await Self.with { script, folder in
        let started = try await script.run(["start", script.cluster, "--brokers", "3", "--heap", "64m", "--config", "a.b=c"])
        #expect(started.status == 0, "it said: \(started.errors)")
        let servers = try #require(started.lines.first).split(separator: ",").map(String.init)
        #expect(servers.count == 3 && Set(servers).count == 3 && servers.allSatisfy { $0.hasPrefix("127.0.0.1:") })
        let settings = try String(contentsOfFile: script.cluster + "/2/server.properties", encoding: .utf8)
        #expect(settings.contains("\nnode.id=2\n") && settings.contains("\nmin.insync.replicas=2\n") && settings.hasSuffix("\na.b=c\n"))
        #expect(try await script.run(["start", script.cluster]).errors.contains("has a cluster already"))

        #expect(try await script.run(["kill", script.cluster, "2"]).status == 0)
        let down = try await script.run(["status", script.cluster])
        #expect(down.status == 1 && down.lines == ["broker 1 up \(servers[0])", "broker 2 down", "broker 3 up \(servers[2])"])
        // It goes on with the distribution that it was started with.
        #expect(try await script.run(["restart", script.cluster, "2"], from: "/no/where").status == 0)
        #expect(try await script.run(["status", script.cluster]).status == 0)
        #expect(try await script.run(["bootstrap", script.cluster]).lines == started.lines)
        #expect(try await script.run(["restart", script.cluster, "2"]).errors.contains("broker 2 runs"))

        #expect(try await script.run(["freeze", script.cluster, "1"]).status == 0)
        #expect(await script.becomes("T", try script.pid(1)))
        #expect(await script.becomes("SR", try script.pid(3)))
        #expect(try await script.run(["thaw", script.cluster, "1"]).status == 0)
        #expect(await script.becomes("SR", try script.pid(1)))
        #expect(try await script.run(["freeze", script.cluster]).status == 0)
        let pids = try (1...3).map(script.pid)
        #expect(try await script.run(["stop", script.cluster]).status == 0, "frozen ones, too")
        for pid in pids { #expect(await script.becomes("Z", pid)) }
        #expect(try await script.run(["tool", "groups", "--list"]).lines == ["groups: --list"])
      }
    }

    @Test func `no process but the broker itself is signalled`() async throws {
      try await Self.with { script, folder in
        #expect(try await script.run(["start", script.cluster]).status == 0)
        #expect(try await script.run(["kill", script.cluster]).status == 0)
        // Somebody else's, with the number that the broker had.
        let sleeper = try script.carillon.start(["600"], program: URL(fileURLWithPath: "/bin/sleep"))
        try "\(sleeper.pid)\n".write(toFile: script.cluster + "/1/pid", atomically: true, encoding: .utf8)
        #expect(try await script.run(["status", script.cluster]).status == 1)
        #expect(try await script.run(["kill", script.cluster]).status == 0)
        #expect(kill(sleeper.pid, 0) == 0)
        sleeper.signal(SIGKILL)
      }
    }

    @Test func `a start that fails says why and leaves no broker behind`() async throws {
      try await Self.with { script, folder in
        let failed = try await script.run(["start", script.cluster, "--brokers", "2", "--config", "refuses=2"])
        #expect(failed.status == 1 && failed.output.isEmpty)
        #expect(
          failed.errors.contains("this broker does not start") && failed.errors.contains("broker 2 has not started"), "\(failed.errors)")
        #expect(await script.becomes("Z", try script.pid(1)))
      }
    }

    @Test func `what is no distribution is told with the reason`() async throws {
      try await Self.with { script, folder in
        #expect(try await script.run(["check"]).status == 0)
        for verb in [["check"], ["start", script.cluster]] {
          let nowhere = try await script.run(verb, from: folder.path)
          #expect(nowhere.status == 1 && nowhere.errors.contains("is no unpacked Apache Kafka"), "\(nowhere.errors)")
        }
        try FileManager.default.removeItem(atPath: script.distribution + "/libs/kafka-clients-4.2.0.jar")
        #expect(try await script.run(["check"]).errors.contains("(is it the source?)"))
        try folder.write("distribution/libs/kafka-clients-3.9.1.jar", "")
        #expect(try await script.run(["check"]).errors.contains("is Apache Kafka 3.9.1: 4.0 or newer is needed"))
        try FileManager.default.moveItem(
          atPath: script.distribution + "/libs/kafka-clients-3.9.1.jar", toPath: script.distribution + "/libs/kafka-clients-4.0.0.jar")
        try folder.write("distribution/java/java", "#!/bin/bash\necho 'openjdk version \"11.0.2\"' >&2\n", isExecutable: true)
        let old = try await script.run(["start", script.cluster])
        #expect(old.status == 1 && old.errors.contains("Java 17 or newer is needed") && old.errors.contains("is 11"), "\(old.errors)")
      }
    }

    @Test func `a folder with a script of its own does the work by it`() async throws {
      try await Self.with { script, folder in
        try folder.write("own/kafka", "#!/bin/bash\necho \"own: $*\"\n", isExecutable: true)
        for words in [["start", script.cluster, "--brokers", "3"], ["kill", script.cluster, "2"], ["tool", "topics", "--list"]] {
          #expect(try await script.run(words, from: folder.path + "/own").lines == ["own: " + words.joined(separator: " ")])
        }
        #expect(try await script.run(["check"], from: folder.path + "/own").status == 0)
      }
    }
  }
}

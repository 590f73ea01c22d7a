import Foundation
import JSON
import TestSupport
import Testing

/// Standard streams that are closed, full or read by nobody.
@Suite struct StandardStreamTests {
  /// What a descriptor of a process leads to.
  private func target(of descriptor: Int32, in process: RunningCommand) -> String? {
    try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process.pid)/fd/\(descriptor)")
  }

  /// Whether the process has taken SIGTERM over.
  private func awaitsSignals(_ process: RunningCommand) -> Bool {
    let status = (try? String(contentsOfFile: "/proc/\(process.pid)/status", encoding: .utf8)) ?? ""
    let caught = status.split(separator: "\n").first { $0.hasPrefix("SigCgt:") }?.split(separator: "\t").last
    return caught.flatMap { UInt64($0, radix: 16) }.map { $0 & (1 << UInt64(SIGTERM - 1)) != 0 } ?? false
  }

  /// A pipe that nobody reads any more.
  private func brokenPipe() async throws -> FileHandle {
    let pipe = Pipe()
    try pipe.fileHandleForReading.close()
    // A process that another test starts just now has the reading end until its program runs.
    var writer = pollfd(fd: pipe.fileHandleForWriting.fileDescriptor, events: 0, revents: 0)
    await eventually("nobody reads the pipe") { poll(&writer, 1, 0) != 0 }
    return pipe.fileHandleForWriting
  }

  private func fullDisk() throws -> FileHandle { try #require(FileHandle(forWritingAtPath: "/dev/full")) }

  private static let closed: [[Int32]] = [[0, 1, 2], [2]] + (isComplete ? [[0], [0, 1]] : [])

  @Test(arguments: isComplete ? ["transform", "fan-out"] : ["fan-out"], closed)
  func aClosedStandardStreamHarmsNoRole(role: String, closed: [Int32]) async throws {
    try await CarillonCommand.with { carillon in
      let flags = ["--kafka", "127.0.0.1:9", "--redis", "127.0.0.1:9"] + (role == "fan-out" ? ["--listen", "127.0.0.1:0"] : [])
      let process = try carillon.start([role] + flags, streams: .init(closed: closed))
      await eventually("it awaits signals") { awaitsSignals(process) }
      for descriptor in closed { #expect(target(of: descriptor, in: process) == "/dev/null", "descriptor \(descriptor)") }
      process.signal(SIGTERM)
      let result = try await process.result()
      #expect(result.status == 0, "it said: \(result.errors)")
      if !closed.contains(2) { #expect(result.errors.contains("ended")) }
    }
  }

  @Test(.onlyInAll("it is many commands, of which whatCannotBeWrittenEndsWithThree has two"))
  func aClosedStandardInputHarmsNoCommand() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up, streams: .init(closed: [0]))
      _ = try await up.firstLine()
      let request = ["--target", "user:ada", "--app", "com.example", "--body", "x"]
      let published = try await carillon.run(["publish"] + request, streams: .init(closed: [0]))
      #expect(published.status == 0, "it said: \(published.errors)")
      let id = try #require(published.lines.first)
      for arguments in [
        ["events", "--from", "beginning", "--limit", "1"], ["explain", id], ["topics", "create", "--partitions", "8"], ["--help"],
      ] {
        let result = try await carillon.run(arguments, streams: .init(closed: [0]))
        #expect(result.status == 0 && !result.output.isEmpty, "\(arguments) said: \(result.errors)")
      }

      // What is published is told, whatever becomes of standard output.
      for output in [try fullDisk(), try await brokenPipe()] {
        let unread = try await carillon.run(["publish"] + request, streams: .init(output: output))
        #expect(unread.status == 3)
        #expect(unread.errors.contains("standard output cannot be written"))
        let told = try #require(unread.errors.split(separator: "\n").last)
        #expect(try await carillon.run(["explain", String(told)]).status == 0)
      }
      let lines = (0..<5).map { #"{"target":"user:\#($0)","title":"t"}"# }.joined(separator: "\n")
      let many = try await carillon.run(
        ["publish", "--app", "com.example", "--lines", "-", "--json"], input: lines, streams: .init(output: try fullDisk()))
      #expect(many.status == 3)
      let answers = many.errors.split(separator: "\n").filter { $0.hasPrefix("{") }
      // It may not have read all lines yet when the first answer cannot be written. Each that it has published is told.
      let answered = try answers.compactMap { try JSONValue(parsing: String($0))["line"]?.integerValue }
      #expect((1...5).contains(answered.count) && Set(answered) == Set(1...Int64(answered.count)))
      #expect(many.errors.contains("\(answered.count) published to notifications.requests"))
      for arguments in [
        ["events", "--from", "beginning", "--limit", "1"], ["explain", id], ["audit"], ["topics", "create", "--partitions", "8"],
      ] {
        let full = try await carillon.run(arguments, streams: .init(output: try fullDisk()))
        #expect(
          full.status == 3 && full.errors.contains("standard output cannot be written"), "\(arguments): \(full.status), \(full.errors)")
      }
      try await up.stop()
    }
  }

  @Test(arguments: [["--help"], ["settings"]] + (isComplete ? [["publish", "--help"], ["--version"]] : []))
  func whatCannotBeWrittenEndsWithThree(arguments: [String]) async throws {
    try await CarillonCommand.with { carillon in
      let full = try await carillon.run(arguments, streams: .init(output: try fullDisk()))
      #expect(full.status == 3)
      #expect(full.errors == "carillon: standard output cannot be written: No space left on device\n")
      let unread = try await carillon.run(arguments, streams: .init(output: try await brokenPipe()))
      #expect(unread.status == 3)
    }
  }
}

import Foundation
import TestSupport
import Testing

/// The standard output of `carillon device`, which nobody reads.
@Suite struct DeviceOutputTests {
  @Test(arguments: isComplete ? [false, true] : [true])
  func `a device whose output nobody reads takes its notifications, and ends at a signal`(hasOnePipe: Bool) async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      let (pipe, token) = (Pipe(), String(repeating: "e4", count: 32))
      let device = try carillon.start(
        ["device", "--token", token, "--app", "com.example", "--user", "ada", "--json"],
        streams: .init(output: pipe.fileHandleForWriting, errors: hasOnePipe ? pipe.fileHandleForWriting : nil))
      func events(_ type: String, _ count: Int) async throws {
        let result = try await carillon.run(["events", "--from", "beginning", "--type", type, "--limit", "\(count)"])
        #expect(result.status == 0 && result.lines.count >= count, "\(type): \(result.output.suffix(1_000)) \(result.errors)")
      }
      try await events("registered", 1)
      // More than a pipe takes.
      let line = #"{"target":"user:ada","title":"t","body":"\#(String(repeating: "x", count: 3_000))"}"#
      let lines = Array(repeating: line, count: 100).joined(separator: "\n")
      let published = try await carillon.run(["publish", "--app", "com.example", "--lines", "-", "--json"], input: lines)
      #expect(published.status == 0, "it said: \(published.errors)")
      try await events("delivered", 100)
      device.signal(SIGTERM)
      let ended = try await device.result()
      #expect(ended.status == 3, "it ended with \(ended.status): \(ended.errors)")
      if !hasOnePipe { #expect(ended.errors.contains("nobody reads standard output: ")) }
      try pipe.fileHandleForReading.close()
      try await up.stop()
    }
  }
}

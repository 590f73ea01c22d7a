import Foundation
import Redis
import Testing

@testable import Store

/// What `Deploy/check-scripts` has checked is what the program loads.
@Suite struct ScriptFilesTests {
  @Test func `each file is one script that is loaded and checked, composed as the gate composes it`() throws {
    let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let gate = Process()
    gate.executableURL = URL(filePath: "/usr/bin/env")
    gate.arguments = ["python3", package.appending(path: "Deploy/check-scripts").path, "--sha1"]
    let output = Pipe()
    gate.standardOutput = output
    try gate.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    gate.waitUntilExit()
    #expect(gate.terminationStatus == 0)
    // Each line has a sum and the file.
    let sums = text.split(separator: "\n").map { String($0.prefix { $0 != " " }) }
    #expect(sums.count > 20)
    #expect(sums.sorted() == Shards.scripts.map(\.sha1).sorted(), "\(text)")
  }
}

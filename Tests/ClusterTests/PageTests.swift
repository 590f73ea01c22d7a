import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// `carillon.js` in a real browser, which is really killed. All tests judge one run.
  @Suite(.serialized, .inPython, .inChromium)
  struct PageTests {
    private static let run = Task {
      try await CarillonCommand.with { carillon in
        let parts = "page,article,tabs,kills,scripts" + (isComplete ? ",dead" : "")
        let more = ["--part", parts] + (isComplete ? ["--kills", "20", "--ping", "5s"] : [])
        let words = ["-u", client("pages.py"), "--binary", CarillonCommand.program.path] + more
        return try await carillon.run(words, program: URL(fileURLWithPath: ClusterFixture.python ?? ""))
      }
    }

    private func holds(_ part: String) async throws {
      let result = try await Self.run.value
      let verdict = result.lines.compactMap { try? JSONValue(parsing: $0) }.last { $0["part"]?.stringValue == part }
      guard verdict?["result"]?.stringValue == "held" else {
        throw ClusterFailure("pages.py --part \(part): \(verdict?.text ?? "it has not ended")\n\(result.output)\(result.errors)")
      }
    }

    @Test func aPageShowsReplacesRemovesAndAnswers() async throws { try await holds("page") }

    @Test func thePageOfTheArticleShowsAnswersAndDismisses() async throws { try await holds("article") }

    @Test func twoTabsPresentEachNotificationOnceThoughOneIsFrozen() async throws { try await holds("tabs") }

    @Test func aKilledBrowserPresentsNothingTwiceAndLosesNothing() async throws { try await holds("kills") }

    @Test func aPageDoesWhatTheSessionScriptsSay() async throws { try await holds("scripts") }

    @Test(.onlyInAll("it is about time: a dead connection is noticed by its heartbeats"))
    func aPageNoticesADeadConnection() async throws { try await holds("dead") }
  }
}

extension Trait where Self == ConditionTrait {
  /// A test in Debian's Chromium.
  static var inChromium: ConditionTrait {
    .enabled("Chromium, its driver and Python's selenium are needed: Deploy/install --tests installs them") {
      guard let python = ClusterFixture.python else { return false }
      let programs = ["/usr/bin/chromium", "/usr/bin/chromedriver"]
      guard programs.allSatisfy({ FileManager.default.isExecutableFile(atPath: $0) }) else { return false }
      let process = Process()
      process.executableURL = URL(fileURLWithPath: python)
      process.arguments = ["-c", "import selenium"]
      process.standardError = FileHandle.nullDevice
      guard (try? process.run()) != nil else { return false }
      process.waitUntilExit()
      return process.terminationStatus == 0
    }
  }
}

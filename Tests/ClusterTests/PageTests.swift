import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// `carillon.js` in a real browser, which is really killed.
  @Suite(.serialized, .inPython, .inChromium)
  struct PageTests {
    private func holds(_ part: String, _ more: [String] = []) async throws {
      try await CarillonCommand.with { carillon in
        let python = URL(fileURLWithPath: ClusterFixture.python ?? "")
        let words = ["-u", client("pages.py"), "--binary", CarillonCommand.program.path, "--part", part] + more
        let result = try await carillon.run(words, program: python)
        guard result.status == 0 else { throw ClusterFailure("pages.py --part \(part): \(result.output)\(result.errors)") }
      }
    }

    @Test func aPageShowsReplacesRemovesAndAnswers() async throws { try await holds("page") }

    @Test func thePageOfTheArticleShowsAnswersAndDismisses() async throws { try await holds("article") }

    @Test func twoTabsPresentEachNotificationOnceThoughOneIsFrozen() async throws { try await holds("tabs") }

    @Test func aKilledBrowserPresentsNothingTwiceAndLosesNothing() async throws {
      try await holds("kills", ["--kills", isComplete ? "20" : "2"])
    }

    @Test(.onlyInAll("it is about time: a dead connection is noticed by its heartbeats"))
    func aPageNoticesADeadConnection() async throws { try await holds("dead", ["--ping", "5s"]) }
  }
}

extension Trait where Self == ConditionTrait {
  /// A test in Debian's Chromium.
  fileprivate static var inChromium: ConditionTrait {
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

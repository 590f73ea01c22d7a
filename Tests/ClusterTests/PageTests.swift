import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// `carillon.js` in a real browser, which is really killed. All tests judge one run.
  @Suite(.serialized, .inPython, .inChromium)
  struct PageTests {
    private static let run = BrowserRun(
      "pages.py", "page,article,tabs,leave,follows,kills,scripts" + (isComplete ? ",locks,dead" : ""),
      isComplete ? ["--kills", "20", "--ping", "5s"] : [])

    @Test func aPageShowsReplacesRemovesAndAnswers() async throws { try await Self.run.holds("page") }

    @Test func thePageOfTheArticleShowsAnswersAndDismisses() async throws { try await Self.run.holds("article") }

    @Test func twoTabsPresentEachNotificationOnceThoughOneIsFrozen() async throws { try await Self.run.holds("tabs") }

    @Test func aSignOutWithoutAConnectionReachesTheClusterAtALaterStart() async throws { try await Self.run.holds("leave") }

    @Test func anOpenPanelFollowsWhatAnotherTabShows() async throws { try await Self.run.holds("follows") }

    @Test(.onlyInAll("a banner that is left behind waits five seconds"))
    func noTabIsLeftWithALockThatItDoesNotUse() async throws { try await Self.run.holds("locks") }

    @Test func aKilledBrowserPresentsNothingTwiceAndLosesNothing() async throws { try await Self.run.holds("kills") }

    @Test func aPageDoesWhatTheSessionScriptsSay() async throws { try await Self.run.holds("scripts") }

    @Test(.onlyInAll("it is about time: a dead connection is noticed by its heartbeats"))
    func aPageNoticesADeadConnection() async throws { try await Self.run.holds("dead") }
  }
}

extension Trait where Self == ConditionTrait {
  /// A test in Debian's Chromium.
  static var inChromium: ConditionTrait {
    .enabled("Chromium, its driver and Python's selenium are needed: Deploy/install --tests installs them") { ClusterTests.hasChromium }
  }
}

extension ClusterTests {
  /// Whether a browser can be driven.
  static let hasChromium: Bool = {
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
  }()
}

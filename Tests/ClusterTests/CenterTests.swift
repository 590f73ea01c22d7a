import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// The notification center in a real browser, used as a person uses it. All tests judge one run.
  @Suite(.serialized, .inPython, .inChromium)
  struct CenterTests {
    private static let run = Task {
      try await CarillonCommand.with { carillon in
        let parts = "shown" + (isComplete ? ",panels,reach,hostile,crowd,quiet" : "")
        let words = ["-u", client("center.py"), "--binary", CarillonCommand.program.path, "--part", parts]
        return try await carillon.run(words, program: URL(fileURLWithPath: ClusterFixture.python ?? ""))
      }
    }

    private func holds(_ part: String) async throws {
      let result = try await Self.run.value
      let verdict = result.lines.compactMap { try? JSONValue(parsing: $0) }.last { $0["part"]?.stringValue == part }
      guard verdict?["result"]?.stringValue == "held" else {
        throw ClusterFailure("center.py --part \(part): \(verdict?.text ?? "it has not ended")\n\(result.output)\(result.errors)")
      }
    }

    @Test func thePageShowsWhatIsAllowedWhereItIsAllowed() async throws { try await holds("shown") }

    @Test(.onlyInAll("it takes half a minute of a browser"))
    func thePanelsOfTheSamplesTakeEachAnswer() async throws { try await holds("panels") }

    @Test(.onlyInAll("it takes half a minute of a browser"))
    func thePageIsReachedByKeyboardReadAloudAndSeen() async throws { try await holds("reach") }

    @Test(.onlyInAll("it takes half a minute of a browser"))
    func hostileTextsStayTexts() async throws { try await holds("hostile") }

    @Test(.onlyInAll("it waits for banners, and ends the cluster"))
    func bannersWaitForThePersonAndQuietHoursReachOtherDevices() async throws { try await holds("quiet") }

    @Test(.onlyInAll("it publishes a thousand notifications"))
    func aThousandNotificationsAndFiftyChangesASecondKeepThePageQuick() async throws { try await holds("crowd") }
  }
}

import TestSupport
import Testing

extension ClusterTests {
  /// The notification center in a real browser, used as a person uses it. All tests judge one run.
  @Suite(.serialized, .inPython, .inChromium)
  struct CenterTests {
    private static let run = BrowserRun("center.py", "shown" + (isComplete ? ",panels,outside,leave,reach,hostile,crowd,quiet" : ""))

    @Test func thePageShowsWhatIsAllowedWhereItIsAllowed() async throws { try await Self.run.holds("shown") }

    @Test(.onlyInAll("it takes half a minute of a browser"))
    func thePanelsOfTheSamplesTakeEachAnswer() async throws { try await Self.run.holds("panels") }

    @Test(.onlyInAll("it takes half a minute of a browser"))
    func aClickOutsideReachesThePageOfItsApplication() async throws { try await Self.run.holds("outside") }

    @Test(.onlyInAll("it takes half a minute of a browser"))
    func aSignOutWithoutAConnectionReachesTheCluster() async throws { try await Self.run.holds("leave") }

    @Test(.onlyInAll("it takes half a minute of a browser"))
    func thePageIsReachedByKeyboardReadAloudAndSeen() async throws { try await Self.run.holds("reach") }

    @Test(.onlyInAll("it takes half a minute of a browser"))
    func hostileTextsStayTexts() async throws { try await Self.run.holds("hostile") }

    @Test(.onlyInAll("it waits for banners, and ends the cluster"))
    func bannersWaitForThePersonAndQuietHoursReachOtherDevices() async throws { try await Self.run.holds("quiet") }

    @Test(.onlyInAll("it publishes a thousand notifications"))
    func aThousandNotificationsAndFiftyChangesASecondKeepThePageQuick() async throws { try await Self.run.holds("crowd") }
  }
}

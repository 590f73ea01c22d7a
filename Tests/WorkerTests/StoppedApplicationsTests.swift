import Notifications
import Testing

@testable import Worker

/// Which applications are stopped, as the records of the topic say.
@Suite struct StoppedApplicationsTests {
  private var table = StoppedApplications()

  private mutating func take(_ application: String, _ value: [UInt8]?, at timestamp: Int64) -> StoppedApplications.Change {
    var application = application
    return application.withUTF8 { key in
      let key = UnsafeRawBufferPointer(key)
      guard let value else { return table.take(key: key, value: nil, timestamp: timestamp) }
      return value.withUnsafeBytes { table.take(key: key, value: $0, timestamp: timestamp) }
    }
  }

  private mutating func change(_ application: String, _ change: ApplicationStops.Change, at timestamp: Int64) -> StoppedApplications.Change?
  {
    let stops = stops(application) ?? ApplicationStops()
    return stops.value(change, forgettingBefore: 0).map { take(application, $0, at: timestamp) }
  }

  private func granted(_ application: String) -> GrantedLevels {
    var application = application
    return application.withUTF8 { table.granted(to: UnsafeRawBufferPointer($0)) }
  }

  @Test mutating func `what an application was granted holds whether it is stopped or not, and makes it no stopped one`() {
    _ = take("a", ApplicationStops().value(.allow(.critical), forgettingBefore: 0), at: 10)
    #expect(granted("a") == .critical && granted("b") == [])
    #expect(table.isEmpty && stops("a") == nil, "requests are not looked up among the stops for it")
    var known = Array(#"{"state":"stopped","allowed":["critical","timeSensitive"],"stops":[{"by":"x"}]}"#.utf8)
    #expect(take("a", known, at: 20) == .stopped(ApplicationStop(from: 20, by: "x")))
    #expect(granted("a") == [.critical, .timeSensitive])
    known = Array(#"{"state":"started","stops":[{"from":20,"by":"x"}]}"#.utf8)
    #expect(take("a", known, at: 30) == .started && granted("a") == [])
    _ = take("a", ApplicationStops().value(.allow(.timeSensitive), forgettingBefore: 0), at: 40)
    #expect(granted("a") == .timeSensitive)
    #expect(take("a", nil, at: 50) == .nothing && granted("a") == [])
  }

  private func stops(_ application: String) -> ApplicationStops? {
    var application = application
    return application.withUTF8 { table.stops(of: UnsafeRawBufferPointer($0)) }
  }

  @Test mutating func theNewestRecordOfAnApplicationCounts() {
    #expect(table.isEmpty && stops("a") == nil)
    #expect(change("a", .stop(by: "x", reason: nil), at: 10) == .stopped(ApplicationStop(from: 10, by: "x")))
    #expect(change("b", .stop(by: "y", reason: "r"), at: 20) == .stopped(ApplicationStop(from: 20, by: "y", reason: "r")))
    #expect(change("a", .start(by: "x"), at: 30) == .started)
    #expect(stops("a")?.during(15) != nil && stops("a")?.during(30) == nil && stops("b")?.open != nil && stops("c") == nil)
    #expect(take("b", nil, at: 40) == .started, "a tombstone forgets it")
    #expect(stops("b") == nil && !table.isEmpty)
  }

  @Test mutating func whatCannotBeReadLeavesAStopAsItIs() throws {
    #expect(change("a", .stop(by: "x", reason: nil), at: 10) == .stopped(ApplicationStop(from: 10, by: "x")))
    guard case .refused(let reason) = take("a", Array("{}".utf8), at: 20) else {
      Issue.record("garbage was taken")
      return
    }
    #expect(reason.contains("state"))
    #expect(stops("a")?.open?.from == 10)
    guard case .refused = take("a b", nil, at: 20), case .refused = take("", nil, at: 20) else {
      Issue.record("what is no application was taken")
      return
    }
    #expect(table.take(key: nil, value: nil, timestamp: 1) != .nothing)
  }

  @Test mutating func `an application is stopped, however many were granted something`() {
    for number in 0..<StoppedApplications.maximum {
      #expect(take("granted.\(number)", ApplicationStops().value(.allow(.critical), forgettingBefore: 0), at: 1) == .nothing)
    }
    let known = Array(#"{"state":"stopped","allowed":["critical"],"stops":[{"by":"x"}]}"#.utf8)
    #expect(take("one.more", known, at: 20) == .stopped(ApplicationStop(from: 20, by: "x")))
    #expect(granted("one.more") == [] && stops("one.more")?.open != nil)
    #expect(take("another", ApplicationStops().value(.allow(.critical), forgettingBefore: 0), at: 30) != .nothing, "it is said")
  }

  @Test mutating func anApplicationIsStoppedHoweverManyWereStoppedBefore() {
    for number in 0..<StoppedApplications.maximum {
      _ = change("old.\(number)", .stop(by: "x", reason: nil), at: Int64(number))
      if number > 0 { _ = change("old.\(number)", .start(by: "x"), at: 10_000 + Int64(number)) }
    }
    #expect(change("new", .stop(by: "x", reason: nil), at: 50_000) == .stopped(ApplicationStop(from: 50_000, by: "x")))
    #expect(stops("new")?.open != nil && stops("old.0")?.open != nil, "what is stopped stays")
    #expect(stops("old.1") == nil && stops("old.2") != nil, "the one that ended first is forgotten")
  }
}

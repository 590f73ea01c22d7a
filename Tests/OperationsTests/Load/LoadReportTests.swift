import Foundation
import JSON
import Notifications
import Testing

@testable import Operations

/// What the report of a run says beside its numbers.
@Suite struct LoadReportTests {
  private static func report(_ change: (inout LoadResult) -> Void = { _ in }) -> LoadReport {
    let plan = LoadPlan()
    let measures = LoadMeasures(durationMilliseconds: plan.requests.durationMilliseconds)
    var result = LoadResult(plan: plan, startedAt: 0, elapsed: 1, measures: measures, servers: LoadServers(startedAt: 0, measures))
    change(&result)
    return LoadReport(
      run: "r", result: result, facts: [("profile", "mixed"), ("version", "1.2"), ("machine", "a <b>"), ("command", "carillon load")])
  }

  private static func places(_ parts: [String], in page: String) -> [String.Index?] { parts.map { page.range(of: $0)?.lowerBound } }

  @Test func `its page begins with what one needs to repeat the run`() throws {
    let page = LoadPage.html(Self.report { $0.plan.seed = 4711 })
    let places = try Self.places(["mixed", "1.2", "a &lt;b>", "carillon load<", "4711", "No promise was broken", "<svg"], in: page).map {
      try #require($0)
    }
    #expect(places == places.sorted())
    #expect(Self.report().json["of"]?["profile"] == "mixed")
  }

  @Test func `the article names every member of the result`() throws {
    var report = Self.report { result in
      result.measures.record(.arrived, due: 1_000_000_000, at: 11_000_000_000)
      result.servers.take(1, of: "up", at: 1)
    }
    report.steps = [(rate: 1, p99: 1, schedule: 1, isKept: true)]
    var names: Set<String> = []
    // These have members by the names of stages, servers, violations and events.
    let named: Set<String> = ["of", "violations", "events", "cores"], ofNamed: Set<String> = ["stages", "workerStages", "processors"]
    func take(_ value: JSONValue) {
      for member in value.members ?? [] {
        let name = "\(member.key)"
        names.insert(name)
        if ofNamed.contains(name) { member.value.members?.forEach { take($0.value) } } else if !named.contains(name) { take(member.value) }
      }
      for value in value.elements ?? [] { take(value) }
    }
    take(report.json)
    names.subtract(LoadMeasures.Stage.allCases.map(\.name))
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
    let article = try String(contentsOf: folder.appending(path: "../../../Sources/carillon/Documentation.docc/Load.md"), encoding: .utf8)
    #expect(names.count > 60)
    for name in names.sorted() where !name.hasSuffix("AtMost") { #expect(article.contains("`\(name)`"), "\(name)") }
  }

  @Test func `a stretch in which requests took long stands at the verdict`() throws {
    let quiet = LoadPage.html(Self.report())
    #expect(quiet.contains("the schedule was kept.</p>"))
    // A request that was due after a second arrived ten seconds later.
    let page = LoadPage.html(Self.report { $0.measures.record(.arrived, due: 1_000_000_000, at: 11_000_000_000) })
    let verdict = try #require(page.range(of: "the schedule was kept. But not every notification came within a second:</p>"))
    let rest = page[verdict.upperBound...]
    let table = try #require(rest.range(of: "longest (s)")), summary = try #require(rest.range(of: "requests offered"))
    #expect(table.lowerBound < summary.lowerBound)
  }

  @Test func `a number that seems wrong and is not is explained`() {
    let always = Self.report().notes
    #expect(always.count == 1 && always[0].contains("acknowledged: ") && always[0].contains("told: "))
    let slow = Self.report { $0.plan.devices.slow = 0.02 }
    #expect(slow.notes.last?.hasPrefix("2 % of the devices are slow on purpose: they acknowledge after 2 s") == true)
    let collapsed = Self.report { ($0.totals.outcomes[.collapsed], $0.totals.replaced) = (36, 5) }
    #expect(collapsed.notes.last?.hasPrefix("31 of the collapsed are not among the replaced") == true)
    #expect(Self.report { ($0.totals.outcomes[.collapsed], $0.totals.replaced) = (36, 36) }.notes.count == 1)
    let trial = Self.report { $0.servers.take(1, of: "up", at: 1) }
    #expect(trial.notes.last?.hasPrefix("the cluster is a 'carillon up'") == true)
  }
}

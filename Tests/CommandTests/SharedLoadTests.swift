import JSON
import TestSupport
import Testing
import Worker

@testable import Command
@testable import Operations

/// What `carillon load --share` and `carillon load sum` refuse.
@Suite struct SharedLoadTests {
  private static let complete = ["--run", "big", "--start", "2999-01-01T00:00:00Z", "--result", "/tmp/never-written.json"]

  private static let mistakes: [([String], String)] =
    ["0/2", "3/2", "1", "1/2/3", "a/b", "/2", "1/101", "-1/2", "1/99999999999999999999"].map {
      (["--share", $0] + complete, "--share: '\($0)' is not allowed: it must be a share K of N, such as 2/3, with N at most 100")
    } + [
      (["--share", "1/2", "--start", "2999-01-01T00:00:00Z", "--result", "a"], "--share needs --run: all shares have the name of one run"),
      (["--share", "1/2", "--run", "big", "--result", "a"], "--share needs --start: all shares begin at one time"),
      (["--share", "1/2", "--run", "big", "--start", "2999-01-01T00:00:00Z"], "--share needs --result: 'load sum' adds the results"),
      (["--share", "1/2", "--find-capacity"] + complete, "--find-capacity cannot be combined with --share: the rate of each step follows"),
      (["--share", "1/51"] + complete, "--share must not make more shares than people, of which --devices and --devices-per-user make 50"),
      (["--share", "1/9", "--rate", "8"] + complete, "--share must not make more shares than --rate"),
      (["--start", "10m"], "--start: '10m' is not allowed: it must be a time such as 2026-01-31T12:00:00Z"),
    ]

  @Test func `a share that cannot be added to the others is refused by the flag and the rule`() async throws {
    for (flags, text) in Self.mistakes {
      let refused = try await Typed.refusal(["load", "--dry-run"] + flags)
      #expect(refused.code == .wrongUsage && refused.text.contains(text), "\(flags): \(refused.text)")
    }
    let past = try await Typed.refusal(["load", "--start", "2020-01-01T00:00:00Z"])
    #expect(
      past.code == .wrongUsage && past.text.contains("has passed by the clock of this machine"), "\(past.text)")
  }

  /// The result of a share without a request, with this plan.
  private static func report(_ number: Int, of count: Int, plan text: String = "devices = 4\n", run: String = "big") -> String {
    var plan = LoadPlan()
    plan.devices.count = 4
    let share = plan.share(number, of: count)
    let measures = LoadMeasures(durationMilliseconds: plan.requests.durationMilliseconds)
    let result = LoadResult(plan: share.plan, startedAt: 5, elapsed: 1, measures: measures, servers: LoadServers(startedAt: 0, measures))
    var report = LoadReport(run: run, result: result)
    report.share = LoadShareResult(run: run, plan: text, share: share, result: result, findings: [])
    return report.json.text
  }

  @Test func `files that are no results of all shares of one run are refused by the file and the reason`() async throws {
    try await TestFolder.with { folder in
      func refusal(_ texts: [String]) async throws -> String {
        let files = try texts.enumerated().map { try folder.write("\($0 + 1).json", $1) }
        let refused = try await Typed.refusal(["load", "sum"] + files)
        #expect(refused.code == .wrongUsage, "\(refused.text)")
        return refused.text.replacing(folder.path + "/", with: "")
      }
      let one = Self.report(1, of: 2)
      #expect(try await refusal([""]) == "1.json is not complete JSON")
      #expect(try await refusal([String(one.dropLast(9))]) == "1.json is not complete JSON")
      for text in ["{}", "[]", "{\"stages\":{},\"share\":null}", "{\"share\":5}"] {
        #expect(try await refusal([text]).hasPrefix("1.json is not the result of a share, as 'carillon load --share K/N"))
      }
      #expect(try await refusal([one]) == "of 2 shares the file of share 2 is missing")
      #expect(
        try await refusal([one, one])
          == "1.json and 2.json are both share 1")
      #expect(try await refusal([one, Self.report(2, of: 2, run: "c")]).contains("are of different runs: their names (--run)"))
      #expect(
        try await refusal([one.replacing("\"elapsed\":1", with: "\"elapsed\":2")])
          == "1.json was changed after it was written: its checksum does not hold")
      for (plan, text) in [
        ("rat = 5\n", "a profile has no key 'rat'"), ("rate = 0\n", "'0' is not allowed"),
        ("devices = 2\n", "--share must not make more shares"),
      ] {
        let refused = try await refusal([Self.report(1, of: 2, plan: plan)])
        #expect(refused.hasPrefix("1.json has a plan that cannot be carried out: ") && refused.contains(text), "\(refused)")
      }
      let missing = try await Typed.refusal(["load", "sum", folder.path + "/none.json"])
      #expect(missing.code == .wrongUsage && missing.text.contains("none.json cannot be read"))
    }
  }
}

import EventLoop
import JSON
import Operations
import Worker

/// `carillon load sum`.
enum LoadSumCommand {
  private static let files = Argument("FILE", "The result of each share, as --result has written it.", count: .many, completion: .file)

  static let command = Command(
    "load sum", "adds the results of all shares of a load run",
    discussion:
      "Adds the numbers exactly, prints the violations of all shares, and reports as one run does. It refuses files of different runs, two of one share, and a missing share. The exit code is that of a run.",
    arguments: [files], groups: [LoadSettings.sumGroup, AnswerSettings.group],
    examples: [Example("load sum 1.json 2.json 3.json --report load.html", "the report of three shares")]
  ) { values in
    let shares = try values[files].map { try read($0) }
    let result: LoadResult
    do throws(LoadShareResult.Problem) { result = try LoadSum.sum(shares.map { ($0.file, $0.share) }) } catch {
      throw Failure(.wrongUsage, error.text)
    }
    // An output may have the path of an input, which has been read by now.
    let outputs = try LoadFiles(values)
    StandardOutput.whenItFails(.useStandardError)
    for share in shares { for finding in share.share.findings { LoadPrinter.print(finding, isJSON: values[AnswerSettings.json]) } }
    let facts =
      [("version", Program.version)]
      + shares.flatMap { share in
        share.facts.map { ("\($0.key) of share \(share.share.share.number)", $0.value.stringValue ?? "") }
      }
    let report = LoadReport(run: shares[0].share.run, result: result, broken: LoadSettings.broken(values, result), facts: facts)
    LoadPrinter.print(report, isJSON: values[AnswerSettings.json])
    try outputs.write(report)
    return report.complaints.isEmpty ? .done : .answerIsNo
  }

  /// The numbers of a file, and what one needs to repeat its share.
  private static func read(_ path: String) throws -> (file: String, share: LoadShareResult, facts: [JSONValue.Member]) {
    let file = Descriptor.name(path)
    let bytes = try Descriptor.contents(of: path, limit: 64 << 20)
    guard let report = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }) else {
      throw Failure(.wrongUsage, "\(file) is not complete JSON")
    }
    guard let json = report["share"], json.members != nil else {
      throw Failure(.wrongUsage, "\(file) is not the result of a share, as 'carillon load --share K/N --result FILE' writes it")
    }
    do throws(LoadShareResult.Problem) {
      return (file, try LoadShareResult(json, readPlan: plan), report["of"]?.members ?? [])
    } catch {
      throw Failure(.wrongUsage, "\(file) \(TerminalText.visible(error.text))")
    }
  }

  /// Reads a plan by the rules of the flags.
  private static func plan(_ text: String) throws -> LoadPlan {
    guard case .run(_, var values) = try Program.commandLine.parse(["load"], environment: [:]) else { return LoadPlan() }
    try SettingsProfile("the plan", text: text).fill(LoadSettings.planGroups, of: &values)
    return try LoadSettings.plan(values)
  }
}

import Foundation
import TestSupport
import Testing

@Suite struct ReadmeTests {
  @Test func itsTableOfSettingsIsWhatTheProgramPrints() async throws {
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let readme = try String(contentsOf: package.appendingPathComponent("README.md"), encoding: .utf8)
    let begin = try #require(readme.range(of: "<!-- settings -->\n"))
    let end = try #require(readme.range(of: "<!-- /settings -->"))
    let printed = try await CarillonCommand.with { try await $0.run(["settings", "--markdown"]) }
    #expect(printed.status == 0)
    #expect(readme[begin.upperBound..<end.lowerBound] == printed.output, "print it anew: carillon settings --markdown")
  }
}

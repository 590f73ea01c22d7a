import HTTP
import JSON
import Notifications

/// The settings of a webhook in the extensions' file.
struct WebhookSettings: Sendable {
  /// The destination of messages.
  let url: String
  /// The keys that sign them.
  let keys: [(id: String, bytes: [UInt8])]
  /// The time limit of one attempt, in milliseconds.
  let timeoutMilliseconds: Int
  /// The most attempts, with the first one.
  let attempts: Int
  let configuration: HTTPClientConfiguration

  /// Reads the members `url`, `keys`, `timeout`, `attempts`, `networks`, `plaintext` and `certificates`.
  init(_ settings: inout SettingsObject, concurrency: Int) throws(FieldError) {
    url = try settings.requiredText("url", longest: 2_048)
    keys = try Self.keys(&settings)
    timeoutMilliseconds = Int(try settings.integer("timeout", in: 1...Int64(CallBudget.longestMilliseconds)) ?? 5_000)
    attempts = Int(try settings.integer("attempts", in: 1...10) ?? 3)
    let connections = min(concurrency, 256)
    let configuration = try HTTPClientConfiguration(
      &settings, hosts: try Self.host(of: url, settings), plaintext: [.http], connections: (connections, connections), inFlight: concurrency
    )
    do throws(HTTPClientError) { try configuration.check(url) } catch { throw settings.wrong("url", error.settingsRule) }
    self.configuration = configuration
  }

  private static func host(of url: String, _ settings: SettingsObject) throws(FieldError) -> HTTPHostRule {
    // The rule admits only this URL's host.
    let authority = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).dropFirst(2).first ?? ""
    do throws(HTTPTextFailure) {
      return try HTTPHostRule([String(authority.prefix { $0 != "?" && $0 != "#" })])
    } catch { throw settings.wrong("url", "This must be a URL: https://HOST[:PORT]/PATH.") }
  }

  private static func keys(_ settings: inout SettingsObject) throws(FieldError) -> [(id: String, bytes: [UInt8])] {
    let (path, bytes) = try settings.file("keys", limit: KeyFile.maximumBytes)
    do throws(FieldError) {
      let file = try bytes.withUnsafeBufferPointer { text throws(FieldError) in
        try KeyFile.object(parsing: UnsafeRawBufferPointer(text), members: ["keys"])
      }
      let keys = try KeyFile.keys(file["keys"] ?? .null, count: 1...2, lengths: 32...64, longestID: 64)
      guard let wrong = keys.firstIndex(where: { !$0.id.utf8.allSatisfy { (0x21...0x7E).contains($0) } }) else {
        return keys
      }
      throw FieldError(field: "keys[\(wrong)].id", rule: "The id of a webhook's key has only visible ASCII characters.")
    } catch { throw settings.wrong("keys", "\(path): \(error)") }
  }
}

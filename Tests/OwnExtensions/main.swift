import Command
import Extensions
import JSON

/// An extension that does what its setting `mode` says: a worker of a team that makes every mistake there is.
struct Told: ServiceExtension {
  private let mode: String

  init(_ settings: JSONValue) throws {
    guard let mode = settings["mode"]?.stringValue else { throw ExtensionFailure("there is no mode") }
    self.mode = mode
  }

  /// Works until it is cancelled.
  private static func hang() async throws -> Never {
    let (nothing, continuation) = AsyncStream.makeStream(of: Never.self)
    for await _ in nothing {}
    continuation.finish()
    throw CancellationError()
  }

  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    switch mode {
    case "throw": throw ExtensionFailure("it does not want to")
    case "trap": fatalError("a mistake")
    case "loop": while true {}
    case "half":
      for number in 1...1_000 { bestAttempt.update { $0.title = "half \(number)" } }
      try await Self.hang()
    case "print": print("noise among the answers")
    case "wait": try await Self.hang()
    default: break
    }
    var content = bestAttempt.content
    content.title = "\(request.application) \(mode == "whose" ? request.device ?? "nobody" : mode)"
    return content
  }

  func serviceExtensionTimeWillExpire(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async -> MutableContent? {
    guard mode == "wait" else { return nil }
    bestAttempt.update { $0.title = "in a hurry" }
    return bestAttempt.content
  }
}

await Program.main(extensions: [OwnExtension("told") { try Told($0) }])

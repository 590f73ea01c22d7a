public import EventLoop
public import Foundation
public import JSON

// Waits that were given a deadline of their own. It has no effect: `hangDeadline` ends each.

extension CarillonCommand {
  /// Runs the program to its end.
  public func run(
    _ arguments: [String], environment: [String: String] = [:], input: String = "", streams: Streams = Streams(),
    program: URL = CarillonCommand.program, withinSeconds _: Int
  ) async throws -> Result {
    try await run(arguments, environment: environment, input: input, streams: streams, program: program)
  }
}

extension RunningCommand {
  /// Waits for its end.
  public func result(withinSeconds _: Int) async throws -> CarillonCommand.Result { try await result() }
}

extension ClusterProcess {
  /// Waits for a line that is an object and passes `accepts`.
  @discardableResult
  public func line(withinSeconds _: Int, _ what: String, _ accepts: @Sendable (JSONValue) -> Bool) async throws -> JSONValue {
    try await line(what, accepts)
  }

  /// Waits for its end.
  public func exit(withinSeconds _: Int) async throws -> ChildExit { try await exit() }
}

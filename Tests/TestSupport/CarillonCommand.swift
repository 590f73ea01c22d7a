public import Foundation
import Synchronization

/// The program as a real process, for tests: with an environment of its own, and a folder where a running `carillon up` would leave its file.
public struct CarillonCommand: Sendable {
  /// A `carillon up` at free ports, which takes none from another test.
  public static let up = [
    "up", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ingress", "127.0.0.1:0",
  ]

  /// How a process ended, and what it wrote.
  public struct Result: Sendable {
    /// The exit code; 128 and the signal's number when a signal ended it.
    public var status: Int32
    /// Standard output.
    public var output: String
    /// Standard error.
    public var errors: String
    /// The lines of standard output.
    public var lines: [String] { output.split(separator: "\n").map(String.init) }
  }

  /// What a process reads from and writes to, where that is no file of its command.
  public struct Streams {
    /// Standard input.
    public var input: FileHandle?
    /// Standard output; the result then has none.
    public var output: FileHandle?
    /// Standard error; the result then has none.
    public var errors: FileHandle?
    /// Descriptors that are closed when it starts.
    public var closed: [Int32]

    /// Files for all, unless given.
    public init(input: FileHandle? = nil, output: FileHandle? = nil, errors: FileHandle? = nil, closed: [Int32] = []) {
      (self.input, self.output, self.errors, self.closed) = (input, output, errors, closed)
    }
  }

  /// The program: what `TESTS_BINARY` names, else the debug build beside the tests.
  public static let program: URL = {
    if let path = ProcessInfo.processInfo.environment["TESTS_BINARY"] { return URL(fileURLWithPath: path) }
    return product("carillon")
  }()

  /// Another program of the package: its debug build beside the tests.
  public static func product(_ name: String) -> URL {
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    return package.appendingPathComponent(".build/debug/\(name)")
  }

  /// A folder of this command's own; removed by `end`.
  public let folder: URL
  private let started = Started()

  private final class Started: Sendable {
    let processes = Mutex<[RunningCommand]>([])
  }

  /// Makes the folder.
  public init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  /// Gives `body` commands with a folder of their own, and ends what is left of them.
  public static func with<R>(_ body: (CarillonCommand) async throws -> R) async throws -> R {
    let command = try CarillonCommand()
    do {
      let result = try await body(command)
      await command.end()
      return result
    } catch {
      await command.end()
      throw error
    }
  }

  /// Ends the processes that still run, which a failed test may leave, and removes the folder.
  public func end() async {
    for process in started.processes.withLock({ $0 }) { try? await process.stop() }
    try? FileManager.default.removeItem(at: folder)
  }

  /// Runs the program to its end.
  ///
  /// - Parameters:
  ///   - input: standard input; empty without it.
  ///   - streams: what else is special about its standard streams.
  ///   - program: another program, in its place.
  /// - Returns: how it ended. One that hangs is killed in the end, and the status is 137.
  public func run(
    _ arguments: [String], environment: [String: String] = [:], input: String = "", streams: Streams = Streams(),
    program: URL = CarillonCommand.program
  ) async throws -> Result {
    let process = try start(arguments, environment: environment, input: input, streams: streams, program: program)
    return try await process.result()
  }

  /// Runs the program again until its answer is as wanted.
  ///
  /// It says of what stands still for seconds that it does not answer.
  public func run(_ arguments: [String], until isWanted: (Result) -> Bool) async throws -> Result {
    var result: Result?
    try await requireEventually("an answer as wanted: \(result.map { "\($0)" } ?? "")") {
      let answer = try await run(arguments)
      result = answer
      return isWanted(answer)
    }
    guard let result else { preconditionFailure("the wait ends with an answer") }
    return result
  }

  /// Starts the program.
  ///
  /// - Parameters:
  ///   - streams: what takes the place of standard input and the two outputs, where something does.
  ///   - program: what is started, where it is not `carillon` itself.
  public func start(
    _ arguments: [String], environment: [String: String] = [:], input: String = "", streams: Streams = Streams(),
    program: URL = CarillonCommand.program
  ) throws -> RunningCommand {
    let process = try RunningCommand(program, arguments, environment: environment, input: input, streams, folder)
    started.processes.withLock { $0.append(process) }
    return process
  }

  /// Writes a file into the folder and answers its path.
  public func file(_ name: String, _ text: String) throws -> String {
    let url = folder.appendingPathComponent(name)
    try Data(text.utf8).write(to: url)
    return url.path
  }
}

/// A process that runs.
public final class RunningCommand: Sendable {
  private let process: SpawnedProcess
  private let output: URL
  private let errors: URL

  fileprivate init(
    _ program: URL, _ arguments: [String], environment: [String: String], input: String, _ streams: CarillonCommand.Streams, _ folder: URL
  ) throws {
    let name = UUID().uuidString
    output = folder.appendingPathComponent("\(name).out")
    errors = folder.appendingPathComponent("\(name).err")
    let source = folder.appendingPathComponent("\(name).in")
    try Data(input.utf8).write(to: source)
    for url in [output, errors] { try Data().write(to: url) }
    var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("CARILLON_") }
    // Neither a cluster nor what one would leave is shared with anything else.
    variables["XDG_RUNTIME_DIR"] = folder.path
    let temporary = folder.appendingPathComponent("tmp")
    try FileManager.default.createDirectory(at: temporary, withIntermediateDirectories: true)
    variables["TMPDIR"] = temporary.path
    var spawned: [SpawnedProcess.Stream] = [
      streams.input.map { .descriptor($0.fileDescriptor) } ?? .file(source, flags: O_RDONLY),
      streams.output.map { .descriptor($0.fileDescriptor) } ?? .file(output, flags: O_WRONLY),
      streams.errors.map { .descriptor($0.fileDescriptor) } ?? .file(errors, flags: O_WRONLY),
    ]
    for number in streams.closed { spawned[Int(number)] = .closed }
    process = try SpawnedProcess(program, arguments, environment: variables.merging(environment) { $1 }, streams: spawned)
  }

  /// Its id.
  public var pid: Int32 { process.pid }

  /// Sends a signal; nothing happens when it has ended.
  public func signal(_ number: Int32) { process.signal(number) }

  /// What it has written to standard output.
  public var outputSoFar: String { Self.text(output) }

  /// What it has written to standard error.
  public var errorsSoFar: String { Self.text(errors) }

  /// Waits for the first whole line of standard output.
  public func firstLine() async throws -> String {
    var line: String?
    try await wait("a line on standard output") {
      let text = outputSoFar
      line = text.firstIndex(of: "\n").map { String(text[..<$0]) }
      return line != nil || hasEnded
    }
    guard let line else { throw CommandFailure(description: "it ended without a line on standard output; it said: \(errorsSoFar)") }
    return line
  }

  /// Waits until standard error has a text.
  public func untilErrors(contain text: String) async throws {
    try await wait("'\(text)' on standard error") { errorsSoFar.contains(text) }
  }

  /// Waits for its end.
  ///
  /// - Parameter hangs: the number of deadlines to wait, for a program that does so many things which may hang.
  public func result(hangs: Int = 1) async throws -> CarillonCommand.Result {
    do {
      try await requireEventually("its end", hangs: hangs) { hasEnded }
    } catch {
      // A test that hung once waits no more, so this wait counts its rounds.
      signal(SIGKILL)
      for _ in 0..<10_000 where !hasEnded { await pause() }
    }
    return CarillonCommand.Result(status: process.status ?? -1, output: Self.text(output), errors: Self.text(errors))
  }

  /// Whether it has ended.
  public var hasEnded: Bool { process.status != nil }

  /// Ends it if it still runs, in order.
  public func stop() async throws {
    guard !hasEnded else { return }
    signal(SIGTERM)
    _ = try await result()
  }

  private func wait(_ what: String, _ condition: () -> Bool) async throws {
    try await requireEventually("\(what); standard error: \(errorsSoFar)", condition)
  }

  private static func text(_ url: URL) -> String { (try? Data(contentsOf: url)).map { String(decoding: $0, as: UTF8.self) } ?? "" }
}

/// A process did not do what a test needs of it.
public struct CommandFailure: Error, CustomStringConvertible {
  /// What it did.
  public var description: String
}

import Cryptography
import Notifications
import Redis

/// Finds out whether a server does what workers need of it: each command and each script, on keys made for that. Loop-confined.
///
/// One check at a time. Its keys have a hash tag that no bucket has, and are removed at its end. All checks of a connection have the same keys,
/// so that a server that refuses to remove them keeps no more with each check.
public final class SelfCheck {
  private let shards: Shards
  private let calls = Calls()
  private let keys = CheckKeys()

  /// Of these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// Runs every command and every script.
  ///
  /// - Returns: what the server does not do, in words; nil where everything works.
  /// - Throws: why that cannot be found out now: the connection is gone, too much is in flight, or the server takes no writes.
  public func run() async throws(StoreError) -> String? {
    // First, too: a check that was refused to remove its keys has left them.
    let removal = [CheckSteps.removal(keys)]
    let steps = removal + CheckSteps.commands(keys) + CheckSteps.scripts(keys) + removal
    let found: (failures: [String], obstacle: StoreError?) = await withCheckedContinuation { continuation in
      let findings = Findings(steps.count) { continuation.resume(returning: ($0.failures, $0.obstacle)) }
      for step in steps {
        step.write(&calls.command)
        calls.send(over: shards.common) { findings.take(step, $0) }
      }
    }
    if let obstacle = found.obstacle { throw obstacle }
    guard !found.failures.isEmpty else { return nil }
    let more = found.failures.count - Self.maximumNamed
    return "Redis does not do what workers need: " + found.failures.prefix(Self.maximumNamed).joined(separator: "; ")
      + (more > 0 ? "; and \(more) more" : "") + ". What its user must be allowed stands in the article 'Running a cluster'"
  }

  /// Failures that are named.
  private static let maximumNamed = 3

  /// What the steps have answered, told when the last answer has come.
  private final class Findings {
    private var remaining: Int
    private let then: (Findings) -> Void
    private(set) var failures: [String] = []
    private(set) var obstacle: StoreError?

    init(_ count: Int, _ then: @escaping (Findings) -> Void) { (remaining, self.then) = (count, then) }

    func take(_ step: CheckStep, _ answer: Result<RedisReplyView, StoreError>) {
      switch answer {
      case .success(let reply): if !step.isRight(reply) { failures.append("\(step.name) answers something else than it should") }
      case .failure(let error):
        switch error.code {
        case .unavailable, .overloaded, .writesRefused: obstacle = obstacle ?? error
        case .refused, .unexplained, .bucketLost, .faulty: failures.append("\(step.name): \(error)")
        }
      }
      remaining -= 1
      if remaining == 0 { then(self) }
    }
  }
}

/// One call of a check.
struct CheckStep {
  /// What it shows to work: a command, or the script of a room.
  let name: String
  /// The script that it calls; nil for a command.
  let script: RedisScript?
  let write: (inout RedisCommand) -> Void
  let isRight: (RedisReplyView) -> Bool

  /// Of a command: any answer but an error is right.
  init(_ name: String, _ arguments: RedisArgument...) { self.init(name, arguments) }

  /// Of a command: any answer but an error is right.
  init(_ name: String, _ arguments: [RedisArgument]) {
    self.name = name
    script = nil
    write = { command in
      command.begin(name)
      for argument in arguments { command.append(argument) }
    }
    isRight = { _ in true }
  }

  /// Of a script.
  ///
  /// - Parameter request: where its arguments contain the head of a request, that; it stands before the last of the others.
  init(
    _ name: String, _ script: RedisScript, keys: [String], _ arguments: [RedisArgument], request: RequestEntry? = nil,
    isRight: @escaping (RedisReplyView) -> Bool
  ) {
    self.name = "the script '\(name)'"
    self.script = script
    write = { command in
      command.begin(script, keys: keys.count)
      for key in keys { command.append(key) }
      for argument in arguments.dropLast() { command.append(argument) }
      if let request {
        command.beginArgument()
        command.extend(headOf: request, in: UnsafeRawBufferPointer(start: nil, count: 0))
        command.endArgument()
      }
      if let last = arguments.last { command.append(last) }
    }
    self.isRight = isRight
  }
}

/// Keys that only a check has, of each kind that workers have.
struct CheckKeys {
  private let tag = "{check-\(Hexadecimal.text(RandomBytes.make(count: 8)))}"

  var device: String { "d\(tag)" }
  var mailbox: String { "m\(tag)" }
  var recipients: String { "u\(tag)" }
  var result: String { "x\(tag)" }
  var markers: String { "k\(tag)" }
  var tries: String { "tries\(tag)" }
  var cluster: String { "cluster\(tag)" }
  var lanes: String { "lanes\(tag)" }
  var workers: String { "workers\(tag)" }
  var reports: String { "reports\(tag)" }
  /// For the commands by themselves.
  var hash: String { "hash\(tag)" }
  var set: String { "set\(tag)" }
  var text: String { "text\(tag)" }

  /// All of them.
  var all: [String] {
    [device, mailbox, recipients, result, markers, tries, cluster, lanes, workers, reports, hash, set, text]
  }
}

import Cryptography
import Notifications
import Redis

/// Checks whether a server executes each command and each script that workers need.
///
/// It runs one check at a time, on keys of its own, and removes them at the end. Their hash tag belongs to no bucket. All checks of a
/// connection use the same keys, so a server that refuses to remove them does not collect more.
public final class SelfCheck {
  private let shards: Shards
  private let calls = Calls()
  private let keys = CheckKeys()

  /// Makes a check of these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// Runs every command and every script.
  ///
  /// - Returns: what the server does not do, in words; nil if everything works.
  /// - Throws: why that cannot be found out now: no connection, too many calls in flight, or no writes allowed.
  public func run() async throws(StoreError) -> String? {
    // An earlier check may have left its keys, if the server refused to remove them.
    let removal = [CheckStep("DEL", keys.all.map { .text($0) })]
    let steps = removal + CheckSteps.commands(keys) + CheckSteps.scripts(keys) + removal
    let found: (failures: [String], obstacle: StoreError?) = await withCheckedContinuation { continuation in
      var (remaining, failures, obstacle): (Int, [String], StoreError?) = (steps.count, [], nil)
      for step in steps {
        step.write(&calls.command)
        calls.send(over: shards.common) { answer in
          switch answer {
          case .success(let reply): if !step.isRight(reply) { failures.append("\(step.name) answers something else than it should") }
          case .failure(let error):
            switch error.code {
            case .unavailable, .overloaded, .writesRefused: obstacle = obstacle ?? error
            case .refused, .unexplained, .bucketLost, .faulty, .newer: failures.append("\(step.name): \(error)")
            }
          }
          remaining -= 1
          if remaining == 0 { continuation.resume(returning: (failures, obstacle)) }
        }
      }
    }
    if let obstacle = found.obstacle { throw obstacle }
    guard !found.failures.isEmpty else { return nil }
    let more = found.failures.count - Self.maximumNamed
    return "Redis does not do what workers need: " + found.failures.prefix(Self.maximumNamed).joined(separator: "; ")
      + (more > 0 ? "; and \(more) more" : "") + ". Which commands its user needs is in the article 'Running a cluster'"
  }

  /// The number of failures that the message names.
  private static let maximumNamed = 3
}

/// One call of a check.
struct CheckStep {
  /// What it checks: a command, or the script of one part of the store.
  let name: String
  /// The script that it calls; nil for a command.
  let script: RedisScript?
  let write: (inout RedisCommand) -> Void
  let isRight: (RedisReplyView) -> Bool

  /// A step of a command: any answer but an error is right.
  init(_ name: String, _ arguments: RedisArgument...) { self.init(name, arguments) }

  /// A step of a command: any answer but an error is right.
  init(_ name: String, _ arguments: [RedisArgument]) {
    self.name = name
    script = nil
    write = { command in
      command.begin(name)
      command.append(all: arguments)
    }
    isRight = { _ in true }
  }

  /// A step of a script.
  ///
  /// - Parameter request: the request whose head is an argument, if any. It stands before the last of the others.
  init(
    _ name: String, _ script: RedisScript, keys: [String], _ arguments: [RedisArgument], request: RequestEntry? = nil,
    isRight: @escaping (RedisReplyView) -> Bool
  ) {
    self.name = "the script '\(name)'"
    self.script = script
    write = { command in
      command.begin(script, keys: keys)
      command.append(all: arguments.dropLast())
      if let request {
        command.beginArgument()
        command.extend(headOf: request, in: .empty)
        command.endArgument()
      }
      if let last = arguments.last { command.append(last) }
    }
    self.isRight = isRight
  }
}

/// The keys of a check, one of each kind that workers use.
struct CheckKeys {
  /// The kinds of `Keys`, and one key of each type for the commands.
  private static let kinds = [
    "d", "m", "u", "x", "k", "s", "n", "e", "t", "a", "w", "o", "y", "h", "tries", "cluster", "lanes", "members", "workers", "reports",
    "b", "hash", "set", "text",
  ]
  private let tag = "{check-\(Hexadecimal.text(RandomBytes.make(count: 8)))}"

  subscript(kind: String) -> String {
    precondition(Self.kinds.contains(kind), "a key that the check would not remove")
    return kind + tag
  }

  var all: [String] { Self.kinds.map { $0 + tag } }
}

import Notifications
import Redis

/// The locales of devices, from their registrations. Loop-confined.
public final class Locales {
  private let shards: Shards
  private let calls = Calls()

  /// Makes them for these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// Reads the locales of devices, in their order; nil for a device that is not registered or has no locale.
  ///
  /// - Parameters:
  ///   - tokens: at least one, each with the arena that contains it.
  ///   - then: called within this call if the call cannot be sent.
  public func read(_ tokens: [(span: ArenaSpan, arena: Arena)], _ then: @escaping (Result<[String?], StoreError>) -> Void) {
    let collected = CollectedAnswers(tokens.count, then)
    for (number, (token, arena)) in tokens.enumerated() {
      arena.bytes.withUnsafeBytes { arena in
        let bucket = shards.keys.bucket(of: arena[token])
        calls.command.begin("HGET")
        calls.command.appendKey("d", bucket, arena[token])
        calls.command.append("l")
        calls.send(over: shards.shard(of: bucket)) { answer in
          // The judge reports a device that cannot be read.
          collected.take(number, answer.map { $0.bytes.map { String(decoding: $0, as: UTF8.self) } })
        }
      }
    }
  }
}

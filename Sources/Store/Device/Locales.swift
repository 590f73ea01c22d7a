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
    let collected = Collected(tokens.count, then)
    for (number, (token, arena)) in tokens.enumerated() {
      arena.bytes.withUnsafeBytes { arena in
        let bucket = shards.keys.bucket(of: arena[token])
        calls.command.begin("HGET")
        calls.command.beginKey("d", bucket)
        calls.command.extend(arena[token])
        calls.command.endArgument()
        calls.command.append("l")
        calls.send(over: shards.shard(of: bucket)) { answer in
          // The judge reports a device that cannot be read. The other devices of the call get their locales.
          if case .failure(let error) = answer, error.code == .faulty { return collected.take(number, .success(nil)) }
          collected.take(number, answer.map { $0.bytes.map { String(decoding: $0, as: UTF8.self) } })
        }
      }
    }
  }

  /// The answers of one call. The callback runs when the last answer has arrived.
  private final class Collected {
    private var locales: [String?]
    private var left: Int
    private var failure: StoreError?
    private let then: (Result<[String?], StoreError>) -> Void

    init(_ count: Int, _ then: @escaping (Result<[String?], StoreError>) -> Void) {
      (locales, left, self.then) = (Array(repeating: nil, count: count), count, then)
    }

    func take(_ number: Int, _ answer: Result<String?, StoreError>) {
      switch answer {
      case .success(let locale): locales[number] = locale
      case .failure(let error): failure = failure ?? error
      }
      left -= 1
      if left == 0 { then(failure.map { .failure($0) } ?? .success(locales)) }
    }
  }
}

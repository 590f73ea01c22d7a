import Notifications
import Redis

/// The locales of devices, as their registrations have them. Loop-confined.
public final class Locales {
  private let shards: Shards
  private let calls = Calls()

  /// Of these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// Reads the locales of devices, in their order; nil for one that has told none, or that is not registered.
  ///
  /// - Parameters:
  ///   - tokens: at least one, each with the arena that it lies in.
  ///   - then: may be called during this call, where it cannot be sent.
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
          // Of a device that cannot be read the judge tells; the others of the call have theirs.
          if case .failure(let error) = answer, error.code == .faulty { return collected.take(number, .success(nil)) }
          collected.take(number, answer.map { $0.bytes.map { String(decoding: $0, as: UTF8.self) } })
        }
      }
    }
  }

  /// The answers of one call: told when the last has come.
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

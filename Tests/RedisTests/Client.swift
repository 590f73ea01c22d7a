import EventLoop
import Redis
import TestSupport
import Testing

/// What became of each call, by its tag.
final class Recorder: RedisReplyHandler {
  private(set) var outcomes: [UInt64: [Result<RedisValue, RedisError>]] = [:]
  private(set) var order: [UInt64] = []
  private var expected = Int.max
  private var waiting: CheckedContinuation<Void, Never>?

  func redisReplied(tag: UInt64, reply: RedisReplyView) { record(tag, .success(reply.value)) }

  func redisFailed(tag: UInt64, error: RedisError) { record(tag, .failure(error)) }

  private func record(_ tag: UInt64, _ outcome: Result<RedisValue, RedisError>) {
    outcomes[tag, default: []].append(outcome)
    order.append(tag)
    if order.count >= expected {
      waiting?.resume()
      waiting = nil
    }
  }

  func wait(for count: Int) async {
    await withCheckedContinuation { continuation in
      if order.count >= count { return continuation.resume() }
      expected = count
      waiting = continuation
    }
  }
}

/// A connection's asynchronous face in the tests: an actor of a loop of its own.
actor Client: LoopActor {
  nonisolated let loop: EventLoop
  private let configuration: RedisConfiguration
  private var connection: RedisConnection?
  private let recorder = Recorder()
  /// `up`, `down` and `failed`, as they happened.
  private(set) var events: [String] = []
  private(set) var attemptErrors: [RedisError] = []
  private(set) var waits: [Int] = []

  init(_ configuration: RedisConfiguration) {
    loop = EventLoop(name: "redis-client")
    self.configuration = configuration
  }

  func start() {
    let connection = RedisConnection(on: loop, configuration)
    connection.onUp = { [unowned self] in self.assumeIsolated { $0.events.append("up") } }
    connection.onDown = { [unowned self] _ in self.assumeIsolated { $0.events.append("down") } }
    connection.onAttemptFailed = { [unowned self] error, wait in
      self.assumeIsolated {
        $0.events.append("failed")
        $0.attemptErrors.append(error)
        $0.waits.append(wait)
      }
    }
    self.connection = connection
    connection.start()
  }

  func open() async throws {
    start()
    try await waitUntilUp()
  }

  func waitUntilUp(_ milliseconds: Int = hangMilliseconds) async throws {
    try await connection?.waitUntilUp(withinMilliseconds: milliseconds)
  }

  func command(_ arguments: RedisArgument...) async throws -> RedisValue { try await someConnection().command(arguments) }

  func call(_ script: RedisScript, _ keys: [RedisArgument], _ arguments: [RedisArgument]) async throws -> RedisValue {
    try await someConnection().call(script, keys: keys, arguments: arguments)
  }

  func someConnection() throws -> RedisConnection {
    guard let connection else { throw RedisError(.closed, "the test did not open it") }
    return connection
  }

  /// Sends the same kind of command for each tag, all in one turn, and answers what became of each.
  func send(_ tags: Range<UInt64>, _ write: @Sendable (inout RedisCommand, UInt64) -> Void) -> [RedisAdmission] {
    guard let connection else { return [] }
    var command = RedisCommand()
    return tags.map { tag in
      write(&command, tag)
      return connection.send(command, to: recorder, tag: tag)
    }
  }

  /// The outcomes by tag, when so many calls have had one.
  func outcomes(of count: Int) async -> [UInt64: [Result<RedisValue, RedisError>]] {
    await recorder.wait(for: count)
    return recorder.outcomes
  }

  var order: [UInt64] { recorder.order }
  var isUp: Bool? { connection?.isUp }
  var epoch: UInt64 { connection?.epoch ?? 0 }
  var inFlight: Int { connection?.inFlight ?? 0 }

  func close() { connection?.close() }

  /// Waits for a condition.
  func wait(_ location: SourceLocation = #_sourceLocation, for condition: @Sendable (isolated Client) -> Bool) async -> Bool {
    await eventually("the condition holds", location) { condition(self) }
  }

  /// A loop is closed from outside.
  nonisolated func end() async {
    await close()
    await loop.close()
  }
}

extension RedisConfiguration {
  /// The same for a machine that stands still for seconds, which must not look like a Redis that does.
  var patient: RedisConfiguration {
    var copy = self
    copy.callDeadlineMilliseconds = hangMilliseconds
    copy.connectDeadlineMilliseconds = hangMilliseconds
    return copy
  }
}

/// Lends a client of a server, not yet started, and ends it.
func withClient<T>(_ configuration: RedisConfiguration, _ body: (Client) async throws -> T) async throws -> T {
  let client = Client(configuration)
  do {
    let result = try await body(client)
    await client.end()
    return result
  } catch {
    await client.end()
    throw error
  }
}

func failure(_ outcome: Result<RedisValue, RedisError>?) -> RedisError? {
  if case .failure(let error) = outcome { error } else { nil }
}

func success(_ outcome: Result<RedisValue, RedisError>?) -> RedisValue? { try? outcome?.get() }

/// The first commands on a new connection, in one write: credentials, name, database, and scripts.
///
/// It ends at the first reply that makes the connection useless, or at the last reply.
final class Greeting: RedisReplyHandler {
  private enum Step: UInt64 {
    case authenticate, select, name, ping, load
  }

  private let configuration: RedisConfiguration
  private let end: (Result<Void, RedisError>) -> Void
  private var missing = 0
  private var isOver = false
  /// What the server has refused without a need to give up. It may close the connection then, as one in protected mode does.
  private(set) var refusal: RedisError?

  /// - Parameter end: called once, unless the connection is lost first.
  init(_ configuration: RedisConfiguration, _ end: @escaping (Result<Void, RedisError>) -> Void) {
    self.configuration = configuration
    self.end = end
  }

  /// Hands out each command with its tag.
  func write(_ send: (borrowing RedisCommand, UInt64) -> Void) {
    var command = RedisCommand()
    func put(_ step: Step, _ words: [RedisArgument]) {
      command.begin()
      command.append(all: words)
      missing += 1
      send(command, step.rawValue)
    }
    let address = configuration.address
    if let password = address.password { put(.authenticate, ["AUTH"] + [address.user, password].compactMap { $0.map { .text($0) } }) }
    if address.database != 0 { put(.select, ["SELECT", .integer(Int64(address.database))]) }
    put(.name, ["CLIENT", "SETNAME", .text(configuration.clientName)])
    put(.ping, ["PING"])
    for script in configuration.scripts { put(.load, script.load) }
  }

  func redisReplied(tag: UInt64, reply: RedisReplyView) {
    // A server that is loading its data set, or is not a Redis, shows here.
    if tag == Step.ping.rawValue, !reply.equals("PONG") {
      return finish(.failure(RedisError(.protocolViolation, "\(configuration.address) does not answer PING with PONG; is it a Redis?")))
    }
    if tag == Step.load.rawValue, reply.kind != .bytes {
      return finish(.failure(RedisError(.protocolViolation, "\(configuration.address) does not answer SCRIPT LOAD as Redis does")))
    }
    count()
  }

  func redisFailed(tag: UInt64, error: RedisError) {
    switch (Step(rawValue: tag), error.code) {
    // The connection says so itself.
    case (_, .connectionLost), (_, .timedOut), (_, .closed): isOver = true
    // Managed services forbid one or the other. Neither is essential.
    case (.name, .rejected), (.name, .noPermission), (.ping, .noPermission):
      refusal = error
      count()
    default: finish(.failure(explained(error, Step(rawValue: tag))))
    }
  }

  private func explained(_ error: RedisError, _ step: Step?) -> RedisError {
    var error = error
    switch (step, error.code) {
    case (_, .authenticationFailed):
      error.message = "\(configuration.address) refuses user and password (\(error.message)); check them in the Redis address"
    // The server may repeat an unknown command in its error, and with it the password.
    case (.authenticate, .rejected): error.message = "\(configuration.address) does not take AUTH with user and password"
    case (.select, _): error.message = "\(configuration.address) has no such database (\(error.message))"
    case (.load, .rejected): error.message = "a script does not load into \(configuration.address) (\(error.message))"
    default: break
    }
    return error
  }

  private func count() {
    missing -= 1
    if missing == 0 { finish(.success(())) }
  }

  private func finish(_ result: Result<Void, RedisError>) {
    guard !isOver else { return }
    isOver = true
    end(result)
  }
}

extension RedisScript {
  /// The command that loads it.
  var load: [RedisArgument] { ["SCRIPT", "LOAD", .text(source)] }
}

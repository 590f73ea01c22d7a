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
    func put(_ step: Step) {
      missing += 1
      send(command, step.rawValue)
    }
    if let password = configuration.address.password {
      command.begin("AUTH")
      if let user = configuration.address.user { command.append(user) }
      command.append(password)
      put(.authenticate)
    }
    if configuration.address.database != 0 {
      command.begin("SELECT")
      command.append(configuration.address.database)
      put(.select)
    }
    command.begin("CLIENT")
    command.append("SETNAME")
    command.append(configuration.clientName)
    put(.name)
    command.begin("PING")
    put(.ping)
    for script in configuration.scripts {
      command.beginLoad(script)
      put(.load)
    }
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

extension RedisCommand {
  /// Writes the command that loads a script.
  mutating func beginLoad(_ script: RedisScript) {
    begin("SCRIPT")
    append("LOAD")
    append(script.source)
  }
}

import EventLoop
public import JSON

/// A component's logger: a value, free to copy and to pass to any thread.
///
///     logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": wait])
///
/// The message is a constant, so that lines can be counted, searched and limited by it. The fields vary. Below the level nothing of a line
/// is computed. The writer's thread writes the line, so logging never waits for a disk or a terminal. Never put secrets into fields.
public struct Logger: Sendable {
  private let writer: LogWriter?
  private let component: String
  private let context: [(name: String, value: any JSONRepresentable)]

  /// Makes a logger on a writer.
  ///
  /// - Parameter component: the component's name: `fan-out`, `kafka`.
  public init(_ writer: LogWriter, component: String) { self.init(writer, component, []) }

  private init(_ writer: LogWriter?, _ component: String, _ context: [(name: String, value: any JSONRepresentable)]) {
    self.writer = writer
    self.component = component
    self.context = context
  }

  /// A logger that drops all lines, for tests and tools.
  public static let silent = Logger(nil, "", [])

  /// Makes a logger for another component.
  public func with(component: String) -> Logger { Logger(writer, component, context) }

  /// Makes a logger with fields that each line begins with: `["lane": "fan-out-0"]`.
  public func with(_ fields: KeyValuePairs<String, any JSONRepresentable>) -> Logger {
    Logger(writer, component, context + fields.map { (name: $0.key, value: $0.value) })
  }

  /// Whether lines of this level are written.
  public func isOn(_ level: LogLevel) -> Bool { writer.map { level >= $0.level } ?? false }

  /// Logs at the level `debug`.
  public func debug(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any JSONRepresentable> = [:]) {
    log(.debug, message, fields())
  }

  /// Logs at the level `info`.
  public func info(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any JSONRepresentable> = [:]) {
    log(.info, message, fields())
  }

  /// Logs at the level `warning`.
  public func warning(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any JSONRepresentable> = [:]) {
    log(.warning, message, fields())
  }

  /// Logs at the level `error`.
  public func error(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any JSONRepresentable> = [:]) {
    log(.error, message, fields())
  }

  /// Logs at the level `info` a line that is never summed up with others: of an access log.
  public func access(_ message: StaticString, _ fields: @autoclosure () -> [(name: String, value: any JSONRepresentable)]) {
    if isOn(.info) { submit(.info, message, fields(), isLimited: false) }
  }

  /// Logs one line.
  ///
  /// - Parameter kind: distinguishes lines of the same message for the limit, for example by a library's facility.
  public func log(
    _ level: LogLevel, _ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any JSONRepresentable>, kind: String = ""
  ) {
    if isOn(level) { submit(level, message, fields().map { (name: $0.key, value: $0.value) }, kind: kind) }
  }

  private func submit(
    _ level: LogLevel, _ message: StaticString, _ fields: [(name: String, value: any JSONRepresentable)], kind: String = "",
    isLimited: Bool = true
  ) {
    writer?.submit(
      LogLine(
        time: WallClock.milliseconds(), level: level, component: component, message: message.description, kind: kind,
        fields: context + fields, isLimited: isLimited))
  }
}

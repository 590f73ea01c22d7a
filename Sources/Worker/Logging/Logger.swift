import EventLoop

/// What a component of the program logs with: a value, free to copy and to pass to any thread.
///
///     logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": wait])
///
/// The message is a constant, so that lines can be counted, searched and limited by it; what varies are the fields. Nothing of a line
/// that is below the level is computed. A line is handed to the writer's thread: logging never waits for a disk or a terminal.
/// Secrets do not belong into fields.
public struct Logger: Sendable {
  private let writer: LogWriter
  private let component: String
  private let context: [(name: String, value: any LogValue)]

  /// Logs to a writer.
  ///
  /// - Parameter component: who says it: `fan-out`, `kafka`.
  public init(_ writer: LogWriter, component: String) { self.init(writer, component, []) }

  private init(_ writer: LogWriter, _ component: String, _ context: [(name: String, value: any LogValue)]) {
    self.writer = writer
    self.component = component
    self.context = context
  }

  /// A logger that says nothing, for tests and tools.
  public static let silent = Logger(LogWriter.discarding, component: "")

  /// The same for another component.
  public func with(component: String) -> Logger { Logger(writer, component, context) }

  /// The same with fields that every line has, before its own: `["lane": "fan-out-0"]`.
  public func with(_ fields: KeyValuePairs<String, any LogValue>) -> Logger {
    Logger(writer, component, context + fields.map { (name: $0.key, value: $0.value) })
  }

  /// Whether lines of this level are written.
  public func isOn(_ level: LogLevel) -> Bool { writer.level.map { level >= $0 } ?? false }

  /// Logs at the level `debug`.
  public func debug(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:]) {
    log(.debug, message, fields())
  }

  /// Logs at the level `info`.
  public func info(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:]) {
    log(.info, message, fields())
  }

  /// Logs at the level `warning`.
  public func warning(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:]) {
    log(.warning, message, fields())
  }

  /// Logs at the level `error`.
  public func error(_ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any LogValue> = [:]) {
    log(.error, message, fields())
  }

  /// Logs one line.
  ///
  /// - Parameter kind: tells lines with one message apart where they are limited, such as the facility of a library's log.
  public func log(
    _ level: LogLevel, _ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any LogValue>, kind: String = ""
  ) {
    guard isOn(level) else { return }
    writer.submit(
      LogLine(
        time: WallClock.milliseconds(), level: level, component: component, message: message.description, kind: kind,
        fields: context + fields().map { (name: $0.key, value: $0.value) }))
  }
}

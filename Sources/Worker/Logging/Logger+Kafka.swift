public import Kafka

extension Logger {
  /// Logs a line of librdkafka at its level; limited for each facility.
  public func log(_ line: KafkaLogLine) {
    let level: LogLevel = line.severity <= 3 ? .error : line.severity <= 4 ? .warning : line.severity <= 6 ? .info : .debug
    log(level, "librdkafka", ["facility": line.facility, "text": line.message], kind: line.facility)
  }
}

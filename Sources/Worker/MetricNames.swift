/// Every metric that Carillon shows, as a table for operators.
public enum MetricNames {
  /// When the process began.
  public static let processStart = Metric<Gauge>("process_start_time_seconds", "When the process began, in seconds since 1970.")
  /// What was built.
  public static let build = Metric<Gauge>("carillon_build_info", "Always 1; the labels say what was built.", labels: ["version", "role"])
  /// Lines that the log had no room for.
  public static let logLinesDropped = Metric<Counter>(
    "carillon_log_lines_dropped_total", "Log lines dropped because they were not read as fast as they were written.")
}

extension MetricRegistry {
  /// Shows what every process has.
  public func showProcess(version: String, role: String, log: LogWriter) {
    make(MetricNames.processStart).set(Double(WallClock.milliseconds()) / 1000)
    make(MetricNames.build, version, role).set(1)
    show(MetricNames.logLinesDropped) { Double(log.dropped) }
  }
}

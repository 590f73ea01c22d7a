/// The exit code of the program, with one meaning for all subcommands.
public enum ExitCode: Int32, Sendable {
  /// The command did its work.
  case done = 0
  /// The command worked, and the answer is no: a violation found, nothing to show.
  case answerIsNo = 1
  /// Wrong usage or configuration: the same command line fails again.
  case wrongUsage = 2
  /// A dependency is missing: Kafka, Redis, a server, or a reader or disk space for the standard output.
  case dependencyMissing = 3
}

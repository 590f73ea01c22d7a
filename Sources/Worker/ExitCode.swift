/// What the command's end says to the shell, the same for every subcommand.
public enum ExitCode: Int32, Sendable {
  /// It did what was asked.
  case done = 0
  /// It worked, and the answer is no: a violation found, nothing to show.
  case answerIsNo = 1
  /// Wrong usage or configuration: trying again as it stands is useless.
  case wrongUsage = 2
  /// Something it depends on is not there: Kafka, Redis, a server, somebody or some room for its standard output.
  case dependencyMissing = 3
}

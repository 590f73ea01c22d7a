import Worker

/// Why a command ends without having done what was asked, in words for the person who typed it.
struct Failure: Error, CustomStringConvertible {
  /// What the shell is told.
  let code: ExitCode
  /// What is wrong and what to do, in one line.
  let description: String

  init(_ code: ExitCode, _ description: String) {
    self.code = code
    self.description = description
  }
}

import EventLoop
import Worker

/// Why a command has failed, in words for the person who typed it.
struct Failure: Error, CustomStringConvertible {
  /// The exit code.
  let code: ExitCode
  /// What is wrong and what to do, in one line.
  let description: String

  init(_ code: ExitCode, _ description: String) {
    self.code = code
    self.description = description
  }

  /// The same failure with a name before it.
  func named(_ name: String) -> Failure { Failure(code, "\(name): \(description)") }
}

extension SettingValues {
  /// Runs code for a setting, such as reading its file. A failure begins with the setting's name.
  func naming<Value, Done>(_ setting: Setting<Value>, _ body: () throws(Failure) -> Done) throws(Failure) -> Done {
    do throws(Failure) { return try body() } catch { throw error.named(name(of: setting)) }
  }

  /// Listens where a setting says. An error begins with the setting's name.
  func listening<Value, Done>(by setting: Setting<Value>, _ body: () async throws -> Done) async throws -> Done {
    do { return try await body() } catch let error as EventLoopError {
      throw Failure(Program.exitCode(of: error), "\(error)").named(name(of: setting))
    }
  }
}

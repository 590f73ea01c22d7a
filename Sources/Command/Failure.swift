import EventLoop
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

  /// The same, beginning with a name.
  func named(_ name: String) -> Failure { Failure(code, "\(name): \(description)") }
}

extension SettingValues {
  /// Does what a setting asks for, such as reading its file; a failure begins with the setting's name.
  func naming<Value, Done>(_ setting: Setting<Value>, _ body: () throws(Failure) -> Done) throws(Failure) -> Done {
    do throws(Failure) { return try body() } catch { throw error.named(name(of: setting)) }
  }

  /// Listens where a setting says; where that is not possible the error begins with the setting's name.
  func listening<Value, Done>(by setting: Setting<Value>, _ body: () async throws -> Done) async throws -> Done {
    do { return try await body() } catch let error as EventLoopError {
      throw Failure(Program.exitCode(of: error), "\(error)").named(name(of: setting))
    }
  }
}

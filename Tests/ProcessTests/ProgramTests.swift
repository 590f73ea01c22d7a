import Glibc
import Testing
import Worker

@testable import Command

@Suite struct ProgramTests {
  /// `exit` would take C libraries down under threads that still use them.
  @Test func `the program ends without the exit handlers of C libraries`() async {
    await #expect(processExitsWith: .exitCode(ExitCode.wrongUsage.rawValue)) {
      atexit { _exit(99) }
      // The arguments are those of the test, which the program does not know.
      await Program.main()
    }
  }
}

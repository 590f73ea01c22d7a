import EventLoop
import Glibc
import Testing
import ThreadsLeft

@Suite struct ThreadsLeftTests {
  @Test func `a named thread that is left at the end fails the run of the tests`() async throws {
    let result = try await #require(processExitsWith: .exitCode(EXIT_FAILURE), observing: [\.standardErrorContent]) {
      threads_left_wait(1)
      try await EventLoop(name: "forgotten").run {}
      try await EventLoop(name: "second").run {}
      exit(EXIT_SUCCESS)
    }
    let errors = String(decoding: result.standardErrorContent, as: UTF8.self)
    #expect(errors.contains("threads are left at the end of the tests") && errors.contains("forgotten") && errors.contains("second"))
  }

  @Test func `a run whose threads have all ended succeeds`() async {
    await #expect(processExitsWith: .success) {
      let loop = EventLoop(name: "closed")
      try await loop.run {}
      await loop.close()
      exit(EXIT_SUCCESS)
    }
  }
}

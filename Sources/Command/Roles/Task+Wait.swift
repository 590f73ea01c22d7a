extension Task where Success == Void, Failure == Never {
  /// Waits for its end, and no longer than until then: it may hang with a file system, and goes on for whatever that is worth.
  func wait(until end: ContinuousClock.Instant) async {
    let (ends, ended) = AsyncStream<Never>.makeStream()
    Task {
      await value
      ended.finish()
    }
    Task {
      try? await Task<Never, Never>.sleep(until: end, clock: .continuous)
      ended.finish()
    }
    for await _ in ends {}
  }
}

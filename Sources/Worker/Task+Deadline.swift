extension Task where Failure == Never {
  /// What it finds until then; nil where it has found nothing yet.
  ///
  /// For work that may hang, with a file system or with somebody who does not answer: it is not cancelled, and goes on for whatever that
  /// is worth. Whoever wants to know later asks again; whoever only waits for its end lets the answer go.
  ///
  /// - Parameter end: when it is waited for no longer.
  @discardableResult public func value(by end: ContinuousClock.Instant) async -> Success? {
    let (values, found) = AsyncStream<Success>.makeStream(bufferingPolicy: .bufferingOldest(1))
    Task<Void, Never> {
      found.yield(await value)
      found.finish()
    }
    let clock = Task<Void, Never> {
      try? await Task<Never, Never>.sleep(until: end, clock: .continuous)
      found.finish()
    }
    defer { clock.cancel() }
    for await value in values { return value }
    return nil
  }
}

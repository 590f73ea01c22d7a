extension Task where Failure == Never {
  /// Waits for the result until a deadline; nil if it is not there by then.
  ///
  /// For work that may hang in a file system or on a silent peer. The task is not cancelled and continues. The caller may ask again later.
  ///
  /// - Parameter end: the deadline.
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

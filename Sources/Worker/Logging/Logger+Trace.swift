import Notifications

extension Logger {
  /// The same with the trace that a request belongs to, so that its lines are found with the rest of the trace; the same where it has none.
  ///
  /// The fields are `trace_id` and `span_id`, as OpenTelemetry names them in logs of other formats.
  ///
  /// - Parameter traceparent: what `TraceParent.carried` gave; empty for none.
  public func with(trace traceparent: UnsafeRawBufferPointer) -> Logger {
    guard let trace = TraceParent.identifiers(traceparent) else { return self }
    return with(["trace_id": trace.trace, "span_id": trace.span])
  }
}

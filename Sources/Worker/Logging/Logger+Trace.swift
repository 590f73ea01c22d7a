import Notifications

extension Logger {
  /// Makes a logger whose lines carry a request's trace. Without a trace it is the same logger.
  ///
  /// The fields are `trace_id` and `span_id`, as OpenTelemetry names them in logs of other formats.
  ///
  /// - Parameter traceparent: the result of `TraceParent.carried`; empty for none.
  public func with(trace traceparent: UnsafeRawBufferPointer) -> Logger {
    guard let trace = TraceParent.identifiers(traceparent) else { return self }
    return with(["trace_id": trace.trace, "span_id": trace.span])
  }
}

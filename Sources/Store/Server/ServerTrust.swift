import EventLoop

/// Whether workers may rely on Redis to keep their data, judged by its reports. A value.
public struct ServerTrust: Sendable {
  /// The judgement on one report.
  public enum Judgement: Sendable, Hashable {
    /// The server keeps what workers write.
    case suitable
    /// The server may lose what workers write, for this reason.
    case unsuitable(String)
    /// The server is suitable now, but has evicted this many keys since the last suitable report.
    case evicted(Int64)
  }

  /// The message about an eviction, for operators.
  public static func evictionReport(_ keys: Int64) -> String {
    "Redis has evicted \(ReadableText.count(keys, "key")) for lack of memory; give it more, then empty it and run 'carillon rebuild'"
  }

  private var known: (run: String?, evicted: Int64)?
  /// Evicted keys that no judgement has reported yet.
  private var untold: Int64 = 0

  /// A server before its first report.
  public init() {}

  /// Judges one report of the server.
  ///
  /// Keys that it evicted before the first report do not count: no worker relied on it then.
  ///
  /// - Parameter further: a further reason not to use the server now.
  public mutating func judge(_ state: ServerState, objection further: String? = nil) -> Judgement {
    if let evicted = state.evictedKeys {
      // Another server or process starts from zero, as at the first report: the callers had written nothing to it.
      if let known, known.run == state.runIdentifier {
        // If somebody has reset the counts, they start from zero.
        untold += known.evicted <= evicted ? evicted - known.evicted : evicted
      }
      known = (state.runIdentifier, evicted)
    }
    if let objection = state.objection ?? further { return .unsuitable(objection) }
    guard untold > 0 else { return .suitable }
    defer { untold = 0 }
    return .evicted(untold)
  }
}

import EventLoop

/// Whether Redis may be relied on to keep what it is given, judged by each state that it tells. A value.
public struct ServerTrust: Sendable {
  /// What a state says.
  public enum Judgement: Sendable, Hashable {
    /// It keeps what it is given.
    case suitable
    /// It would not, for this reason; what is written to it now may be gone later.
    case unsuitable(String)
    /// It does now, and has thrown away so many keys since it was last found suitable.
    case evicted(Int64)
  }

  /// An eviction in words, for whoever has to do something about it.
  public static func evictionReport(_ keys: Int64) -> String {
    "Redis has thrown away \(ReadableText.count(keys, "key")) for want of memory; give it more, then empty it and run 'carillon rebuild'"
  }

  private var known: (run: String?, evicted: Int64)?
  /// Keys thrown away that no judgement has told of.
  private var untold: Int64 = 0

  /// Of a server that has told nothing yet.
  public init() {}

  /// Judges the state that it tells now.
  ///
  /// What it had thrown away before the first state is not counted: nobody relied on it then.
  ///
  /// - Parameter further: why the server must not be worked with now, though it says nothing against it.
  public mutating func judge(_ state: ServerState, objection further: String? = nil) -> Judgement {
    if let evicted = state.evictedKeys {
      // Of another server, or another process of it, as at the first look: what it threw away was not given to it by those who ask now.
      if let known, known.run == state.runIdentifier {
        // One whose counts somebody has reset counts from zero.
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

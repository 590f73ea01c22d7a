/// A closure that runs at the end of every turn, until it or the loop is closed.
public final class TurnEnd {
  /// Nil when it is closed.
  private(set) var body: (() -> Void)?

  init(_ body: @escaping () -> Void) { self.body = body }

  /// Stops running it.
  public func close() { body = nil }
}

/// A closure that runs at the end of every turn, until it or the loop is closed. Loop-confined.
public final class TurnEnd {
  let body: () -> Void
  private weak var core: LoopCore?

  init(_ core: LoopCore, _ body: @escaping () -> Void) {
    self.core = core
    self.body = body
  }

  /// Stops running it.
  public func close() { core?.turnEnds.removeAll { $0 === self } }
}

/// Something that runs at the end of every turn of a loop, until it is closed or the loop is: loop-confined.
public final class TurnEnd {
  let body: () -> Void
  private weak var core: LoopCore?

  init(_ core: LoopCore, _ body: @escaping () -> Void) {
    self.core = core
    self.body = body
  }

  /// Runs it no more.
  public func close() { core?.turnEnds.removeAll { $0 === self } }
}

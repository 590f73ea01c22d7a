/// An actor whose executor is an event loop.
public protocol LoopActor: Actor {
  /// The actor's loop.
  nonisolated var loop: EventLoop { get }
}

extension LoopActor {
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
}

/// Tasks that wait on a loop until something has happened.
public final class LoopWaiters {
  private let loop: EventLoop
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Makes an empty list; call it on the loop.
  public init(on loop: EventLoop) { self.loop = loop }

  /// Waits until a condition is true, or until the time is over. Call it from a task on the loop.
  ///
  /// - Parameters:
  ///   - milliseconds: with 0 it waits for one turn, in which streams write.
  ///   - isOver: asked at the beginning, and again after each `look`.
  public func wait(withinMilliseconds milliseconds: Int = .max, until isOver: () -> Bool) async {
    guard !isOver() else { return }
    var isLate = false
    let timer = Timer(on: loop, after: milliseconds) { [self] in
      isLate = true
      look()
    }
    while !isLate, !isOver() {
      await withCheckedContinuation { continuation in
        // Checked here, since other tasks may run between a check and an await.
        if isLate || isOver() { continuation.resume() } else { waiting.append(continuation) }
      }
    }
    timer.close()
  }

  /// Makes each waiting task ask for its condition again.
  public func look() {
    guard !waiting.isEmpty else { return }
    let all = waiting
    waiting = []
    for continuation in all { continuation.resume() }
  }
}

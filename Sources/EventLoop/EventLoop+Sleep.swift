extension EventLoop {
  /// Waits so long on the loop; call it from a task of one of its actors.
  public func sleep(milliseconds: Int) async {
    preconditionOnLoop()
    let timer = Timer(on: self)
    await withCheckedContinuation { continuation in
      timer.handler = { continuation.resume() }
      timer.start(after: milliseconds)
    }
    timer.close()
  }
}

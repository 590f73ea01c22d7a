#if Jemalloc
  import CJemalloc

  /// The process allocates with jemalloc, which is linked into it, also in librdkafka, hiredis and Swift's runtime.
  ///
  /// A request costs some thirty allocations of a few dozen bytes. They are made on the lane's thread and freed on librdkafka's, or vice
  /// versa. The thread caches of jemalloc suit that.
  enum Allocator {
    /// Makes jemalloc return memory to the system soon, from a thread of its own. Call it before lanes are started.
    ///
    /// The memory of many hellos or of a backlog is returned a second after its last use, not after ten. Batches use the same pages again
    /// within milliseconds. Without the thread, memory is only returned during allocations, so an idle worker would keep the memory of its
    /// busiest moment. The thread sleeps while there is nothing to return.
    static func returnMemoryWhenIdle() {
      var milliseconds = 1_000
      // The arenas of future threads, and the existing arena of the first thread.
      for name in ["arenas.dirty_decay_ms", "arena.0.dirty_decay_ms"] {
        _ = mallctl(name, nil, nil, &milliseconds, MemoryLayout<Int>.size)
      }
      var isOn = true
      // It fails if no thread can be started. Then memory is returned later.
      _ = mallctl("background_thread", nil, nil, &isOn, MemoryLayout<Bool>.size)
    }
  }
#else
  /// The process uses the allocator of the C library or of a sanitizer.
  enum Allocator {
    /// Does nothing.
    static func returnMemoryWhenIdle() {}
  }
#endif

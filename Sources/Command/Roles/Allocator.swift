#if Jemalloc
  import CJemalloc

  /// The process allocates with jemalloc, also in librdkafka, hiredis and Swift's runtime: its malloc takes the place of the C library's
  /// because the program is linked with it.
  ///
  /// A request costs some thirty allocations of a few dozen bytes, made on the lane's thread and freed on librdkafka's or the other way
  /// round, which is what its thread caches are good at.
  enum Allocator {
    /// Has jemalloc return memory to the system soon, and from a thread of its own; call it before lanes are started.
    ///
    /// What a storm of hellos or a backlog took goes back a second after it was used last, not ten as by default; batches use the same
    /// pages again within milliseconds. Without the thread this happens only while something is allocated, so a worker would keep what its
    /// busiest moment took for as long as it is idle. The thread sleeps while there is nothing to return.
    static func returnMemoryWhenIdle() {
      var milliseconds = 1_000
      // Of the arenas that threads will use, and of the first thread's, which is there.
      for name in ["arenas.dirty_decay_ms", "arena.0.dirty_decay_ms"] {
        _ = mallctl(name, nil, nil, &milliseconds, MemoryLayout<Int>.size)
      }
      var isOn = true
      // It fails where no thread can be started; then memory goes back later.
      _ = mallctl("background_thread", nil, nil, &isOn, MemoryLayout<Bool>.size)
    }
  }
#else
  /// The process allocates with what the C library or a sanitizer brings.
  enum Allocator {
    /// Nothing is to be done.
    static func returnMemoryWhenIdle() {}
  }
#endif

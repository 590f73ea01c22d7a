#if Jemalloc
  import CJemalloc

  /// The process allocates with jemalloc, also in librdkafka, hiredis and Swift's runtime: its malloc takes the place of the C library's
  /// because the program is linked with it.
  ///
  /// A request costs some thirty allocations of a few dozen bytes, made on the lane's thread and freed on librdkafka's or the other way
  /// round, which is what its thread caches are good at.
  enum Allocator {
    /// Has jemalloc return memory to the system from a thread of its own.
    ///
    /// An unused page goes back ten seconds after it was used last (`dirty_decay_ms`, the default: a shorter time costs a page fault for
    /// each batch). Without the thread this happens only while something is allocated, so a worker would keep what its busiest moment took for as long as it is idle.
    /// The thread sleeps while there is nothing to return.
    static func returnMemoryWhenIdle() {
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

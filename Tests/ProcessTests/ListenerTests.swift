import EventLoop
import Glibc
import Testing

@Suite struct ListenerTests {
  /// In a process of its own, which has no descriptor left for a while.
  @Test func `a connection for which there is no descriptor is accepted later, and nothing spins until then`() async {
    await #expect(processExitsWith: .success) {
      let loop = EventLoop(name: "full")
      let (accepted, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
      let port = try await loop.run {
        let listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
          continuation.yield()
          stream.close()
        }
        return listener.localAddress.port
      }
      let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var limit = rlimit(rlim_cur: rlim_t(client) + 20, rlim_max: rlim_t(client) + 20)
      try #require(setrlimit(__rlimit_resource_t(UInt32(RLIMIT_NOFILE.rawValue)), &limit) == 0)
      var taken: [Int32] = []
      while true {
        let copy = dup(client)
        if copy < 0 { break }
        taken.append(copy)
      }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(UInt16(port)).bigEndian
      address.sin_addr.s_addr = inet_addr("127.0.0.1")
      let connected = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
      }
      try #require(connected == 0)
      let (turns, began) = (loop.turns, SteadyClock.milliseconds())
      // Half a second; what Swift sleeps with needs a descriptor when it is used first.
      poll(nil, 0, 500)
      #expect(loop.turns - turns < 50 + UInt64(SteadyClock.milliseconds() - began) / 20)
      for descriptor in taken { close(descriptor) }
      for await _ in accepted { break }
      close(client)
      await loop.close()
    }
  }
}

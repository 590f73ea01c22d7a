public import EventLoop
import Glibc
import Synchronization

/// The lock files of the ports that this process has; held open until it ends.
private let reserved = Mutex<[Int32]>([])
private let folder = "/tmp/carillon-test-ports"

/// A port of 127.0.0.1 that nobody listens at, for what listens again at the same place.
///
/// It lies below those that the system gives to connections and to whoever asks for any port, and below those of `Deploy/kafka`. A lock on a
/// file keeps it for this process, so that no other test takes it while nobody listens there.
public func freePort(on loop: EventLoop) async throws -> Int {
  mkdir(folder, 0o777)
  chmod(folder, 0o1777)
  for port in (15_000..<20_000).shuffled() where reserve(port) {
    do {
      try await loop.run { try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: port)) { $0.close() }.close() }
      return port
    } catch let error as EventLoopError where error.code == .addressInUse {
      continue
    }
  }
  throw ClusterFailure("no port from 15000 to 19999 is free, or \(folder) cannot be written")
}

/// Locks the port's file; false when another process, or this one, has it.
private func reserve(_ port: Int) -> Bool {
  let file = open("\(folder)/\(port)", O_RDONLY | O_CREAT | O_CLOEXEC, 0o644)
  guard file >= 0 else { return false }
  guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
    close(file)
    return false
  }
  reserved.withLock { $0.append(file) }
  return true
}

import CUV
import Glibc

/// Looks up names without blocking the loop: libuv asks the system's resolver on another thread.
public enum Resolver {
  private final class Lookup {
    var request = uv_getaddrinfo_t()
    var answer: ((Result<[SocketAddress], EventLoopError>) -> Void)?
    let address: SocketAddress

    init(_ address: SocketAddress, _ answer: @escaping (Result<[SocketAddress], EventLoopError>) -> Void) {
      self.address = address
      self.answer = answer
    }
  }

  /// Looks up the numeric addresses of a host, in the resolver's order. A numeric host is its own answer.
  ///
  /// Call it on the loop. `answer` is called once on the loop; for a name, never inside this call.
  public static func resolve(
    _ address: SocketAddress, on loop: EventLoop, _ answer: @escaping (Result<[SocketAddress], EventLoopError>) -> Void
  ) {
    loop.preconditionOnLoop()
    if address.withNumeric({ _ in true }) != nil { return answer(.success([address])) }
    let request = UnsafeMutablePointer<uv_getaddrinfo_t>.allocate(capacity: 1)
    request.initialize(to: uv_getaddrinfo_t())
    request.pointee.data = Unmanaged.passRetained(Lookup(address, answer)).toOpaque()
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    let result = uv_getaddrinfo(
      loop.uv, request,
      { request, status, list in
        guard let request, let data = request.pointee.data else { return }
        let lookup = Unmanaged<Lookup>.fromOpaque(data).takeRetainedValue()
        request.deallocate()
        defer { uv_freeaddrinfo(list) }
        lookup.answer?(
          status < 0 ? .failure(EventLoopError(status, "look up \(lookup.address.host)")) : Resolver.addresses(list, lookup.address))
      }, address.host, String(address.port), &hints)
    if result < 0, let data = request.pointee.data {
      Unmanaged<Lookup>.fromOpaque(data).release()
      request.deallocate()
      answer(.failure(EventLoopError(result, "look up \(address.host)")))
    }
  }

  private static func addresses(_ list: UnsafeMutablePointer<addrinfo>?, _ asked: SocketAddress) -> Result<[SocketAddress], EventLoopError>
  {
    var found: [SocketAddress] = []
    var next = list
    while let entry = next {
      if let raw = entry.pointee.ai_addr, let address = SocketAddress(raw), !found.contains(address) { found.append(address) }
      next = entry.pointee.ai_next
    }
    if found.isEmpty {
      return .failure(EventLoopError(code: .hostNotFound, operation: "look up \(asked.host)", message: "it has no address"))
    }
    return .success(found)
  }

  /// Looks up the numeric addresses of a host, in the resolver's order.
  ///
  /// Call it from a task on the loop.
  public static func resolve(_ address: SocketAddress, on loop: EventLoop) async throws(EventLoopError) -> [SocketAddress] {
    let result = await withCheckedContinuation { (continuation: CheckedContinuation<Result<[SocketAddress], EventLoopError>, Never>) in
      resolve(address, on: loop) { continuation.resume(returning: $0) }
    }
    return try result.get()
  }
}

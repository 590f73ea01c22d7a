import CUV
import Glibc

/// Looks up names without blocking the loop: libuv asks the system's resolver on another thread.
public enum Resolver {
  private typealias Answer = (Result<[SocketAddress], EventLoopError>) -> Void

  /// Looks up the numeric addresses of a host, in the resolver's order. A numeric host is its own answer.
  ///
  /// Call it on the loop. `answer` is called once on the loop; for a name, never inside this call.
  public static func resolve(
    _ address: SocketAddress, on loop: EventLoop, _ answer: @escaping (Result<[SocketAddress], EventLoopError>) -> Void
  ) {
    loop.preconditionOnLoop()
    if address.withNumeric({ _ in true }) != nil { return answer(.success([address])) }
    let request: UnsafeMutablePointer<uv_getaddrinfo_t> = makeRequest(keeping: (address, answer))
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    let result = uv_getaddrinfo(
      loop.uv, request,
      { request, status, list in
        defer { uv_freeaddrinfo(list) }
        guard let (address, answer) = takeRequest(request, keeping: (SocketAddress, Answer).self) else { return }
        answer(status < 0 ? .failure(EventLoopError(status, "look up \(address.host)")) : Resolver.addresses(list, address))
      }, address.host, String(address.port), &hints)
    if result < 0 {
      takeRequest(request, keeping: (SocketAddress, Answer).self)
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

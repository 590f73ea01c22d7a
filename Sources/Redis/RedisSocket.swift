import CHiredis
import Cryptography
import Glibc

/// A connection's descriptor and the parser of its replies: the owner of a `redisContext`.
///
/// It uses hiredis' plain context in its non-blocking form, driven by the loop. hiredis' asynchronous context would abort the process on an
/// unexpected reply, and allocate for each call.
final class RedisSocket {
  private let context: UnsafeMutablePointer<redisContext>
  private let functions = UnsafeMutablePointer<redisReplyObjectFunctions>.allocate(capacity: 1)
  /// Between the socket and the parser; nil without TLS.
  private let secure: SecureBytes?

  /// A longer reply is a protocol violation.
  private static let longestReply = 512 << 20
  /// So is an array of more elements: hiredis allocates as many as are announced.
  private static let maximumElements: Int32 = 1 << 22

  private static let closedEarly =
    "Redis closed the connection before TLS began; does that port take TLS, and fewer clients than maxclients?"

  /// Begins to connect. The descriptor becomes writable when that has succeeded or failed.
  ///
  /// - Parameters:
  ///   - endpoint: with a numeric host, since looking up a name would block.
  ///   - secure: the TLS, which begins when the connection is made; nil for none.
  init(connectingTo endpoint: RedisAddress.Endpoint, _ secure: SecureBytes?) throws(RedisError) {
    self.secure = secure
    let made: UnsafeMutablePointer<redisContext>?
    switch endpoint {
    case .tcp(let host, let port): made = redisConnectNonBlock(host, Int32(port))
    case .unix(let path): made = redisConnectUnixNonBlock(path)
    }
    guard let made, let reader = made.pointee.reader, let original = reader.pointee.fn else {
      functions.deallocate()
      throw RedisError(.unreachable, "no memory for a connection to Redis")
    }
    context = made
    functions.initialize(to: original.pointee)
    functions.pointee.createArray = { task, elements in
      guard let task, elements <= RedisSocket.maximumElements,
        let original = task.pointee.privdata?.assumingMemoryBound(to: redisReplyObjectFunctions.self)
      else { return nil }
      return original.pointee.createArray(task, elements)
    }
    reader.pointee.privdata = UnsafeMutableRawPointer(original)
    reader.pointee.fn = functions
    // hiredis leaves the descriptor open in child processes, and the connection is authenticated.
    if made.pointee.fd >= 0 { _ = fcntl(made.pointee.fd, F_SETFD, FD_CLOEXEC) }
    if made.pointee.err != 0 { throw RedisError(.unreachable, failureText) }
    if case .tcp = endpoint { redisEnableKeepAlive(made) }
  }

  deinit {
    // The functions free the context, so they are removed last.
    redisFree(context)
    functions.deallocate()
  }

  var descriptor: Int32 { context.pointee.fd }

  /// The system's reason for a failed connection; nil if it succeeded.
  func connectFailure() -> String? {
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else { return String(cString: strerror(errno)) }
    return code == 0 ? nil : String(cString: strerror(code))
  }

  /// Whether the connection is made, but TLS has not begun.
  private(set) var isShakingHands = false

  /// Takes the next step of the handshake of TLS, once the connection is made. Without TLS there is none.
  func shakeHands() throws(RedisError) {
    guard let secure else { return }
    isShakingHands = true
    do throws(RedisError) { _ = try fill() } catch {
      // The server is told why.
      if error.code == .tlsFailed { try? writeSecured(secure) }
      // One that closes after the handshake may have said why.
      guard error.code == .connectionLost, secure.session.isReady else { throw error }
    }
    isShakingHands = !secure.session.isReady
    try writeSecured(secure)
  }

  /// Whether accepted bytes still wait for the kernel.
  var hasUnsent: Bool { secure.map { !$0.unsent.isEmpty } ?? false }

  /// Writes bytes and answers how many were accepted; 0 if the kernel's buffer is full.
  func write(_ bytes: UnsafeRawBufferPointer) throws(RedisError) -> Int {
    guard let secure else { return try put(bytes) }
    try writeSecured(secure)
    guard secure.unsent.isEmpty, !bytes.isEmpty else { return 0 }
    let count = try secure.send(bytes)
    try writeSecured(secure)
    return count
  }

  private func writeSecured(_ secure: SecureBytes) throws(RedisError) {
    while !secure.unsent.isEmpty {
      let count = try put(secure.unsent)
      if count == 0 { return }
      secure.wasSent(count)
    }
  }

  private func put(_ bytes: UnsafeRawBufferPointer) throws(RedisError) -> Int {
    while true {
      let count = send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if count >= 0 { return count }
      switch errno {
      case EINTR: continue
      case EAGAIN: return 0
      default: throw broken
      }
    }
  }

  /// Reads up to 16 KiB; answers whether anything had arrived.
  func fill() throws(RedisError) -> Bool {
    let before = unparsed
    if let secure {
      let count = recv(descriptor, secure.input.baseAddress, secure.input.count, 0)
      if count < 0, errno == EAGAIN || errno == EINTR { return false }
      if count < 0, isShakingHands, errno == ECONNRESET { throw RedisError(.connectionLost, Self.closedEarly) }
      if count < 0 { throw broken }
      if count == 0 { throw RedisError(.connectionLost, isShakingHands ? Self.closedEarly : "Redis closed the connection") }
      try secure.receive(count) { _ = redisReaderFeed(context.pointee.reader, $0.baseAddress, $0.count) }
    } else if redisBufferRead(context) != REDIS_OK {
      throw failure
    }
    let after = unparsed
    if after > Self.longestReply { throw RedisError(.protocolViolation, "the peer sends a reply of more than 512 MiB; is it a Redis?") }
    return after > before || secure != nil
  }

  private var unparsed: Int {
    guard let reader = context.pointee.reader else { return 0 }
    return Int(reader.pointee.len) - Int(reader.pointee.pos)
  }

  /// The next complete reply; the caller frees it with `free`.
  func nextReply() throws(RedisError) -> UnsafeMutablePointer<redisReply>? {
    var reply: UnsafeMutableRawPointer?
    guard redisGetReplyFromReader(context, &reply) == REDIS_OK else { throw failure }
    return reply?.assumingMemoryBound(to: redisReply.self)
  }

  static func free(_ reply: UnsafeMutablePointer<redisReply>) { freeReplyObject(reply) }

  /// The error of the last system call.
  private var broken: RedisError { RedisError(.connectionLost, "the connection to Redis broke: \(String(cString: strerror(errno)))") }

  private var failure: RedisError {
    switch context.pointee.err {
    case REDIS_ERR_PROTOCOL, REDIS_ERR_OOM:
      RedisError(.protocolViolation, "the peer does not speak Redis' protocol (\(failureText)); is the address that of a Redis?")
    case REDIS_ERR_EOF: RedisError(.connectionLost, "Redis closed the connection")
    default: RedisError(.connectionLost, "the connection to Redis broke: \(failureText)")
    }
  }

  private var failureText: String {
    withUnsafeBytes(of: context.pointee.errstr) { bytes in String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
  }
}

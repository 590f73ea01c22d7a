public import Cryptography

/// What a client needs for TLS with Redis beside the address.
public struct RedisTLS: Sendable, Hashable {
  /// The trusted certificates in PEM; nil for those of the system.
  var authorities: [UInt8]?
  /// The client's certificate and key, for a server that asks for one.
  public var identity: TLSIdentity?

  /// A description of its parts.
  public init(authorities: [UInt8]? = nil, identity: TLSIdentity? = nil) {
    (self.authorities, self.identity) = (authorities, identity)
  }

  /// Checks the certificates of the authorities.
  public func check() throws(TLSError) { _ = try makeContext() }

  func makeContext() throws(TLSError) -> TLSContext { try TLSContext(authorities: authorities, protocols: [], identity: identity) }
}

/// The TLS of one connection: what it has received from the socket, and what the socket has not accepted yet.
final class SecureBytes {
  let session: TLSSession
  private let files: RedisTLS
  /// Where the socket puts the server's bytes.
  let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 16_384, alignment: 16)
  private var output = CommandBuffer(capacity: 4_096)
  private var sent = 0
  private static let keptCapacity = 128 << 10
  /// How many bytes are encrypted at once.
  private static let partBytes = 64 << 10

  init(_ session: TLSSession, _ files: RedisTLS) {
    (self.session, self.files) = (session, files)
    takeOutput()
  }

  deinit { input.deallocate() }

  /// Valid until the next change.
  var unsent: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: output.bytes[sent...]) }

  func wasSent(_ count: Int) {
    sent += count
    guard sent == output.count else { return }
    output.removeAll(keeping: Self.keptCapacity)
    sent = 0
  }

  /// Takes the first `count` bytes of `input`. `body` gets the decrypted bytes.
  func receive(_ count: Int, _ body: (UnsafeRawBufferPointer) -> Void) throws(RedisError) {
    session.receive(UnsafeRawBufferPointer(rebasing: input[..<count]), body)
    takeOutput()
    try check()
  }

  /// Encrypts the first of the bytes, and answers how many.
  func send(_ bytes: UnsafeRawBufferPointer) throws(RedisError) -> Int {
    let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.partBytes))
    guard session.send(part) else {
      try check()
      return 0
    }
    takeOutput()
    return part.count
  }

  private func takeOutput() { _ = session.takeOutput { output.append($0) } }

  private func check() throws(RedisError) {
    switch session.end {
    case .failed(let error): throw RedisError(.tlsFailed, "no TLS with Redis: \(error); \(advice(error.code))")
    // Nothing comes after that, also where the connection stays open.
    case .peerClosed: throw RedisError(.connectionLost, "Redis closed the connection")
    default: return
    }
  }

  private func advice(_ code: TLSError.Code) -> String {
    switch code {
    case .expired: "replace the certificate of that Redis, or correct this machine's clock"
    case .wrongName: "write a name of its certificate into the Redis address"
    case .unknownAuthority:
      files.authorities == nil ? "name its authority by --redis-ca" : "--redis-ca has another authority than the one that has signed it"
    case .untrusted: "replace the certificate of that Redis, or name its present authority by --redis-ca"
    case .nothingInCommon: "it must take TLS 1.2 or 1.3 (tls-protocols)"
    case .alert: files.adviceForClients
    case .badCertificate, .badKey, .plainHTTP, .violation: "does that port take TLS? Without it the address is redis://"
    }
  }
}

extension RedisTLS {
  /// What to do where the server ends the session.
  var adviceForClients: String {
    identity == nil
      ? "if it asks its clients for a certificate (tls-auth-clients), give --redis-certificate and --redis-key"
      : "does it know the authority of --redis-certificate (tls-ca-cert-file), and has that certificate not expired?"
  }
}

import COpenSSL
import Glibc

/// What the TLS sessions of one loop share: certificates, rules, tickets and buffers. Confined to one thread at a time.
///
/// TLS 1.2 (RFC 5246) with ephemeral keys and authenticated encryption, and TLS 1.3 (RFC 8446) without early data.
public final class TLSContext {
  /// The size of the buffer for decrypted bytes.
  private static let plainBytes = 32_768
  /// How long sessions are resumed before the certificate is checked again, in seconds.
  private static let resumedSeconds = 86_400

  /// Nil for clients.
  private let identities: InForce<TLSIdentity>?
  /// The identity in `native`.
  private var identity: InForce<TLSIdentity>.Version?
  private let tickets: TLSTickets?
  /// The list of application protocols, at a fixed address: a session may point into it.
  private let protocols: UnsafeMutableBufferPointer<UInt8>
  private var native: OpaquePointer
  /// The BIO of all sessions: it only leads to the buffers of the running call.
  private let bio = TLSBuffers.make()
  /// A client's last session, to be resumed: its server, and when that server's certificate was checked.
  private var last: (server: String, session: OpaquePointer, checked: Int)?

  // The buffers of the running call.
  var input = UnsafeRawBufferPointer(start: nil, count: 0)
  var output: [UInt8] = []
  let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: plainBytes, alignment: 16)
  /// The server of the session in the running call.
  var server: String?

  /// Makes a server's context.
  ///
  /// - Parameters:
  ///   - identities: the certificate and its key. Sessions keep those that they began with.
  ///   - ticketSecrets: derive the keys of tickets. Whoever knows one can read recorded sessions of TLS 1.2 that it has resumed.
  ///   - protocols: the application protocols (RFC 7301), preferred first; a client that offers only others is refused.
  ///   - now: the seconds since 1970; nil for those of the machine.
  public init(
    server identities: InForce<TLSIdentity>, ticketSecrets: InForce<KeyRing>, protocols: [String], now: (() -> Int)? = nil
  ) throws(TLSError) {
    OpenSSL.prepare()
    self.identities = identities
    self.protocols = Self.list(protocols)
    tickets = TLSTickets(ticketSecrets, now: now ?? { time(nil) })
    native = Self.makeNative(TLS_server_method())
    let present = identities.current
    identity = present
    try become(present.value, native)
  }

  /// Makes a client's context.
  ///
  /// - Parameters:
  ///   - authorities: the trusted certificates in PEM; nil for those of the system.
  ///   - protocols: the offered application protocols.
  ///   - identity: the client's own, for servers that ask for one.
  ///   - version: the only offered version, in the protocol's numbers; nil for TLS 1.2 and 1.3.
  public init(
    authorities: [UInt8]?, protocols: [String], identity: TLSIdentity? = nil, version: Int32? = nil
  ) throws(TLSError) {
    OpenSSL.prepare()
    identities = nil
    tickets = nil
    self.protocols = Self.list(protocols)
    native = Self.makeNative(TLS_client_method())
    if let version { precondition(carillon_tls_only(native, version) == 1, "OpenSSL has the version") }
    SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nil)
    try trust(authorities)
    try identity?.install(in: native)
    precondition(
      SSL_CTX_set_alpn_protos(native, self.protocols.baseAddress, UInt32(self.protocols.count)) == 0, "names of protocols are short")
    carillon_tls_cache(native, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL)
    adopt(native)
    SSL_CTX_sess_set_new_cb(native) { session, ticket in
      guard let context = TLSContext.of(SSL_get_SSL_CTX(session)), let ticket else { return 0 }
      return context.remember(ticket, isResumed: SSL_session_reused(session) == 1) ? 1 : 0
    }
  }

  deinit {
    if let last { SSL_SESSION_free(last.session) }
    SSL_CTX_free(native)
    BIO_free(bio)
    plain.deallocate()
    protocols.deallocate()
  }

  /// A context of OpenSSL with this module's rules.
  static func makeNative(_ method: OpaquePointer?) -> OpaquePointer {
    guard let native = SSL_CTX_new(method), carillon_tls_rules(native) == 1 else {
      preconditionFailure("OpenSSL has TLS 1.2 and 1.3, and memory for a context")
    }
    return native
  }

  /// The list of names in the form of the extension.
  private static func list(_ names: [String]) -> UnsafeMutableBufferPointer<UInt8> {
    let bytes = names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    let list = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
    _ = list.initialize(from: bytes)
    return list
  }

  // MARK: Callbacks

  private func adopt(_ native: OpaquePointer) {
    SSL_CTX_set_ex_data(native, 0, Unmanaged.passUnretained(self).toOpaque())
    // Each session keeps the context alive, and so the BIO's buffers.
    BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
  }

  private static func of(_ native: OpaquePointer?) -> TLSContext? {
    guard let data = SSL_CTX_get_ex_data(native, 0) else { return nil }
    return Unmanaged.fromOpaque(data).takeUnretainedValue()
  }

  /// Prepares a server's context of OpenSSL.
  private func become(_ identity: TLSIdentity, _ native: OpaquePointer) throws(TLSError) {
    try identity.install(in: native)
    carillon_tls_cache(native, SSL_SESS_CACHE_OFF)
    SSL_CTX_set_num_tickets(native, 1)
    adopt(native)
    SSL_CTX_set_tlsext_ticket_key_evp_cb(native) { session, name, vector, cipher, code, isNew in
      guard let tickets = TLSContext.of(SSL_get_SSL_CTX(session))?.tickets, let name, let vector else { return -1 }
      if isNew == 1 { return tickets.seal(name, vector, cipher, code) }
      // Clients of TLS 1.3 use a ticket only once.
      return tickets.open(name, vector, cipher, code, isReplaced: SSL_version(session) >= TLS1_3_VERSION)
    }
    SSL_CTX_set_alpn_select_cb(
      native,
      { session, chosen, chosenCount, offered, offeredCount, _ in
        guard let context = TLSContext.of(SSL_get_SSL_CTX(session)), let chosen else { return SSL_TLSEXT_ERR_NOACK }
        var name: UnsafeMutablePointer<UInt8>?
        let own = context.protocols
        let result = SSL_select_next_proto(&name, chosenCount, own.baseAddress, UInt32(own.count), offered, offeredCount)
        chosen.pointee = UnsafePointer(name)
        return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL
      }, nil)
  }

  private func trust(_ authorities: [UInt8]?) throws(TLSError) {
    guard let authorities else {
      _ = SSL_CTX_set_default_verify_paths(native)
      return
    }
    let certificates = try PEM.certificates(authorities)
    if certificates.isEmpty { throw TLSError(.badCertificate, "it holds no certificate in PEM") }
    let store = SSL_CTX_get_cert_store(native)
    for certificate in certificates where X509_STORE_add_cert(store, certificate.native) != 1 {
      throw TLSError(.badCertificate, "an authority's certificate cannot be used: \(TLSError.lastReason)")
    }
  }

  /// Keeps a session of the server in the running call; false if it is not kept.
  private func remember(_ session: OpaquePointer, isResumed: Bool) -> Bool {
    // Another server's session has taken the place of the resumed one, and with it the time of its check.
    guard let server, !isResumed || last?.server == server else { return false }
    let checked = isResumed ? last?.checked : nil
    if let last { SSL_SESSION_free(last.session) }
    last = (server, session, checked ?? time(nil))
    return true
  }

  // MARK: Sessions

  /// Begins a server's session with the present identity.
  public func accept() -> TLSSession {
    takeIdentity()
    let session = makeSession()
    SSL_set_accept_state(session)
    return TLSSession(self, session, server: nil)
  }

  /// Begins a client's session; its first bytes wait in `takeOutput`.
  ///
  /// - Parameters:
  ///   - host: the server's name or numeric address, which its certificate must have.
  ///   - port: the server's, since other ports may have other sessions to resume.
  public func connect(host: String, isNumeric: Bool, port: Int) -> TLSSession {
    let session = makeSession()
    SSL_set_connect_state(session)
    let rules = SSL_get0_param(session)
    if isNumeric {
      precondition(X509_VERIFY_PARAM_set1_ip_asc(rules, host) == 1, "the caller has checked that it is an address")
    } else {
      X509_VERIFY_PARAM_set_hostflags(rules, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
      precondition(
        X509_VERIFY_PARAM_set1_host(rules, host, 0) == 1 && carillon_tls_server_name(session, host) == 1, "a host's name is short")
    }
    let server = "\(host):\(port)"
    if let last, last.server == server, time(nil) - last.checked < Self.resumedSeconds { SSL_set_session(session, last.session) }
    let made = TLSSession(self, session, server: server)
    made.begin()
    return made
  }

  private func makeSession() -> OpaquePointer {
    guard let session = SSL_new(native), BIO_up_ref(bio) == 1 else { preconditionFailure("no memory left for a TLS session") }
    SSL_set_bio(session, bio, bio)
    return session
  }

  /// Takes a replaced identity. It was checked before.
  private func takeIdentity() {
    guard let identities, var present = identity, identities.update(&present) else { return }
    identity = present
    let next = Self.makeNative(TLS_server_method())
    do throws(TLSError) { try become(present.value, next) } catch {
      SSL_CTX_free(next)
      return
    }
    // Open sessions keep the former one.
    SSL_CTX_free(native)
    native = next
  }
}

/// The BIO that connects sessions of OpenSSL with the buffers of their context's running call.
enum TLSBuffers {
  /// The address of the one method, made once.
  private static let method: UInt = {
    let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "carillon")
    BIO_meth_set_write(method) { bio, bytes, count in
      guard let context = TLSBuffers.context(of: bio), let bytes, count > 0 else { return 0 }
      context.output.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: Int(count)))
      return count
    }
    BIO_meth_set_read(method) { bio, bytes, count in
      guard let context = TLSBuffers.context(of: bio), let bytes, count > 0 else { return 0 }
      let taken = min(context.input.count, Int(count))
      guard taken > 0, let start = context.input.baseAddress else {
        carillon_tls_retry_read(bio)
        return -1
      }
      memcpy(bytes, start, taken)
      context.input = UnsafeRawBufferPointer(rebasing: context.input[taken...])
      return Int32(taken)
    }
    BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
    return UInt(bitPattern: method)
  }()

  static func make() -> OpaquePointer {
    guard let bio = BIO_new(OpaquePointer(bitPattern: method)) else { preconditionFailure("no memory left for TLS") }
    BIO_set_init(bio, 1)
    return bio
  }

  private static func context(of bio: OpaquePointer?) -> TLSContext? {
    guard let data = BIO_get_data(bio) else { return nil }
    return Unmanaged.fromOpaque(data).takeUnretainedValue()
  }
}

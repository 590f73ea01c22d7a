import CCurl
import Glibc

/// One request to one URL, and its response so far: the owner of an easy handle's callbacks.
final class CurlTransfer {
  /// Bytes of a redirect's body that are read so that the connection can be kept.
  private static let redirectBytes = 65_536
  /// How long an idle connection is kept.
  private static let idleSeconds = 60
  private static let redirects: Set<Int> = [301, 302, 303, 307, 308]

  let call: HTTPClientCall
  let easy: CurlEasy
  private let configuration: HTTPClientConfiguration
  private var headBytes = 0
  private var response: HTTPClientResponse?
  private var received = 0
  /// Whether the response is a redirect to follow.
  private var isRedirect = false
  private var isPaused = false
  /// A final failure that was found inside a callback.
  private(set) var failure: HTTPClientError?
  /// Called inside libcurl if the transfer must end although libcurl would continue.
  var whenHopeless: (() -> Void)?

  private var url: HTTPURL { call.url }

  init(_ call: HTTPClientCall, _ easy: CurlEasy, _ configuration: HTTPClientConfiguration) {
    self.call = call
    self.easy = easy
    self.configuration = configuration
    prepare()
  }

  // MARK: The request

  private func prepare() {
    let this = Unmanaged.passUnretained(self).toOpaque()
    easy.set(CURLOPT_URL, url.description)
    easy.set(CURLOPT_PROTOCOLS_STR, url.scheme.rawValue)
    // Each redirect is judged here first, and is a transfer of its own.
    easy.set(CURLOPT_FOLLOWLOCATION, 0)
    easy.set(CURLOPT_PROXY, "")
    easy.set(CURLOPT_NOPROXY, "*")
    easy.set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
    // Signals are unsafe with threads. Time limits do not need them, since libcurl's own threads look up names.
    easy.set(CURLOPT_NOSIGNAL, 1)
    // Otherwise a transfer that ends during its lookup would block the loop until the resolver's time limit.
    easy.set(CURLOPT_QUICK_EXIT, 1)
    easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    easy.set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    easy.set(CURLOPT_SSL_VERIFYPEER, 1)
    easy.set(CURLOPT_SSL_VERIFYHOST, 2)
    if let file = configuration.certificateFile {
      easy.set(CURLOPT_CAINFO, file)
      easy.set(CURLOPT_CAPATH, pointer: nil)
    }
    easy.set(CURLOPT_CONNECTTIMEOUT_MS, max(1, call.request.timeoutMilliseconds))
    easy.set(CURLOPT_MAXAGE_CONN, Self.idleSeconds)
    easy.set(CURLOPT_USERAGENT, "carillon")
    easy.set(CURLOPT_RESOLVE, lines: configuration.pinned)
    // What `Content-Length` says. libcurl looks at it after HEAD, too, which has no body.
    let maximum = max(1, call.request.maximumBodyBytes, call.mayRedirect ? Self.redirectBytes : 0)
    if call.request.method != .head { easy.set(CURLOPT_MAXFILESIZE_LARGE, offset: maximum) }
    switch call.request.method {
    case .get: easy.set(CURLOPT_HTTPGET, 1)
    case .head: easy.set(CURLOPT_NOBODY, 1)
    case .post(let body):
      easy.set(CURLOPT_POST, 1)
      easy.setBody(body)
    }
    easy.set(CURLOPT_HTTPHEADER, lines: headerLines)
    easy.set(CURLOPT_HEADERDATA, pointer: this)
    easy.set(CURLOPT_HEADERFUNCTION) { bytes, size, count, this in
      owner(this, as: CurlTransfer.self).takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
    }
    easy.set(CURLOPT_WRITEDATA, pointer: this)
    easy.set(CURLOPT_WRITEFUNCTION) { bytes, size, count, this in
      owner(this, as: CurlTransfer.self).takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }
    easy.set(CURLOPT_OPENSOCKETDATA, pointer: this)
    easy.setOpen { this, purpose, address in
      guard let address, purpose == CURLSOCKTYPE_IPCXN else { return CURL_SOCKET_BAD }
      return owner(this, as: CurlTransfer.self).open(address)
    }
  }

  private var headerLines: [String] {
    // A name with a semicolon is a field without a value. With a colon and no value it would remove libcurl's own field.
    var lines = call.headers.map { $0.value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 } ? "\($0.name);" : "\($0.name): \($0.value)" }
    // Bodies are small and limited by the caller, so asking first would only cost a round trip.
    lines.append("Expect:")
    if !call.headers.contains(where: { $0.name.lowercased() == "content-type" }) { lines.append("Content-Type:") }
    return lines
  }

  // MARK: The response

  /// Whether it has ended for the caller, so that nothing more is taken.
  private var isOver: Bool { failure != nil || call.isEnded }

  private func fail(_ code: HTTPClientError.Code, _ message: String) {
    if failure == nil { failure = HTTPClientError(code, message) }
  }

  /// Makes the socket for an address, if connections to it are allowed.
  private func open(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
    // After one refused address no other is tried: the name is not trustworthy.
    guard !isOver, let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return CURL_SOCKET_BAD }
    guard let peer = IPAddress(UnsafeRawPointer(address) + offset, length: Int(address.pointee.addrlen)) else {
      fail(.connectFailed, "\(url.host) has an address that is neither IPv4 nor IPv6")
      whenHopeless?()
      return CURL_SOCKET_BAD
    }
    if let kind = configuration.addresses.refusal(of: peer) {
      fail(.addressRefused, "\(url.host) has the address \(peer), which must not be connected to (\(kind))")
      whenHopeless?()
      return CURL_SOCKET_BAD
    }
    let type = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
    return socket(address.pointee.family, type, address.pointee.protocol)
  }

  private func takeHeader(_ line: UnsafeRawBufferPointer) -> Bool {
    guard !isOver else { return false }
    headBytes += line.count
    guard headBytes <= call.request.maximumHeaderBytes else {
      fail(.headersTooLarge, "\(url.host) answers with more than \(call.request.maximumHeaderBytes) bytes of header fields")
      return false
    }
    // An empty line ends the head of an interim response (RFC 9110, section 15.2), that of the response, and a trailer.
    let isEnd = line.first == UInt8(ascii: "\r") || line.first == UInt8(ascii: "\n")
    guard isEnd, response == nil, easy.status >= 200 else { return true }
    let response = HTTPClientResponse(status: HTTPStatus(rawValue: easy.status), headers: easy.headers)
    isRedirect = call.mayRedirect && Self.redirects.contains(response.status.rawValue) && response.headers["location"] != nil
    self.response = response
    return true
  }

  /// Takes a piece of the body. Returns libcurl's result: the number of taken bytes, or a pause.
  private func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard !isOver else { return 0 }
    guard let response else {
      fail(.protocolError, "\(url.host) does not answer with HTTP")
      return 0
    }
    if isPaused { return Int(CURL_WRITEFUNC_PAUSE) }
    received += bytes.count
    if isRedirect {
      if received <= Self.redirectBytes { return bytes.count }
      fail(.bodyTooLarge, "\(url.host) redirects with a body of more than \(Self.redirectBytes) bytes")
      return 0
    }
    guard received <= call.request.maximumBodyBytes else {
      failure = tooLarge
      return 0
    }
    guard let receive = call.receive else {
      self.response?.body.append(contentsOf: bytes)
      return bytes.count
    }
    switch receive(bytes, response) {
    case .more: break
    case .pause: isPaused = true
    case .stop:
      fail(.canceled, "the receiver of the body from \(url.host) wants no more of it")
      return 0
    }
    return bytes.count
  }

  /// Delivers again; true if libcurl must be told.
  func resume() -> Bool {
    defer { isPaused = false }
    return isPaused
  }

  private var tooLarge: HTTPClientError {
    HTTPClientError(.bodyTooLarge, "\(url.host) answers with a body of more than \(call.request.maximumBodyBytes) bytes")
  }

  // MARK: The end

  enum Outcome {
    case response(HTTPClientResponse)
    case redirect(to: String)
    case failure(HTTPClientError)
  }

  /// The result. It is read once, when libcurl is done and before the handle is set again.
  func outcome(_ result: CURLcode) -> Outcome {
    if let failure { return .failure(failure) }
    guard result == CURLE_OK else { return .failure(error(result)) }
    guard let response else {
      return .failure(HTTPClientError(.connectionLost, "\(url.host) cut the connection in the middle of the header fields"))
    }
    if isRedirect, let target = easy.redirectURL { return .redirect(to: target) }
    return .response(response)
  }

  private func error(_ result: CURLcode) -> HTTPClientError {
    let host = url.host
    switch result {
    case CURLE_COULDNT_RESOLVE_HOST: return HTTPClientError(.unresolved, "\(host) has no address")
    case CURLE_COULDNT_CONNECT: return HTTPClientError(.connectFailed, "\(host) cannot be connected to: \(detail)")
    case CURLE_FILESIZE_EXCEEDED: return tooLarge
    case CURLE_OPERATION_TIMEDOUT: return call.timeout
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CLIENTCERT, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS, CURLE_USE_SSL_FAILED:
      return HTTPClientError(.tlsFailed, "no TLS connection to \(host) came about: \(detail)")
    case CURLE_PARTIAL_FILE: return HTTPClientError(.truncated, "\(host) cut the connection in the middle of the body")
    case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_HTTP2, CURLE_HTTP2_STREAM:
      // This includes an invalid chunk.
      guard response == nil else { return HTTPClientError(.truncated, "the body from \(host) broke off") }
      return HTTPClientError(.connectionLost, "the connection to \(host) broke before the response")
    case CURLE_OUT_OF_MEMORY where response == nil:
      // libcurl's own limit for one line, 100 KB.
      return HTTPClientError(.headersTooLarge, "\(host) answers with a header field of more than 100 KB")
    default:
      let reason = String(cString: curl_easy_strerror(result))
      return HTTPClientError(.protocolError, "\(host) does not answer as an HTTP server: \(reason)")
    }
  }

  /// libcurl's text on a failed connection: host, port, certificate, and nothing of the request.
  private var detail: String {
    let text = easy.lastError.withoutLineBreaks
    return text.isEmpty ? "no reason is known" : text
  }
}

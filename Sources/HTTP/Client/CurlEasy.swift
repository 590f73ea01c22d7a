import CCurl
import Cryptography
import Glibc

/// One easy handle of libcurl, which serves one request after the other.
final class CurlEasy {
  private static let prepared: Void = {
    OpenSSL.prepare()
    // Needed once in a process; this version of libcurl takes a lock for it.
    precondition(curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK, "libcurl cannot be initialized")
  }()

  let handle: UnsafeMutableRawPointer
  private let errorText: UnsafeMutablePointer<CChar>
  private var lists: [UnsafeMutablePointer<curl_slist>] = []

  init() {
    Self.prepared
    guard let handle = curl_easy_init() else { preconditionFailure("no memory left for a handle of libcurl") }
    self.handle = handle
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    reset()
  }

  deinit {
    curl_easy_cleanup(handle)
    freeLists()
    errorText.deallocate()
  }

  /// Resets all options.
  func reset() {
    curl_easy_reset(handle)
    freeLists()
    errorText[0] = 0
    check(carillon_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, errorText))
  }

  private func freeLists() {
    for list in lists { curl_slist_free_all(list) }
    lists = []
  }

  /// libcurl's message on the last failure; it may contain text from the server.
  var lastError: String { String(cString: errorText) }

  /// The absolute URL of a response's redirect.
  var redirectURL: String? {
    var text: UnsafePointer<CChar>?
    guard carillon_curl_get_pointer(handle, CURLINFO_REDIRECT_URL, &text) == CURLE_OK, let text else { return nil }
    return String(cString: text)
  }

  /// The status of the last received head.
  var status: Int {
    var status = 0
    _ = carillon_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    return status
  }

  /// The header fields of the response, without those of interim responses (RFC 9110, section 15.2) and of a trailer.
  var headers: HTTPHeaders {
    var bytes: [UInt8] = []
    var fields: [HTTPHeaders.Field] = []
    var next = curl_easy_nextheader(handle, UInt32(CURLH_HEADER), -1, nil)
    while let field = next {
      let start = bytes.count
      bytes += UnsafeRawBufferPointer(start: field.pointee.name, count: strlen(field.pointee.name))
      let middle = bytes.count
      bytes += UnsafeRawBufferPointer(start: field.pointee.value, count: strlen(field.pointee.value)).trimmed
      fields.append(HTTPHeaders.Field(nameStart: start, nameEnd: middle, valueStart: middle, valueEnd: bytes.count))
      next = curl_easy_nextheader(handle, UInt32(CURLH_HEADER), -1, field)
    }
    return HTTPHeaders(bytes: bytes, fields: fields)
  }

  // An option fails if this libcurl lacks it or memory is full. A request must not continue without its protection.
  private func check(_ result: CURLcode) {
    precondition(result == CURLE_OK, "libcurl refuses an option: \(String(cString: curl_easy_strerror(result)))")
  }

  func set(_ option: CURLoption, _ value: Int) { check(carillon_curl_set_long(handle, option, value)) }

  func set(_ option: CURLoption, offset: Int) { check(carillon_curl_set_offset(handle, option, curl_off_t(offset))) }

  func set(_ option: CURLoption, _ text: String) { check(text.withCString { carillon_curl_set_pointer(handle, option, $0) }) }

  func set(_ option: CURLoption, pointer: UnsafeRawPointer?) { check(carillon_curl_set_pointer(handle, option, pointer)) }

  func set(_ option: CURLoption, lines: [String]) {
    var list: UnsafeMutablePointer<curl_slist>?
    for line in lines {
      guard let longer = curl_slist_append(list, line) else { preconditionFailure("no memory left for a list of libcurl") }
      list = longer
    }
    guard let list else { return }
    lists.append(list)
    check(carillon_curl_set_pointer(handle, option, list))
  }

  /// The body of a POST, which libcurl copies.
  func setBody(_ bytes: [UInt8]) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, offset: bytes.count)
    // Without an address libcurl would ask a callback for the bytes.
    if bytes.isEmpty { return set(CURLOPT_COPYPOSTFIELDS, "") }
    check(bytes.withUnsafeBytes { carillon_curl_set_pointer(handle, CURLOPT_COPYPOSTFIELDS, $0.baseAddress) })
  }

  func set(_ option: CURLoption, write: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int) {
    check(carillon_curl_set_write(handle, option, write))
  }

  func setOpen(
    _ open: @convention(c) (UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t
  ) {
    check(carillon_curl_set_open(handle, open))
  }
}

/// The object that a callback of libcurl was registered with.
func owner<Owner: AnyObject>(_ this: UnsafeMutableRawPointer?, as type: Owner.Type) -> Owner {
  guard let this else { preconditionFailure("a callback of libcurl has its owner") }
  return Unmanaged<Owner>.fromOpaque(this).takeUnretainedValue()
}

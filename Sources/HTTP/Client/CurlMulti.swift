import CCurl
import EventLoop

/// libcurl's multi interface on a loop. libcurl names sockets and a time to wait for, and the loop reports them.
///
/// libcurl allows no calls of itself inside its callbacks, where body handlers run. Requested actions run after it has returned. libcurl
/// looks up names in threads of its own (`AsynchDNS`), and runs nothing else outside the loop.
final class CurlMulti {
  private let loop: EventLoop
  private let handle: UnsafeMutableRawPointer
  private let timer: Timer
  private var watches: [curl_socket_t: DescriptorWatch] = [:]
  private var transfers: [UnsafeMutableRawPointer: CurlTransfer] = [:]
  private var easies = Pool { CurlEasy() }
  private var isInside = false
  private var isSettling = false
  private var isClosed = false
  /// What waits until libcurl has returned.
  private var actions: [() -> Void] = []
  private var whenDone: ((CurlTransfer, CurlTransfer.Outcome) -> Void)?

  /// - Parameter whenDone: called for each transfer that has ended and was not removed; never inside `add` or `remove`.
  init(on loop: EventLoop, _ configuration: HTTPClientConfiguration, whenDone: @escaping (CurlTransfer, CurlTransfer.Outcome) -> Void) {
    let version = curl_version_info(CURLVERSION_FIRST)
    let looksUpBeside = (version?.pointee.features ?? 0) & CURL_VERSION_ASYNCHDNS != 0
    precondition(looksUpBeside, "this libcurl would stop the loop to look up a name: it was built without AsynchDNS")
    self.loop = loop
    self.whenDone = whenDone
    timer = Timer(on: loop)
    // The first handle initializes libcurl.
    easies.giveBack(CurlEasy())
    guard let handle = curl_multi_init() else { preconditionFailure("no memory left for libcurl") }
    self.handle = handle
    let this = Unmanaged.passUnretained(self).toOpaque()
    carillon_curl_multi_set_long(handle, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    carillon_curl_multi_set_long(handle, CURLMOPT_MAX_TOTAL_CONNECTIONS, max(1, configuration.maximumConnections))
    carillon_curl_multi_set_long(handle, CURLMOPT_MAX_HOST_CONNECTIONS, max(1, configuration.maximumConnectionsPerHost))
    carillon_curl_multi_set_long(handle, CURLMOPT_MAXCONNECTS, max(1, configuration.maximumConnections))
    carillon_curl_multi_set_pointer(handle, CURLMOPT_SOCKETDATA, this)
    carillon_curl_multi_set_socket(handle) { _, socket, what, this, _ in
      owner(this, as: CurlMulti.self).watch(socket, what)
      return 0
    }
    carillon_curl_multi_set_pointer(handle, CURLMOPT_TIMERDATA, this)
    carillon_curl_multi_set_timer(handle) { _, milliseconds, this in
      owner(this, as: CurlMulti.self).setTimer(milliseconds)
      return 0
    }
    timer.handler = { [self] in act(CURL_SOCKET_BAD, 0) }
  }

  deinit {
    // It was not closed, and its loop has ended with its timer and its watches.
    if !isClosed { releaseHandle() }
  }

  // MARK: Sockets and times

  private func watch(_ socket: curl_socket_t, _ what: Int32) {
    guard what != CURL_POLL_REMOVE else {
      watches.removeValue(forKey: socket)?.close()
      return
    }
    var interest: Readiness = []
    if what & CURL_POLL_IN != 0 { interest.insert(.readable) }
    if what & CURL_POLL_OUT != 0 { interest.insert(.writable) }
    // An error to libcurl would end every transfer. A socket that cannot be watched ends at the deadline of its request.
    let watch =
      watches[socket]
      ?? (try? DescriptorWatch(on: loop, descriptor: socket) { [self] readiness in
        let readable = readiness.contains(.readable) ? CURL_CSELECT_IN : 0
        let writable = readiness.contains(.writable) ? CURL_CSELECT_OUT : 0
        act(socket, readable | writable)
      })
    watches[socket] = watch
    watch?.watch(interest)
  }

  private func setTimer(_ milliseconds: Int) {
    if milliseconds < 0 { timer.stop() } else { timer.start(after: milliseconds) }
  }

  private func act(_ socket: curl_socket_t, _ events: Int32) {
    guard !isClosed else { return }
    enter {
      var running: Int32 = 0
      curl_multi_socket_action(handle, socket, events, &running)
    }
  }

  /// Calls libcurl, and then runs the waiting actions.
  private func enter(_ body: () -> Void) {
    precondition(!isInside, "libcurl does not allow calls inside its callbacks")
    isInside = true
    body()
    isInside = false
    settle()
  }

  private func settle() {
    // The actions come back here. The outermost call continues until none is left.
    guard !isSettling else { return }
    isSettling = true
    while !isClosed {
      if !actions.isEmpty { actions.removeFirst()() } else if !concludeNext() { break }
    }
    isSettling = false
  }

  // MARK: Transfers

  /// Begins a request.
  func add(_ call: HTTPClientCall, _ configuration: HTTPClientConfiguration) -> CurlTransfer {
    let transfer = CurlTransfer(call, easies.take(), configuration)
    // libcurl does not know of this failure.
    transfer.whenHopeless = { [unowned self, unowned transfer] in
      actions.append { [self, transfer] in conclude(transfer, CURLE_COULDNT_CONNECT) }
    }
    submit { [self] in
      guard !transfer.call.isEnded else { return easies.giveBack(transfer.easy) }
      transfers[transfer.easy.handle] = transfer
      enter {
        let result = curl_multi_add_handle(handle, transfer.easy.handle)
        precondition(result == CURLM_OK, "no memory left for a transfer of libcurl")
      }
    }
    return transfer
  }

  /// Ends a transfer without `whenDone`: its connection is closed, or its stream of HTTP/2 reset.
  func remove(_ transfer: CurlTransfer) { submit { [self] in detach(transfer) } }

  /// Continues a paused transfer.
  func resume(_ transfer: CurlTransfer) {
    submit { [self] in
      guard transfers[transfer.easy.handle] === transfer, transfer.resume() else { return }
      // It may deliver waiting bytes at once, and reports their refusal only here.
      enter {
        let result = curl_easy_pause(transfer.easy.handle, CURLPAUSE_CONT)
        if result != CURLE_OK { actions.append { [self] in conclude(transfer, result) } }
      }
    }
  }

  /// Ends libcurl with every remaining transfer and every connection.
  func close() {
    whenDone = nil
    submit { [self] in cleanUp() }
  }

  private func submit(_ action: @escaping () -> Void) {
    guard !isClosed else { return }
    if isInside { actions.append(action) } else { action() }
  }

  /// Takes a finished transfer from libcurl; false if there is none.
  private func concludeNext() -> Bool {
    var left: Int32 = 0
    guard let message = curl_multi_info_read(handle, &left) else { return false }
    guard message.pointee.msg == CURLMSG_DONE, let transfer = transfers[message.pointee.easy_handle] else { return true }
    conclude(transfer, message.pointee.data.result)
    return true
  }

  private func conclude(_ transfer: CurlTransfer, _ result: CURLcode) {
    guard transfers[transfer.easy.handle] === transfer else { return }
    let outcome = transfer.outcome(result)
    detach(transfer)
    whenDone?(transfer, outcome)
  }

  private func detach(_ transfer: CurlTransfer) {
    guard transfers[transfer.easy.handle] === transfer else { return }
    transfers[transfer.easy.handle] = nil
    enter { curl_multi_remove_handle(handle, transfer.easy.handle) }
    transfer.easy.reset()
    easies.giveBack(transfer.easy)
  }

  private func cleanUp() {
    isClosed = true
    actions = []
    for watch in watches.values { watch.close() }
    watches = [:]
    timer.close()
    releaseHandle()
  }

  private func releaseHandle() {
    // From here on libcurl's callbacks have no owner.
    carillon_curl_multi_set_socket(handle, nil)
    carillon_curl_multi_set_timer(handle, nil)
    for transfer in transfers.values { curl_multi_remove_handle(handle, transfer.easy.handle) }
    transfers = [:]
    curl_multi_cleanup(handle)
  }
}

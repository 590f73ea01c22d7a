public import EventLoop

/// A response's body that is read piece by piece, at the client's speed: a file too large to hold in memory for each client.
///
/// A read blocks the server's loop, so a source must be fast. It is the body of one response. `close` is called
/// exactly once and last, however the response ends: sent, cut because the client has gone or was too slow, not wanted (HEAD), or never
/// sent.
public protocol HTTPBodySource: AnyObject {
  /// The length of the whole body for `Content-Length`; read once, when the response is made.
  var count: Int { get }

  /// The next piece. It is not empty, and at most `maximum` bytes, which never passes the body's end.
  ///
  /// After an error or a piece of another length the rest is missing. The connection is closed, and the client sees a body that is too
  /// short. The server does not report the reason. The source does, if it matters.
  func read(atMost maximum: Int) throws -> SharedBytes

  /// Nothing more is read.
  func close()
}

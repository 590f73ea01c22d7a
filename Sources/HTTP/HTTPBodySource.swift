public import EventLoop

/// A response's body that is read piece by piece, as the client takes it: a file that would not fit into memory once for each client.
///
/// It is loop-confined: all is called on the server's loop, where reading stops everything else, so a source reads what is near at hand.
/// It is the body of one response. `close` is called exactly once and last, however the response ends: sent, cut off because the client
/// has gone or was too slow, not wanted (HEAD), or never sent at all, because the client had gone or nobody gave it to a responder.
public protocol HTTPBodySource: AnyObject {
  /// Bytes of the whole body, which `Content-Length` says; read once, when the response is made.
  var count: Int { get }

  /// The next piece: not empty, and not longer than `maximum`, which is never beyond the body's end.
  ///
  /// An error, like a piece of another length, means that the rest cannot be had: the connection is closed, and the client sees that the
  /// body is shorter than was said. The server does not say why, the source does where it matters.
  func read(atMost maximum: Int) throws -> SharedBytes

  /// Nothing more is read.
  func close()
}

/// A layer between a stream and its socket that changes all bytes, such as TLS.
///
/// The stream calls it, and takes its output after each call. The layer never calls the stream.
public protocol StreamLayer: AnyObject {
  /// Whether the owner's bytes can be changed already. Until then they wait in the stream.
  var isReady: Bool { get }
  /// Takes bytes of the socket. `body` gets the owner's bytes, valid during the call.
  func receive(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) -> StreamLayerState
  /// Takes bytes of the owner, after the layer is ready.
  func send(_ bytes: UnsafeRawBufferPointer)
  /// Notes that the owner sends nothing more.
  func finish()
  /// The bytes for the socket that the last call has made; nil for none.
  func takeOutput() -> SharedBytes?
}

/// The state of a layer after it has received bytes.
public enum StreamLayerState: Sendable {
  /// More bytes may come.
  case open
  /// The peer sends nothing more.
  case ended
  /// The layer cannot continue. Its output is still sent.
  case failed(EventLoopError)
}

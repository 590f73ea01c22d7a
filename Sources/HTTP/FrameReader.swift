import CWslay

/// Reads frames from a stream of bytes with wslay's frame context, which has 4 KB.
///
/// A connection holds a reader only while a frame is incomplete; readers are pooled. After an incomplete or broken frame it is not used
/// again.
final class FrameReader {
  /// A part of a frame's payload, or all of it.
  struct Chunk {
    var opcode: UInt8
    var isFinal: Bool
    var reservedBits: UInt8
    var isMasked: Bool
    /// The length of the whole payload.
    var length: UInt64
    /// Whether the frame begins, and ends, with this part.
    var isFirst: Bool
    var isLast: Bool
    /// Unmasked; valid until the next call.
    var bytes: UnsafeRawBufferPointer
  }

  enum Event {
    case chunk(Chunk)
    case needsMore
    case broken
  }

  private var context: wslay_frame_context_ptr?
  private var input = UnsafeRawBufferPointer(start: nil, count: 0)
  /// Bytes that the context has taken, and those that belong to whole frames. They are equal between frames.
  private var taken = 0
  private var framed = 0
  /// The taken payload of the present frame.
  private var payloadTaken: UInt64 = 0
  private var isInFrame = false

  init() {
    var callbacks = wslay_frame_callbacks(
      send_callback: nil,
      recv_callback: { buffer, capacity, _, user in
        guard let buffer, let user else { return -1 }
        return Unmanaged<FrameReader>.fromOpaque(user).takeUnretainedValue().read(
          UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
      }, genmask_callback: nil)
    let result = wslay_frame_context_init(&context, &callbacks, Unmanaged.passUnretained(self).toOpaque())
    precondition(result == 0, "no memory left for a WebSocket frame")
  }

  deinit { wslay_frame_context_free(context) }

  private func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(buffer.count, input.count)
    guard count > 0 else { return -1 }
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
    input = UnsafeRawBufferPointer(rebasing: input[count...])
    taken += count
    return count
  }

  /// Lends the received bytes. They must stay valid until `next` needs more.
  func feed(_ bytes: UnsafeRawBufferPointer) { input = bytes }

  /// The next part of a frame.
  func next() -> Event {
    var io = wslay_frame_iocb()
    let result = wslay_frame_recv(context, &io)
    if result == Int(WSLAY_ERR_WANT_READ.rawValue) {
      input = UnsafeRawBufferPointer(start: nil, count: 0)
      return .needsMore
    }
    if result < 0 { return .broken }
    let isFirst = !isInFrame
    payloadTaken = (isFirst ? 0 : payloadTaken) + UInt64(io.data_length)
    let isLast = payloadTaken >= io.payload_length
    isInFrame = !isLast
    if isLast { framed += Self.headerBytes(io) + Int(io.payload_length) }
    return .chunk(
      Chunk(
        opcode: io.opcode, isFinal: io.fin != 0, reservedBits: io.rsv, isMasked: io.mask != 0, length: io.payload_length, isFirst: isFirst,
        isLast: isLast, bytes: UnsafeRawBufferPointer(start: io.data, count: io.data_length)))
  }

  /// Whether no part of a frame is held and no input is left, so that it can serve another connection.
  var isBetweenFrames: Bool { taken == framed && input.isEmpty }

  private static func headerBytes(_ io: wslay_frame_iocb) -> Int {
    let length = io.payload_length < 126 ? 0 : io.payload_length < 65_536 ? 2 : 8
    return 2 + length + (io.mask != 0 ? 4 : 0)
  }
}
